// The rule for rows, in one place: indices ascending and unique, values finite. A row that breaks the order is put in
// order, duplicates summed; what cannot be repaired is reported with its row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <cstdint>
#include <vector>

namespace rarestream {

enum class Fault : int { none = 0, pointers = 1, index = 2, value = 3 };

struct Survey {
    Fault fault = Fault::none;
    std::int64_t row = 0, position = 0;  // where the first fault is
    std::int64_t width = 0;              // largest index + 1
    bool canonical = true;               // ascending and unique everywhere
};

// One pass over the rows: are they sound, are they canonical, how wide are they?
template <class Index, class Value>
Survey survey(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
              std::int64_t nonzeros) {
    Survey found;
    std::int64_t largest = -1;
    if (rows < 0 || indptr[0] != 0 || indptr[rows] != nonzeros) {
        found.fault = Fault::pointers;
        return found;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
        if (indptr[i + 1] < indptr[i] || indptr[i + 1] > nonzeros) {
            found.fault = Fault::pointers;
            found.row = i;
            return found;
        }
        std::int64_t previous = -1;
        bool sound = true, ascending = true;
        for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
            const std::int64_t j = static_cast<std::int64_t>(indices[p]);
            const float x = static_cast<float>(values[p]);
            sound &= j >= 0 && j < INT32_MAX && std::fabs(x) <= std::numeric_limits<float>::max();
            ascending &= j > previous;
            previous = j;
            largest = std::max(largest, j);
        }
        if (!sound) {
            for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
                const std::int64_t j = static_cast<std::int64_t>(indices[p]);
                const bool bad_index = j < 0 || j >= INT32_MAX;
                if (bad_index || !(std::fabs(static_cast<float>(values[p])) <= std::numeric_limits<float>::max())) {
                    found.fault = bad_index ? Fault::index : Fault::value;
                    found.row = i;
                    found.position = p;
                    return found;
                }
            }
        }
        found.canonical &= ascending;
    }
    found.width = largest + 1;
    return found;
}

// Sorts one row in place and sums duplicates; returns the entries left. A sum in double: the order of duplicates
// in the input then matters as little as it can.
inline std::int64_t canonicalise_row(std::int32_t* indices, float* values, std::int64_t size,
                                     std::vector<std::pair<std::int32_t, float>>& scratch) {
    bool ascending = true;
    for (std::int64_t p = 1; p < size; ++p) ascending &= indices[p] > indices[p - 1];
    if (ascending) return size;
    scratch.clear();
    for (std::int64_t p = 0; p < size; ++p) scratch.emplace_back(indices[p], values[p]);
    std::stable_sort(scratch.begin(), scratch.end(), [](auto& l, auto& r) { return l.first < r.first; });
    std::int64_t kept = 0;
    for (std::int64_t p = 0; p < size;) {
        const std::int32_t j = scratch[p].first;
        double sum = 0;
        for (; p < size && scratch[p].first == j; ++p) sum += scratch[p].second;
        indices[kept] = j;
        values[kept++] = static_cast<float>(sum);
    }
    return kept;
}

}  // namespace rarestream
