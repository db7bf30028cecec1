// A row of a dense array without its zeros.
#pragma once

#include <cstdint>

#include "copy_rows.hpp"
#include "kernels.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

#if defined(__AVX2__)
// For each set of eight lanes, which of them come first: those in the set, in their order.
struct KeptLanes {
    std::uint8_t order[256][8];
    constexpr KeptLanes() : order() {
        for (int set = 0; set < 256; ++set)
            for (int lane = 0, kept = 0; lane < 8; ++lane)
                if (set >> lane & 1) order[set][kept++] = static_cast<std::uint8_t>(lane);
    }
};
constexpr KeptLanes KEPT_LANES;

// Which of eight numbers are not zero, in their own type: as float32 some would be.
RARESTREAM_ALWAYS_INLINE int nonzero_lanes(const F32& v) {
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)v.part[0], _mm256_setzero_ps(), _CMP_NEQ_UQ));
}
RARESTREAM_ALWAYS_INLINE int nonzero_lanes(const F64& v) {
    const __m256d zero = _mm256_setzero_pd();
    return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)v.part[0], zero, _CMP_NEQ_UQ)) |
           _mm256_movemask_pd(_mm256_cmp_pd((__m256d)v.part[1], zero, _CMP_NEQ_UQ)) << 4;
}

RARESTREAM_ALWAYS_INLINE FloatRegister narrowed(const F32& v) { return v.part[0]; }
RARESTREAM_ALWAYS_INLINE FloatRegister narrowed(const F64& v) {
    return (FloatRegister)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)v.part[1]), _mm256_cvtpd_ps((__m256d)v.part[0]));
}
#endif

// Writes what is not zero in a row, and its columns; returns how many. `to` and `at` have room for the whole row.
// `finite` becomes false if an entry is not a finite float32.
template <class Real>
std::int64_t drop_zeros(const Real* row, std::int64_t columns, std::int32_t* at, float* to, bool& finite) {
    std::int64_t kept = 0, j = 0;
    NotFinite not_finite;
#if defined(__AVX2__)
    for (; j + 8 <= columns; j += 8) {
        const Vector<Real> given = load(row + j);
        const FloatRegister x = narrowed(given);
        const int there = nonzero_lanes(given);
        const __m256i order =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(KEPT_LANES.order[there])));
        _mm256_storeu_ps(to + kept, _mm256_permutevar8x32_ps((__m256)x, order));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + kept),
                            _mm256_add_epi32(order, _mm256_set1_epi32(static_cast<std::int32_t>(j))));
        kept += __builtin_popcount(static_cast<unsigned>(there));
        not_finite.see(x);
    }
#endif
    for (; j < columns; ++j) {
        const Real given = row[j];
        const float x = static_cast<float>(given);
        at[kept] = static_cast<std::int32_t>(j);
        to[kept] = x;
        kept += given != 0;
        not_finite.see(x);
    }
    finite = finite && !not_finite.any();
    return kept;
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
