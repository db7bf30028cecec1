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

// A bad row is (line, column, rule, token, field).
inline nb::tuple python_bad_row(const BadRow& row) {
    return nb::make_tuple(row.line, row.column, row.rule, nb::bytes(row.token.data(), row.token.size()),
                          python_text(row.field));
}

inline nb::list python_bad_rows(const ParsedRows& rows) {
    nb::list bad;
    for (const BadRow& row : rows.bad) bad.append(python_bad_row(row));
    return bad;
}

inline nb::object python_names(ParsedRows& rows) {
    return rows.names.size() ? nb::cast(std::move(rows.names)) : nb::object(nb::none());
}

inline nb::object python_importances(const ParsedRows& rows) {
    return rows.importances.empty() ? nb::object(nb::none()) : nb::cast(copied(rows.importances));
}

// The rows of a request: (indptr, indices, values, width, importances, names, first bad row). A request has often a single
// row, for which arrays that nobody needs would take longer than parsing.
inline nb::tuple request_tuple(ParsedRows&& rows) {
    nb::object bad = rows.bad.empty() ? nb::object(nb::none()) : nb::object(python_bad_row(rows.bad.front()));
    const std::size_t nonzeros = static_cast<std::size_t>(rows.indptr.back());
    nb::object importances = python_importances(rows), names = python_names(rows);
    return nb::make_tuple(read_only_copy(rows.indptr), read_only(std::move(rows.indices), nonzeros),
                          read_only(std::move(rows.values), nonzeros), rows.width, importances, names, bad);
}

inline nb::tuple parsed_rows_tuple(ParsedRows&& rows) {
    const nb::list bad = python_bad_rows(rows);
    nb::list label_texts;
    for (const std::string& text : rows.label_texts) label_texts.append(python_text(text));
    const std::size_t nonzeros = static_cast<std::size_t>(rows.indptr.back());
    nb::object tags = python_tags(rows);
    nb::object importances = python_importances(rows), names = python_names(rows);
    return nb::make_tuple(read_only_copy(rows.indptr), read_only(std::move(rows.indices), nonzeros),
                          read_only(std::move(rows.values), nonzeros), rows.width, copied(rows.labels), importances, tags,
                          copied(rows.lines), copied(rows.columns), rows.lines_read, bad,
                          rows.labels_are_texts ? nb::object(label_texts) : nb::object(nb::none()), names);
}

}  // namespace rarestream
