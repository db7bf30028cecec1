// Rows of column numbers as JSON: a list of [index, value] per line, as in [[0, 1.5], [7, 1]]. Indices count from 0 and may
// come in any order; the values of equal ones are added. Blank lines are skipped.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "json.hpp"
#include "parsed_rows.hpp"
#include "svmlight_number.hpp"

namespace rarestream::json {

enum class PairRule : int {  // the messages are in serve/rows.py
    list = 1,                // a row that is not a list
    pair = 2,                // an entry that is not a list of an index and a value
    index = 3,               // not a whole number
    negative = 4,
    index_large = 5,
    value = 6,  // not a number
    value_large = 7,
    comma = 8,
    incomplete = 9,  // the line ends within the row
    trailing = 10,   // text after the row
    many = 11,       // more entries than the limit
    sum = 12,        // duplicates sum to a value beyond float32
};

struct PairLimits {
    std::int64_t features = INT32_MAX;  // indices are below it
    std::int64_t nonzeros = std::numeric_limits<std::int64_t>::max();
};

// A parser of rows that are lists of pairs, as a model keeps it.
struct PairsParser {
    PairLimits limits;
};

// Within a line, methods take the place where to read, and return where they stopped, or nullptr after `break_rule`.
class Pairs {
public:
    Pairs(const PairLimits& limits, std::int64_t stop_after, ParsedRows& rows)
        : limits_(limits), stop_after_(stop_after), rows_(rows) {}

    // The text consists of whole lines; the last line end may be missing.
    void parse(const char* text, std::size_t size) {
        const char* const end = text + size;
        const std::size_t most = size / SHORTEST_PAIR + 1;
        rows_.indices = pooled<std::int32_t>(most);
        rows_.values = pooled<float>(most);
        for (const char* at = text; at != end;) {
            const char* stop = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
            const char* const next = stop ? stop + 1 : end;
            ++rows_.lines_read;
            line_ = at;
            end_ = stop ? stop : end;
            if (!stop) {  // where a line end stops whoever reads too far
                last_.assign(at, end).push_back('\n');
                line_ = last_.data();
                end_ = line_ + (end - at);
            }
            at = next;
            const char* const first = space(line_);
            if (first == end_) continue;  // a blank line
            whole_row(first);
            if (static_cast<std::int64_t>(rows_.bad.size()) >= stop_after_) return;
        }
    }

private:
    static constexpr std::size_t SHORTEST_PAIR = 5;  // [0,1]

    void whole_row(const char* at) {
        begin_ = filled_ = rows_.indptr.back();
        at = entries(at);
        if (at && (at = space(at)) != end_) at = break_rule(PairRule::trailing, at);
        if (at && !ascending_) {
            filled_ = begin_ + canonicalise_row(rows_.indices.get() + begin_, rows_.values.get() + begin_, filled_ - begin_,
                                                scratch_);
            const float* const values = rows_.values.get();
            if (!std::all_of(values + begin_, values + filled_, fits)) at = break_rule(PairRule::sum, line_);
        }
        if (!at) return;
        rows_.indptr.push_back(filled_);
        rows_.labels.push_back(std::numeric_limits<double>::quiet_NaN());
        rows_.lines.push_back(rows_.lines_read);
        rows_.columns.push_back(1);
        if (filled_ > begin_) {
            rows_.width = std::max<std::int64_t>(rows_.width, std::int64_t{rows_.indices[filled_ - 1]} + 1);
        }
    }

    const char* entries(const char* at) {
        ascending_ = true;
        if (*at != '[') return break_rule(PairRule::list, at);
        at = space(at + 1);
        if (*at == ']') return at + 1;
        for (std::int64_t previous = -1;;) {
            std::int32_t index = 0;
            float value = 0;
            if (*at != '[') return break_rule(PairRule::pair, at);
            if (!(at = index_at(space(at + 1), index))) return nullptr;
            if (*(at = space(at)) != ',') return break_rule(PairRule::pair, at);
            if (!(at = value_at(space(at + 1), value))) return nullptr;
            if (*(at = space(at)) != ']') return break_rule(PairRule::pair, at);
            if (filled_ - begin_ == limits_.nonzeros) return break_rule(PairRule::many, at);
            rows_.indices[static_cast<std::size_t>(filled_)] = index;
            rows_.values[static_cast<std::size_t>(filled_++)] = value;
            ascending_ &= index > previous;
            previous = index;
            at = space(at + 1);
            if (*at == ']') return at + 1;
            if (*at != ',') return break_rule(PairRule::comma, at);
            at = space(at + 1);
        }
    }

    const char* index_at(const char* begin, std::int32_t& index) {
        bool whole = false;
        const char* const at = number_end(begin, whole);
        if (!at || !whole || is_word(*at)) return break_rule(PairRule::index, begin);
        const bool minus = *begin == '-';
        std::int64_t number = 0;
        for (const char* digit = begin + minus; digit != at; ++digit) {
            if (number <= INT32_MAX) number = number * 10 + (*digit - '0');
        }
        if (minus && number) return break_rule(PairRule::negative, begin);
        if (number >= limits_.features) return break_rule(PairRule::index_large, begin);
        index = static_cast<std::int32_t>(number);
        return at;
    }

    const char* value_at(const char* begin, float& value) {
        bool whole = false;
        double number = 0;
        const char* const at = number_end(begin, whole);
        if (!at || is_word(*at)) return break_rule(PairRule::value, begin);
        const bool read = svmlight::parse_number(begin, at, number) == svmlight::ParsedNumber::ok;
        value = static_cast<float>(number);
        return read && fits(value) ? at : break_rule(PairRule::value_large, begin);
    }

    static bool fits(float value) { return std::fabs(value) <= std::numeric_limits<float>::max(); }

    static const char* space(const char* at) {
        while (*at == ' ' || *at == '\t' || *at == '\r') ++at;
        return at;
    }

    const char* break_rule(PairRule rule, const char* place) {
        if (place == end_ && rule != PairRule::sum) rule = PairRule::incomplete;
        const char* stop = place;
        if (rule != PairRule::sum) {
            while (stop != end_ && *stop != ',' && *stop != ']' && *stop != '}' && *stop != ' ') ++stop;
            if (stop == place && stop != end_) ++stop;
        }
        const std::size_t shown = std::min<std::size_t>(static_cast<std::size_t>(stop - place), LONGEST_TOKEN);
        rows_.bad.push_back({rows_.lines_read, place - line_ + 1, static_cast<int>(rule), std::string(place, shown)});
        return nullptr;
    }

    const PairLimits limits_;
    const std::int64_t stop_after_;
    ParsedRows& rows_;
    std::string last_;
    std::vector<std::pair<std::int32_t, float>> scratch_;
    // The current row.
    const char* line_ = nullptr;
    const char* end_ = nullptr;
    std::int64_t begin_ = 0, filled_ = 0;
    bool ascending_ = true;
};

}  // namespace rarestream::json
