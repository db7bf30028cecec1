// The object behind the table formats: a plan, and what each thread keeps from chunk to chunk.
#pragma once

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "dict_keys.hpp"
#include "features/table.hpp"
#include "parsed_rows_tuple.hpp"

namespace rarestream {

struct TableParser {
    features::TablePlan plan;
    features::Workers workers;
    dicts::Keys keys;  // of rows that are dicts, which are read with the GIL

    // Runs `parse(encoder, rows)` without the GIL and returns the rows.
    template <class Parse>
    nb::tuple rows(const Parse& parse) {
        ParsedRows rows;
        {
            nb::gil_scoped_release released;
            encode(rows, parse);
        }
        return parsed_rows_tuple(std::move(rows));
    }

    // The same for rows that stay here: the GIL is up to the caller.
    template <class Parse>
    void encode(ParsedRows& rows, const Parse& parse) {
        features::Worker& worker = workers.mine(plan);
        const bool forgets = plan.forgets && worker.filter;
        if (forgets) rows.names.most_text = features::MOST_NAMES_OF_REQUEST;
        try {
            features::TableEncoder encoder(plan, worker, rows);
            parse(encoder, rows);
        } catch (...) {  // what was collected so far is lost
            if (forgets) worker = features::Worker(plan);
            throw;
        }
        if (forgets) worker.forget(rows.names);
    }
};

// The counts of a survey: (rows, [(name, whole, decimal, date, text, list, map), ...]).
inline nb::tuple survey_tuple(const features::TableSurvey& survey) {
    nb::list columns;
    for (const features::ColumnCounts& column : survey.columns) {
        columns.append(nb::make_tuple(python_text(column.name), column.whole, column.decimal, column.date, column.text,
                                      column.list, column.map));
    }
    return nb::make_tuple(survey.rows, columns);
}

inline std::pair<const char*, std::size_t> text_of(const In<std::uint8_t>& text) {
    if (text.size() > (std::size_t{1} << 31)) throw std::invalid_argument("a chunk of text is at most 2 GiB");
    return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void bind_json(nb::module_& m, nb::class_<TableParser>& parser);

}  // namespace rarestream
