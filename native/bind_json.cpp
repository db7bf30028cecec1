// Python bindings of rows whose columns have names in every row: JSON lines and dicts.
#include "arrays.hpp"
#include "dicts.hpp"
#include "field_pairs.hpp"
#include "json.hpp"
#include "json_pairs.hpp"
#include "picked_tuple.hpp"
#include "table_parser.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace rarestream {

namespace {

nb::tuple parse_jsonl(TableParser& parser, In<std::uint8_t> text, std::int64_t stop_after) {
    const auto [begin, size] = text_of(text);
    return parser.rows([=, begin = begin, size = size](features::TableEncoder& encoder, ParsedRows& rows) {
        json::Parser<features::TableEncoder>(encoder, {stop_after, false}, rows, &encoder.json_keys()).parse(begin, size);
    });
}

using json::PairsParser;

void start_pairs(PairsParser* made, std::int64_t features, std::int64_t nonzeros) {
    if (features < 1 || features > INT32_MAX || nonzeros < 0) throw std::invalid_argument("no such limits of pairs");
    new (made) PairsParser{{features, nonzeros}};
}

// Runs `parse()` without the GIL if that pays: whoever releases it may have to wait for it.
template <class Parse>
void parse_request(const nb::bytes& text, const Parse& parse) {
    constexpr std::size_t LARGE = 1 << 15;
    if (text.size() < LARGE) return parse();
    nb::gil_scoped_release released;
    parse();
}

// The rows of a request, each an object, up to the first that is bad.
nb::tuple parse_objects(TableParser& parser, const nb::bytes& text) {
    ParsedRows rows;
    parse_request(text, [&, begin = text.c_str(), size = text.size()] {
        parser.encode(rows, [=](features::TableEncoder& encoder, ParsedRows& to) {
            json::Parser<features::TableEncoder>(encoder, {1, false}, to, &encoder.json_keys()).parse(begin, size);
        });
    });
    return request_tuple(std::move(rows));
}

nb::tuple parse_pairs(const PairsParser& parser, const nb::bytes& text) {
    ParsedRows rows;
    parse_request(
        text, [&, begin = text.c_str(), size = text.size()] { json::Pairs(parser.limits, 1, rows).parse(begin, size); });
    return request_tuple(std::move(rows));
}

nb::tuple survey_jsonl(In<std::uint8_t> text, const std::vector<std::string>& missing) {
    const auto [begin, size] = text_of(text);
    features::TableSurvey survey(missing);
    ParsedRows rows;
    {
        nb::gil_scoped_release released;
        json::Parser<features::TableSurvey>(survey, {INT64_MAX, true}, rows).parse(begin, size);
    }
    return survey_tuple(survey);
}

// `names` are the columns of the picking::Roles, empty for none. A last brace is left out of the rows.
nb::tuple pick_jsonl(In<std::uint8_t> text, const std::vector<std::string>& names, bool rows, bool label,
                     std::int64_t stop_after) {
    const auto [begin, size] = text_of(text);
    ParsedRows parsed;
    picking::Picker picker({rows, label, true}, names, parsed);
    {
        nb::gil_scoped_release released;
        json::Parser<picking::Picker>(picker, {stop_after, false}, parsed).parse(begin, size);
    }
    return picked_tuple(picker, parsed);
}

nb::tuple encode_dicts(TableParser& parser, const nb::list& dicts, std::int64_t stop_after) {
    ParsedRows rows;
    {
        features::TableEncoder encoder(parser.plan, parser.workers.mine(parser.plan), rows);
        dicts::Reader<features::TableEncoder>(encoder, rows, parser.keys).read(dicts, stop_after);
    }
    return parsed_rows_tuple(std::move(rows));
}

nb::tuple survey_dicts(const nb::list& dicts, const std::vector<std::string>& missing) {
    features::TableSurvey survey(missing);
    ParsedRows rows;
    dicts::Keys keys;
    dicts::Reader<features::TableSurvey>(survey, rows, keys).read(dicts, INT64_MAX);
    return survey_tuple(survey);
}

std::string_view bytes_of(PyObject* object) {
    if (!PyBytes_Check(object)) throw nb::type_error("the fields and texts of an entry are bytes");
    return {PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object))};
}

// The texts of an entry (id, [field, text, field, text, ...]) of a stream of Redis.
PyObject* texts_of(nb::handle entry) {
    PyObject* const pair = entry.ptr();
    if (!PyList_Check(pair) || PyList_GET_SIZE(pair) != 2 || !PyList_Check(PyList_GET_ITEM(pair, 1)) ||
        PyList_GET_SIZE(PyList_GET_ITEM(pair, 1)) % 2 != 0) {
        throw nb::type_error("an entry is a list of its id and a list of fields and texts");
    }
    return PyList_GET_ITEM(pair, 1);
}

// A JSON line for each entry. The lists are not changed meanwhile: no Python code runs.
nb::bytes lines_of_entries(const nb::list& entries) {
    field_pairs::Writer lines(entries.size() * 512);
    for (const nb::handle entry : entries) {
        PyObject* const texts = texts_of(entry);
        lines.raw("{");
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(texts); i += 2) {
            if (i != 0) lines.raw(",");
            lines.string(bytes_of(PyList_GET_ITEM(texts, i)));
            lines.raw(":");
            lines.value(bytes_of(PyList_GET_ITEM(texts, i + 1)));
        }
        lines.raw("}\n");
    }
    return nb::bytes(lines.written().data(), lines.written().size());
}

}  // namespace

void bind_json(nb::module_& m, nb::class_<TableParser>& parser) {
    parser.def("parse_jsonl", &parse_jsonl, no_convert("text"), nb::kw_only(), no_convert("stop_after"))
        .def("parse_objects", &parse_objects, no_convert("text"))
        .def("encode_dicts", &encode_dicts, no_convert("rows"), nb::kw_only(), no_convert("stop_after"));
    nb::class_<PairsParser>(m, "PairsParser")
        .def("__init__", &start_pairs, nb::kw_only(), no_convert("features"), no_convert("nonzeros"))
        .def("parse", &parse_pairs, no_convert("text"));
    m.def("survey_jsonl", &survey_jsonl, no_convert("text"), nb::kw_only(), nb::arg("missing"));
    m.def("pick_jsonl", &pick_jsonl, no_convert("text"), nb::kw_only(), nb::arg("names"), no_convert("rows"),
          no_convert("label"), no_convert("stop_after"));
    m.def("lines_of_entries", &lines_of_entries, no_convert("entries"));
    m.def("survey_dicts", &survey_dicts, no_convert("rows"), nb::kw_only(), nb::arg("missing"));
}

}  // namespace rarestream
