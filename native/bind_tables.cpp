// Python bindings of the parsers of tables.
#include "arrays.hpp"
#include "csv.hpp"
#include "picked_tuple.hpp"
#include "table_parser.hpp"
#include "text.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace rarestream {

namespace {

using ColumnArgument = std::tuple<std::string, unsigned, int>;   // name, kinds, role
using RequestLimits = std::pair<std::int64_t, std::size_t>;      // features of a row, bytes of a name
using CrossArgument = std::pair<std::string, std::vector<int>>;  // name, numbers of its columns

void start(TableParser* made, int bits, bool names, const std::vector<ColumnArgument>& columns,
           const std::vector<CrossArgument>& crosses, const std::vector<std::string>& missing, bool raw, bool counts,
           bool open, bool characters, int shortest, int longest, const std::optional<RequestLimits>& request) {
    if (bits < 1 || bits > 30) throw std::invalid_argument("bits must be between 1 and 30");
    if (shortest < 1 || longest < shortest || longest > 16)
        throw std::invalid_argument("n-grams have 1 to 16 words or characters");
    new (made) TableParser();
    features::TablePlan& plan = made->plan;
    plan.bits = bits;
    plan.names = names;
    plan.raw = raw;
    plan.counts = counts;
    plan.open = open;
    plan.characters = characters;
    plan.shortest = shortest;
    plan.longest = longest;
    plan.missing = missing;
    if (request) {
        plan.most_features = request->first;
        plan.longest_name = request->second;
        plan.forgets = true;
    }
    for (const auto& [name, kinds, role] : columns) plan.add_column(name, kinds, static_cast<features::Role>(role));
    for (const auto& [name, parts] : crosses) {
        for (const int c : parts) {
            if (c < 0 || c >= static_cast<int>(columns.size()))
                throw std::invalid_argument("a cross names a column that is not there");
        }
        plan.crosses.push_back({name, features::murmur3(name, 0), parts});
    }
    plan.finish();
}

csv::Dialect dialect_of(const std::string& delimiter, const std::string& quote) {
    if (delimiter.size() != 1 || quote.size() > 1) throw std::invalid_argument("delimiter and quote are one byte each");
    return {delimiter[0], quote.empty() ? '\0' : quote[0]};
}

nb::tuple parse_csv(TableParser& parser, In<std::uint8_t> text, const std::vector<int>& columns,
                    const std::string& delimiter, const std::string& quote, bool skip_header, std::int64_t stop_after) {
    const auto [begin, size] = text_of(text);
    for (const int c : columns) {
        if (c >= static_cast<int>(parser.plan.columns.size())) throw std::invalid_argument("no such column in the plan");
    }
    const csv::Options options{dialect_of(delimiter, quote), skip_header, stop_after};
    return parser.rows([&, begin = begin, size = size](features::TableEncoder& encoder, ParsedRows& rows) {
        csv::Parser<features::TableEncoder>(encoder, columns, options, rows).parse(begin, size);
    });
}

nb::tuple parse_text(TableParser& parser, In<std::uint8_t> text, int label, int words, std::int64_t stop_after) {
    const auto [begin, size] = text_of(text);
    for (const int c : {label, words}) {
        if (c < 0 || c >= static_cast<int>(parser.plan.columns.size()))
            throw std::invalid_argument("no such column in the plan");
    }
    return parser.rows([&, begin = begin, size = size](features::TableEncoder& encoder, ParsedRows& rows) {
        text::parse(begin, size, encoder, label, words, stop_after, rows);
    });
}

nb::tuple survey_csv(In<std::uint8_t> text, const std::vector<std::string>& names, const std::vector<std::string>& missing,
                     const std::string& delimiter, const std::string& quote, bool skip_header) {
    const auto [begin, size] = text_of(text);
    features::TableSurvey survey(missing);
    std::vector<int> columns;
    for (const std::string& name : names) columns.push_back(survey.other_column(name));
    const csv::Options options{dialect_of(delimiter, quote), skip_header, INT64_MAX};
    ParsedRows rows;
    {
        nb::gil_scoped_release released;
        csv::Parser<features::TableSurvey>(survey, columns, options, rows).parse(begin, size);
    }
    return survey_tuple(survey);
}

// `columns` has the picking::Role of each cell of a row, -1 for none; `names` are those of the roles.
nb::tuple pick_csv(In<std::uint8_t> text, const std::vector<int>& columns, const std::vector<std::string>& names,
                   const std::string& delimiter, const std::string& quote, bool skip_header, bool rows, bool label,
                   std::int64_t stop_after) {
    const auto [begin, size] = text_of(text);
    for (const int role : columns) {
        if (role < -1 || role >= picking::ROLES) throw std::invalid_argument("no such role");
    }
    const csv::Options options{dialect_of(delimiter, quote), skip_header, stop_after};
    ParsedRows parsed;
    picking::Picker picker({rows, label, false}, names, parsed);
    {
        nb::gil_scoped_release released;
        csv::Parser<picking::Picker>(picker, columns, options, parsed).parse(begin, size);
    }
    return picked_tuple(picker, parsed);
}

// Where the last whole row of the first bytes ends, and where a quote opens that is not closed, or -1.
std::pair<std::size_t, std::ptrdiff_t> csv_row_end(In<std::uint8_t> text, std::size_t filled, const std::string& delimiter,
                                                   const std::string& quote) {
    const auto [begin, size] = text_of(text);
    const csv::Dialect dialect = dialect_of(delimiter, quote);
    std::ptrdiff_t open;
    nb::gil_scoped_release released;
    const std::size_t end = csv::end_of_rows(begin, std::min(filled, size), dialect, open);
    return {end, open};
}

}  // namespace

void bind_tables(nb::module_& m) {
    nb::class_<TableParser> parser(m, "TableParser");
    parser
        .def("__init__", &start, nb::kw_only(), no_convert("bits"), no_convert("names"), nb::arg("columns"),
             nb::arg("crosses"), nb::arg("missing"), no_convert("raw"), no_convert("counts"), no_convert("open"),
             no_convert("characters"), no_convert("shortest"), no_convert("longest"), nb::arg("request") = nb::none())
        .def("parse_csv", &parse_csv, no_convert("text"), nb::kw_only(), nb::arg("columns"), no_convert("delimiter"),
             no_convert("quote"), no_convert("skip_header"), no_convert("stop_after"))
        .def("parse_text", &parse_text, no_convert("text"), nb::kw_only(), no_convert("label"), no_convert("words"),
             no_convert("stop_after"));
    m.def("survey_csv", &survey_csv, no_convert("text"), nb::kw_only(), nb::arg("names"), nb::arg("missing"),
          no_convert("delimiter"), no_convert("quote"), no_convert("skip_header"));
    m.def("pick_csv", &pick_csv, no_convert("text"), nb::kw_only(), nb::arg("columns"), nb::arg("names"),
          no_convert("delimiter"), no_convert("quote"), no_convert("skip_header"), no_convert("rows"), no_convert("label"),
          no_convert("stop_after"));
    m.def("csv_row_end", &csv_row_end, no_convert("text"), no_convert("filled"), nb::kw_only(), no_convert("delimiter"),
          no_convert("quote"));
    bind_json(m, parser);
}

}  // namespace rarestream
