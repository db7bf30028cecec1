// Rows of any accepted types copied into those of a Block, in one pass that also says whether they keep its rules.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Each entry is read once: what the caller does to its own arrays meanwhile or later changes nothing that was seen here.
// Without `to_indices` or `to_values`, these are only looked at.
template <class Index, class Value>
CopiedRows copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values) {
    constexpr std::int64_t RUN = 2048;  // entries at a time: looked at twice while they are in the nearest cache
    constexpr std::uint32_t EXPONENT = 0x7F800000;  // all its bits are set in NaN and infinity, and in nothing else
    // Without branches and in whole numbers, so that the compiler does several entries at a time.
    std::int32_t largest = -1, before = -1;
    bool odd = false;
    std::int64_t falls = 0, allowed = 0, row = 1;
    std::int32_t some_indices[RUN];
    float some_values[RUN];
    for (std::int64_t start = 0; start < nonzeros; start += RUN) {
        const std::int32_t run = static_cast<std::int32_t>(start + RUN < nonzeros ? RUN : nonzeros - start);
        std::int32_t* const __restrict at = to_indices ? to_indices + start : some_indices;
        float* const __restrict x = to_values ? to_values + start : some_values;
        const Index* const __restrict from = indices + start;
        const Value* const __restrict of = values + start;
        Index beyond = 0;  // the bits of all indices: one that is negative, or too long for int32, has bit 31 set or a higher one
        for (std::int32_t p = 0; p < run; ++p) {
            const Index j = from[p];
            beyond |= j;
            at[p] = static_cast<std::int32_t>(j);
        }
        std::uint32_t infinite = 0;
        for (std::int32_t p = 0; p < run; ++p) {
            x[p] = static_cast<float>(of[p]);
            std::uint32_t bits;
            std::memcpy(&bits, x + p, sizeof bits);
            infinite |= (bits & EXPONENT) == EXPONENT;
        }
        odd |= infinite || beyond >> 31 != 0;
        std::int32_t most = at[0], fell = at[0] <= before;
        for (std::int32_t p = 1; p < run; ++p) {
            most = at[p] > most ? at[p] : most;
            fell += at[p] <= at[p - 1];
        }
        // Only the first entry of a row need not exceed the one before it.
        for (; row < rows && indptr[row] < start + run; ++row) {
            const std::int64_t p = indptr[row] - start;
            if (p < 0 || p >= run) break;  // pointers that nobody has copied may change
            allowed += (indptr[row] > indptr[row - 1]) & (at[p] <= (p > 0 ? at[p - 1] : before));
        }
        before = at[run - 1];
        largest = most > largest ? most : largest;
        falls += fell;
    }
    return {!odd && largest < INT32_MAX, falls == allowed, static_cast<std::int64_t>(largest) + 1};
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
