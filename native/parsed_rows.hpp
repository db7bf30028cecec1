// What the parsers of all formats return: rows in CSR form, what they say of themselves, and the rows that break a rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "features/new_names.hpp"
#include "pool.hpp"

namespace rarestream {

constexpr std::size_t LONGEST_TOKEN = 64;  // bytes of the text of a bad row that are kept for its message

struct BadRow {
    std::int64_t line, column;  // from 1; bytes. Of rows that are not lines of text: the row's number from 0, and 0
    int rule;                   // what it breaks; the format's Python module has the messages
    std::string token;          // the offending text, shortened
    std::string field = {};     // the table's column, where there is one
};

struct ParsedRows {
    PooledArray<std::int32_t> indices;
    PooledArray<float> values;
    std::vector<std::int64_t> indptr{0};
    std::vector<double> labels;         // as written, NaN: none; with label_texts: the number of the text
    std::vector<std::int64_t> lines;    // of each row, from 1
    std::vector<std::int32_t> columns;  // position of its label
    std::vector<double> importances;    // empty unless some row has one
    std::vector<std::int64_t> tags;     // empty unless some row has a number as its tag; -1 where there is none
    std::string tag_text;               // tags that are text, one after the other
    std::vector<std::size_t> tag_ends;  // of each row in tag_text; empty unless some row has such a tag
    std::vector<std::string> label_texts;
    bool labels_are_texts = false;
    std::vector<BadRow> bad;
    std::int64_t width = 0;
    std::int64_t lines_read = 0;
    features::NewNames names;

    void keep_importance(double importance) {
        const std::size_t n = labels.size();
        if (importance == 1 && importances.empty()) return;
        importances.resize(n, 1);
        importances[n - 1] = importance;
    }

    void keep_tag(std::string_view tag) {
        if (tag.empty() && tag_ends.empty()) return;
        tag_ends.resize(labels.size() - 1, tag_text.size());
        tag_text.append(tag);
        tag_ends.push_back(tag_text.size());
    }
};

}  // namespace rarestream
