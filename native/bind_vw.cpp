// Python bindings of the parser of Vowpal Wabbit text.
#include "arrays.hpp"
#include "features/per_thread.hpp"
#include "parsed_rows_tuple.hpp"
#include "table_parser.hpp"
#include "vw.hpp"

#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace rarestream {

namespace {

// What is kept from chunk to chunk: the names that each thread has seen.
struct VwParser {
    int bits;
    bool names;
    bool forgets;  // whether the names of a text do not depend on what was parsed before
    features::PerThread<features::NameFilter> filters = {};
};

void start(VwParser* made, int bits, bool names, bool forgets) {
    if (bits < 1 || bits > 30) throw std::invalid_argument("bits must be between 1 and 30");
    new (made) VwParser{bits, names, forgets};
}

nb::tuple parse(VwParser& parser, In<std::uint8_t> text, std::int64_t stop_after, const std::string& isa) {
    const auto [begin, size] = text_of(text);
    const Isa chosen = isa_named(isa);
    ParsedRows rows;
    {
        nb::gil_scoped_release released;
        features::NameFilter* const filter =
            parser.names ? &parser.filters.mine([] { return std::make_unique<features::NameFilter>(); }) : nullptr;
        const bool forgets = parser.forgets && filter;
        if (forgets) rows.names.most_text = features::MOST_NAMES_OF_REQUEST;
        try {
            vw::Parser({parser.bits, stop_after}, chosen, filter, rows).parse(begin, size);
        } catch (...) {  // what was collected so far is lost
            if (forgets) *filter = features::NameFilter();
            throw;
        }
        if (forgets) {
            for (const std::uint32_t hash : rows.names.hashes) filter->forget(hash);
        }
    }
    return parsed_rows_tuple(std::move(rows));
}

}  // namespace

void bind_vw(nb::module_& m) {
    nb::class_<VwParser>(m, "VwParser")
        .def("__init__", &start, nb::kw_only(), no_convert("bits"), no_convert("names"), no_convert("forgets") = false)
        .def("parse", &parse, no_convert("text"), nb::kw_only(), no_convert("stop_after"), no_convert("isa") = "");
}

}  // namespace rarestream
