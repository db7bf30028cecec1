// Python bindings of the parsers of text formats.
#include "arrays.hpp"
#include "svmlight.hpp"

#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

namespace rarestream {

namespace {

svmlight::Isa isa_named(const std::string& name) {
    if (name.empty()) return svmlight::best_isa();
    if (name == "portable") return svmlight::Isa::portable;
    if (name == "avx2" && svmlight::has_avx2()) return svmlight::Isa::avx2;
    throw std::invalid_argument("isa must be '', 'portable' or 'avx2' (where the machine has it), got '" + name + "'");
}

// The fields of svmlight::ParsedRows in the order of readers/parser.py; bad rows as (line, column, rule, token).
nb::tuple parse_svmlight(In<std::uint8_t> text, int first_index, bool label_required, std::int64_t stop_after,
                         const std::string& isa) {
    const svmlight::Isa chosen = isa_named(isa);
    if (text.size() > (std::size_t{1} << 31)) throw std::invalid_argument("a chunk of text is at most 2 GiB");
    const char* const begin = reinterpret_cast<const char*>(text.data());
    const std::size_t size = text.size();
    svmlight::ParsedRows rows;
    {
        nb::gil_scoped_release released;
        rows = svmlight::parse(begin, size, {first_index, label_required, stop_after}, chosen);
    }
    nb::list bad;
    for (const svmlight::BadRow& row : rows.bad) {
        bad.append(nb::make_tuple(row.line, row.column, static_cast<int>(row.rule),
                                  nb::bytes(row.token.data(), row.token.size())));
    }
    const std::size_t nonzeros = static_cast<std::size_t>(rows.indptr.back());
    return nb::make_tuple(read_only_copy(rows.indptr), read_only(std::move(rows.indices), nonzeros),
                          read_only(std::move(rows.values), nonzeros), rows.width, copied(rows.labels),
                          rows.importances.empty() ? nb::object(nb::none()) : nb::cast(copied(rows.importances)),
                          rows.tags.empty() ? nb::object(nb::none()) : nb::cast(copied(rows.tags)), copied(rows.lines),
                          copied(rows.columns), rows.lines_read, bad);
}

}  // namespace

void bind_readers(nb::module_& m) {
    m.def("parse_svmlight", &parse_svmlight, no_convert("text"), no_convert("first_index") = 1,
          no_convert("label_required") = true, no_convert("stop_after") = 1, no_convert("isa") = "");
}

}  // namespace rarestream
