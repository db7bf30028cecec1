// Sorts a short row: the place of an entry is the number of smaller indices, which are counted without branches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "isa.hpp"

namespace rarestream::features {

constexpr int LONGEST_SHORT_ROW = 64;  // entries up to which this is faster than sorting

// Sorts up to LONGEST_SHORT_ROW entries; SORT_READS entries after the last are read. False, and nothing changed: two of
// them have the same index.
using SortShortRow = bool (*)(std::int32_t* indices, float* values, int size);

constexpr int SORT_READS = 24;

typedef std::int32_t FourIndices __attribute__((vector_size(16)));
typedef std::int32_t EightIndices __attribute__((vector_size(32)));

// It is inlined into a function of each instruction set.
template <class Vector>
class ShortRow {
public:
    RARESTREAM_ALWAYS_INLINE bool sort(std::int32_t* indices, float* values, int size) {
        if (size <= LANES) return sorted<1>(indices, values, size);
        if (size <= 2 * LANES) return sorted<2>(indices, values, size);
        return sorted<3>(indices, values, size);
    }

private:
    static constexpr int LANES = sizeof(Vector) / sizeof(std::int32_t);
    static constexpr int MOST = LONGEST_SHORT_ROW + SORT_READS;
    static_assert(3 * LANES <= SORT_READS);

    // The places of `Vectors` times LANES entries are found together.
    template <int Vectors>
    RARESTREAM_ALWAYS_INLINE bool sorted(std::int32_t* indices, float* values, int size) {
        Vector sums = {};
        for (int j = 0; j < size; j += Vectors * LANES) {
            Vector theirs[Vectors], ranks[Vectors] = {};
            std::memcpy(theirs, indices + j, sizeof theirs);
            for (int k = 0; k < Vectors; ++k) {
                const Vector after = number_of_lane() >= Vector{} + (size - j - k * LANES);             // all ones, or zero
                theirs[k] = (after & std::numeric_limits<std::int32_t>::min()) | (~after & theirs[k]);  // above none
            }
#pragma GCC unroll 4
            for (int i = 0; i < size; ++i) {
                const Vector mine = Vector{} + indices[i];
                for (int k = 0; k < Vectors; ++k) ranks[k] -= mine < theirs[k];
            }
            for (int k = 0; k < Vectors; ++k) sums += ranks[k];
            std::memcpy(index_ + j, theirs, sizeof theirs);
            std::memcpy(rank_ + j, ranks, sizeof ranks);
            std::memcpy(value_ + j, values + j, sizeof theirs);
        }
        // Of two entries one has the smaller index, or they have the same: then the sum is smaller than it could be.
        int sum = 0;
        for (int k = 0; k < LANES; ++k) sum += sums[k];
        if (sum != size * (size - 1) / 2) return false;
        for (int i = 0; i < size; ++i) {
            indices[rank_[i]] = index_[i];
            values[rank_[i]] = value_[i];
        }
        return true;
    }

    static RARESTREAM_ALWAYS_INLINE Vector number_of_lane() {
        Vector numbers;
        for (int k = 0; k < LANES; ++k) numbers[k] = k;
        return numbers;
    }

    alignas(32) std::int32_t index_[MOST], rank_[MOST];
    float value_[MOST];
};

inline bool sort_short_row_portable(std::int32_t* indices, float* values, int size) {
    ShortRow<FourIndices> row;  // without (), which would write zeros to its arrays
    return row.sort(indices, values, size);
}

#if defined(__x86_64__)
RARESTREAM_AVX2 inline bool sort_short_row_avx2(std::int32_t* indices, float* values, int size) {
    ShortRow<EightIndices> row;  // without (), which would write zeros to its arrays
    return row.sort(indices, values, size);
}
#endif

inline SortShortRow sort_short_row(Isa isa) {
#if defined(__x86_64__)
    if (uses_avx2(isa)) return sort_short_row_avx2;
#endif
    (void)isa;
    return sort_short_row_portable;
}

}  // namespace rarestream::features
