// The rule for rows, in one place: indices ascending and unique, values finite. A row that breaks the order is put in
// order, duplicates summed; what cannot be repaired is reported with its row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rarestream {

// Of a row that counts; blocks.py says so, too. Steps of rows that weigh more would leave float32, and squares of less vanish.
constexpr double SMALLEST_IMPORTANCE = 1e-100, LARGEST_IMPORTANCE = 1e12;

enum class Fault : int { none = 0, pointers = 1, index = 2, value = 3, changed = 4, sum = 5 };

struct Survey {
    Fault fault = Fault::none;
    std::int64_t row = 0, position = 0;  // where the first fault is
    std::int64_t width = 0;              // largest index + 1
    bool canonical = true;               // ascending and unique everywhere
};

inline Survey check_pointers(const std::int64_t* indptr, std::int64_t rows, std::int64_t nonzeros) {
    Survey found;
    bool sound = indptr[0] == 0 && indptr[rows] == nonzeros;
    if (!sound) found.fault = Fault::pointers;
    for (std::int64_t i = 0; sound && i < rows; ++i) {
        if (indptr[i] <= indptr[i + 1]) continue;
        found.fault = Fault::pointers;
        found.row = i;
        sound = false;
    }
    return found;
}

// Row pointers copied to where nobody else can change them, and checked there.
inline Survey copy_pointers(const std::int64_t* from, std::int64_t rows, std::int64_t nonzeros, std::int64_t* indptr) {
    std::copy(from, from + rows + 1, indptr);
    return check_pointers(indptr, rows, nonzeros);
}

// One pass over the rows: copies them, each entry read once, and says of the copy whether it is sound and canonical, and how
// wide it is. What the caller does to its own arrays meanwhile or later changes nothing that was checked here. Without
// `to_indices` the copy is thrown away, a run at a time: for a caller who only wants to know.
template <class Index, class Value>
Survey copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                 std::int64_t nonzeros, std::int32_t* to_indices, float* to_values) {
    constexpr float LARGEST = std::numeric_limits<float>::max();
    constexpr std::int64_t RUN = 2048;  // entries at a time: looked at twice while they are in the nearest cache
    constexpr std::int32_t EXPONENT = 0x7F800000;  // all its bits are set in NaN and infinity, and in nothing else
    Survey found;
    // Without branches and in whole numbers, so that the compiler does several entries at a time.
    std::int32_t largest = -1, odd = 0, before = -1;
    std::int64_t falls = 0, allowed = 0, row = 1;
    std::int32_t some_indices[RUN];
    float some_values[RUN];
    for (std::int64_t start = 0; start < nonzeros; start += RUN) {
        const std::int64_t stop = start + RUN < nonzeros ? start + RUN : nonzeros;
        std::int32_t* const __restrict at = to_indices ? to_indices + start : some_indices;
        float* const __restrict x = to_indices ? to_values + start : some_values;
        const Index* const from = indices + start;
        const Value* const of = values + start;
        const std::int32_t run = static_cast<std::int32_t>(stop - start);
        Index beyond = 0;  // the bits of all indices: one that is negative, or too long for int32, has bit 31 set or a higher one
        for (std::int32_t p = 0; p < run; ++p) {
            const Index j = from[p];
            beyond |= j;
            at[p] = static_cast<std::int32_t>(j);
        }
        for (std::int32_t p = 0; p < run; ++p) x[p] = static_cast<float>(of[p]);
        for (std::int32_t p = 0; p < run; ++p) {
            std::int32_t bits;
            std::memcpy(&bits, x + p, sizeof bits);
            odd |= (bits & EXPONENT) == EXPONENT;
        }
        odd |= beyond >> 31 != 0;
        std::int32_t most = -1, fell = 0;
        for (std::int32_t p = 0; p < run; ++p) most = at[p] > most ? at[p] : most;
        for (std::int32_t p = 1; p < run; ++p) fell += at[p] <= at[p - 1];
        fell += at[0] <= before;
        // Only the first entry of a row need not exceed the one before it.
        for (; row < rows && indptr[row] < stop; ++row) {
            const std::int64_t p = indptr[row] - start;  // may have changed, if nobody has copied the pointers
            if (indptr[row] > indptr[row - 1] && p >= 0 && p < run) allowed += at[p] <= (p > 0 ? at[p - 1] : before);
        }
        before = at[run - 1];
        largest = most > largest ? most : largest;
        falls += fell;
    }
    if (odd || largest == INT32_MAX) {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t p = std::max<std::int64_t>(0, indptr[i]); p < std::min(indptr[i + 1], nonzeros); ++p) {
                const std::int64_t j = static_cast<std::int64_t>(indices[p]);
                const bool bad_index = j < 0 || j >= INT32_MAX;
                if (!bad_index && std::fabs(static_cast<float>(values[p])) <= LARGEST) continue;
                found.fault = bad_index ? Fault::index : Fault::value;
                found.row = i;
                found.position = p;
                return found;
            }
        }
        found.fault = Fault::changed;  // the caller's arrays are sound now, and were not a moment ago
        return found;
    }
    found.canonical = falls == allowed;
    found.width = static_cast<std::int64_t>(largest) + 1;
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
