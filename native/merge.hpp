// Merging the states of groups that learned apart, from the same state, in one round. Maths:
// src/rarestream/groups/merging.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace rarestream {

// How a number of a coordinate is merged; the order is that of MERGE_RULES in learners/state.py.
enum class MergeRule : std::int8_t {
    mean = 0,  // b + sum of share (x - b)
    root = 1,  // the root of such a mean of squares
    sum = 2,   // b + sum of (x - b)
};

// What one group has made of the coordinates that its rows have.
template <class Real>
struct GroupPart {
    const std::int32_t* index;  // ascending
    const Real* numbers;        // [count][columns]
    std::int64_t count;
    double share;  // of the rows of the round
};

// Merges parts into a table of `columns` numbers for each coordinate. Sums are float64, in the order of the parts, and
// depend on nothing else: a coordinate is merged in the same way whatever coordinates are merged beside it.
template <class Real>
void merge_tables(Real* table, std::int64_t columns, const MergeRule* rules, const std::vector<GroupPart<Real>>& parts) {
    constexpr std::int64_t TOGETHER = 4096;  // coordinates
    std::vector<double> totals(static_cast<std::size_t>(TOGETHER * columns));
    std::vector<char> changed(static_cast<std::size_t>(TOGETHER));
    std::vector<std::int64_t> at(parts.size());
    while (true) {
        std::int64_t first = INT64_MAX;
        for (std::size_t p = 0; p < parts.size(); ++p)
            if (at[p] < parts[p].count) first = std::min<std::int64_t>(first, parts[p].index[at[p]]);
        if (first == INT64_MAX) return;
        std::fill(totals.begin(), totals.end(), 0.0);
        std::fill(changed.begin(), changed.end(), char{0});
        for (std::size_t p = 0; p < parts.size(); ++p) {
            const GroupPart<Real>& part = parts[p];
            for (; at[p] < part.count && part.index[at[p]] < first + TOGETHER; ++at[p]) {
                const std::int64_t slot = part.index[at[p]] - first;
                const Real *const base = table + (first + slot) * columns, *const mine = part.numbers + at[p] * columns;
                double* const total = totals.data() + slot * columns;
                for (std::int64_t c = 0; c < columns; ++c) {
                    const double b = base[c], x = mine[c];
                    total[c] += rules[c] == MergeRule::root   ? part.share * (x * x - b * b)
                                : rules[c] == MergeRule::mean ? part.share * (x - b)
                                                              : x - b;
                }
                changed[static_cast<std::size_t>(slot)] = 1;
            }
        }
        for (std::int64_t slot = 0; slot < TOGETHER; ++slot) {
            if (!changed[static_cast<std::size_t>(slot)]) continue;
            Real* const base = table + (first + slot) * columns;
            const double* const total = totals.data() + slot * columns;
            for (std::int64_t c = 0; c < columns; ++c) {
                const double b = base[c];
                const double merged =
                    rules[c] == MergeRule::root ? std::sqrt(std::max(0.0, b * b + total[c])) : b + total[c];
                base[c] = static_cast<Real>(merged);
            }
        }
    }
}

}  // namespace rarestream
