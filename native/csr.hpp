// What makes rows valid: indices ascend without duplicates, values are finite. Rows in another order are sorted and their
// duplicates summed; any other fault is reported with its row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rarestream {

// Limits of an importance that is not 0; blocks.py has the same. Larger ones would overflow float32 in a step, and the
// squares of smaller ones underflow.
constexpr double SMALLEST_IMPORTANCE = 1e-100, LARGEST_IMPORTANCE = 1e12;

enum class CsrFault : int { none = 0, indptr = 1, index = 2, value = 3, changed = 4, sum = 5 };

struct CsrCheck {
    CsrFault fault = CsrFault::none;
    std::int64_t row = 0, position = 0;  // where the first fault is
};

inline CsrCheck check_indptr(const std::int64_t* indptr, std::int64_t rows, std::int64_t nonzeros) {
    bool sound = indptr[0] == 0 && indptr[rows] == nonzeros;
    if (!sound) return {CsrFault::indptr};
    for (std::int64_t i = 0; i < rows; ++i) sound &= indptr[i] <= indptr[i + 1];
    if (sound) return {};
    std::int64_t row = 0;
    while (row + 1 < rows && indptr[row] <= indptr[row + 1]) ++row;
    return {CsrFault::indptr, row};
}

// Where the first invalid entry is. These arrays belong to the caller, who may change them at any time.
template <class Index, class Value>
CsrCheck first_fault(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros) {
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t p = std::max<std::int64_t>(0, indptr[i]); p < std::min(indptr[i + 1], nonzeros); ++p) {
            const std::int64_t j = static_cast<std::int64_t>(indices[p]);
            const bool bad_index = j < 0 || j >= INT32_MAX;
            if (bad_index || !std::isfinite(static_cast<float>(values[p])))
                return {bad_index ? CsrFault::index : CsrFault::value, i, p};
        }
    }
    return {CsrFault::changed};  // another thread has changed the arrays: they are valid now
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
