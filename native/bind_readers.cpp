// Python bindings of the parsers of text formats.
#include "arrays.hpp"
#include "parsed_rows_tuple.hpp"
#include "svmlight.hpp"

#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

namespace rarestream {

namespace {

nb::tuple parse_svmlight(In<std::uint8_t> text, int first_index, bool label_required, std::int64_t stop_after,
                         const std::string& isa) {
    const Isa chosen = isa_named(isa);
    if (text.size() > (std::size_t{1} << 31)) throw std::invalid_argument("a chunk of text is at most 2 GiB");
    const char* const begin = reinterpret_cast<const char*>(text.data());
    const std::size_t size = text.size();
    ParsedRows rows;
    {
        nb::gil_scoped_release released;
        rows = svmlight::parse(begin, size, {first_index, label_required, stop_after}, chosen);
    }
    return parsed_rows_tuple(std::move(rows));
}

}  // namespace

void bind_readers(nb::module_& m) {
    m.def("parse_svmlight", &parse_svmlight, no_convert("text"), no_convert("first_index") = 1,
          no_convert("label_required") = true, no_convert("stop_after") = 1, no_convert("isa") = "");
}

}  // namespace rarestream
