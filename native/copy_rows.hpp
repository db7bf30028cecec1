// Rows of any accepted types copied to the types of a Block, in one pass that also checks whether they are valid.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Each entry is read once, so a caller that changes its arrays meanwhile or later does not change what was checked. Without
// `to_indices` or `to_values` these are only checked.
template <class Index, class Value>
CopyResult copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values) {
    constexpr std::int64_t CHUNK = 2048;            // entries at a time: they are read twice while they are in the L1 cache
    constexpr std::uint32_t EXPONENT = 0x7F800000;  // all its bits are set in NaN and infinity, and in nothing else
    // Without branches and in integers, so that the compiler vectorises it.
    std::int32_t largest = -1, before = -1;
    bool invalid = false;
    std::int64_t descents = 0, allowed_descents = 0, row = 1;
    std::int32_t spare_indices[CHUNK];
    float spare_values[CHUNK];
    for (std::int64_t start = 0; start < nonzeros; start += CHUNK) {
        const std::int32_t size = static_cast<std::int32_t>(start + CHUNK < nonzeros ? CHUNK : nonzeros - start);
        std::int32_t* const __restrict at = to_indices ? to_indices + start : spare_indices;
        float* const __restrict x = to_values ? to_values + start : spare_values;
        const Index* const __restrict from = indices + start;
        const Value* const __restrict of = values + start;
        Index index_bits = 0;  // of all indices together: one that is negative or beyond int32 sets bit 31 or a higher one
        for (std::int32_t p = 0; p < size; ++p) {
            const Index j = from[p];
            index_bits |= j;
            at[p] = static_cast<std::int32_t>(j);
        }
        std::uint32_t not_finite = 0;
        for (std::int32_t p = 0; p < size; ++p) {
            x[p] = static_cast<float>(of[p]);
            std::uint32_t bits;
            std::memcpy(&bits, x + p, sizeof bits);
            not_finite |= (bits & EXPONENT) == EXPONENT;
        }
        invalid |= not_finite || index_bits >> 31 != 0;
        std::int32_t chunk_largest = at[0], chunk_descents = at[0] <= before;
        for (std::int32_t p = 1; p < size; ++p) {
            chunk_largest = at[p] > chunk_largest ? at[p] : chunk_largest;
            chunk_descents += at[p] <= at[p - 1];
        }
        // Only the first entry of a row need not exceed the one before it.
        for (; row < rows && indptr[row] < start + size; ++row) {
            const std::int64_t p = indptr[row] - start;
            if (p < 0 || p >= size) break;  // pointers that nobody has copied may change
            allowed_descents += (indptr[row] > indptr[row - 1]) & (at[p] <= (p > 0 ? at[p - 1] : before));
        }
        before = at[size - 1];
        largest = chunk_largest > largest ? chunk_largest : largest;
        descents += chunk_descents;
    }
    return {!invalid && largest < INT32_MAX, descents == allowed_descents, static_cast<std::int64_t>(largest) + 1};
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
