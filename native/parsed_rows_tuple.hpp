// ParsedRows as the tuple of the same fields that readers/text.py takes.
#pragma once

#include <string>
#include <utility>

#include "arrays.hpp"
#include "parsed_rows.hpp"

namespace rarestream {

inline nb::object python_text(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

inline nb::object python_tags(const ParsedRows& rows) {
    if (!rows.tags.empty()) return nb::cast(copied(rows.tags));
    if (rows.tag_ends.empty()) return nb::none();
    nb::list tags;
    std::size_t begin = 0;
    for (const std::size_t end : rows.tag_ends) {
        tags.append(python_text(std::string_view(rows.tag_text).substr(begin, end - begin)));
        begin = end;
    }
    return tags;
}

// Bad rows are (line, column, rule, token, field).
inline nb::list python_bad_rows(const ParsedRows& rows) {
    nb::list bad;
    for (const BadRow& row : rows.bad) {
        bad.append(nb::make_tuple(row.line, row.column, row.rule, nb::bytes(row.token.data(), row.token.size()),
                                  python_text(row.field)));
    }
    return bad;
}

inline nb::tuple parsed_rows_tuple(ParsedRows&& rows) {
    const nb::list bad = python_bad_rows(rows);
    nb::list label_texts;
    for (const std::string& text : rows.label_texts) label_texts.append(python_text(text));
    const std::size_t nonzeros = static_cast<std::size_t>(rows.indptr.back());
    nb::object tags = python_tags(rows);
    nb::object names = rows.names.size() ? nb::cast(std::move(rows.names)) : nb::object(nb::none());
    return nb::make_tuple(read_only_copy(rows.indptr), read_only(std::move(rows.indices), nonzeros),
                          read_only(std::move(rows.values), nonzeros), rows.width, copied(rows.labels),
                          rows.importances.empty() ? nb::object(nb::none()) : nb::cast(copied(rows.importances)), tags,
                          copied(rows.lines), copied(rows.columns), rows.lines_read, bad,
                          rows.labels_are_texts ? nb::object(label_texts) : nb::object(nb::none()), names);
}

}  // namespace rarestream
