// Rows of any accepted types copied to the types of a Block, in one pass that also checks whether they are valid.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

constexpr std::uint32_t EXPONENT = 0x7F800000;  // all its bits are set in NaN and infinity, and in nothing else

// Whether a lane of any of the vectors seen had an infinity or a NaN.
class NotFinite {
    MaskRegister lanes_{};
    bool scalar_ = false;

public:
    RARESTREAM_ALWAYS_INLINE void see(const FloatRegister& values) {
        const MaskRegister exponent = (MaskRegister{} + static_cast<std::int32_t>(EXPONENT));
        lanes_ |= ((MaskRegister)values & exponent) == exponent;
    }
    RARESTREAM_ALWAYS_INLINE void see(float value) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        scalar_ |= (bits & EXPONENT) == EXPONENT;
    }
    bool any() const {
        bool found = scalar_;
        for (int l = 0; l < REGISTER / 4; ++l) found |= lanes_[l] != 0;
        return found;
    }
};

// A register of values as float32.
RARESTREAM_ALWAYS_INLINE FloatRegister narrowed(const float* p) { return load_register<FloatRegister>(p); }
RARESTREAM_ALWAYS_INLINE FloatRegister narrowed(const double* p) {
#if defined(__AVX2__)
    return (FloatRegister)_mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(p + 4)), _mm256_cvtpd_ps(_mm256_loadu_pd(p)));
#elif defined(__SSE2__)
    return (FloatRegister)_mm_movelh_ps(_mm_cvtpd_ps(_mm_loadu_pd(p)), _mm_cvtpd_ps(_mm_loadu_pd(p + 2)));
#else
    return FloatRegister{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                         static_cast<float>(p[3])};
#endif
}

// The last lane of `before`, then all but the last of `now`.
RARESTREAM_ALWAYS_INLINE MaskRegister shifted_in(const MaskRegister& before, const MaskRegister& now) {
#if defined(__AVX2__)
    const __m256i middle = _mm256_permute2x128_si256((__m256i)before, (__m256i)now, 0x21);
    return (MaskRegister)_mm256_alignr_epi8((__m256i)now, middle, 12);
#elif defined(__SSE2__)
    return (MaskRegister)_mm_or_si128(_mm_slli_si128((__m128i)now, 4), _mm_srli_si128((__m128i)before, 12));
#else
    return MaskRegister{before[3], now[0], now[1], now[2]};
#endif
}

// A register of indices as int32. `bits` becomes negative where one is negative or beyond int32.
RARESTREAM_ALWAYS_INLINE MaskRegister narrowed(const std::int32_t* p, MaskRegister& bits) {
    const MaskRegister j = load_register<MaskRegister>(p);
    bits |= j;
    return j;
}
RARESTREAM_ALWAYS_INLINE MaskRegister narrowed(const std::int64_t* p, MaskRegister& bits) {
    MaskRegister low{}, high{};
#if defined(__AVX2__)
    const __m256 a = _mm256_loadu_ps(reinterpret_cast<const float*>(p)),
                 b = _mm256_loadu_ps(reinterpret_cast<const float*>(p + 4));
    low = (MaskRegister)_mm256_permute4x64_epi64((__m256i)_mm256_shuffle_ps(a, b, 0x88), 0xD8);
    high = (MaskRegister)_mm256_shuffle_ps(a, b, 0xDD);
#elif defined(__SSE2__)
    const __m128 a = _mm_loadu_ps(reinterpret_cast<const float*>(p)),
                 b = _mm_loadu_ps(reinterpret_cast<const float*>(p + 2));
    low = (MaskRegister)_mm_shuffle_ps(a, b, 0x88);
    high = (MaskRegister)_mm_shuffle_ps(a, b, 0xDD);
#else
    for (int l = 0; l < REGISTER / 4; ++l) {
        const std::int64_t j = p[l];
        low[l] = static_cast<std::int32_t>(j);
        high[l] = static_cast<std::int32_t>(j >> 32);
    }
#endif
    bits |= low | (high != 0);
    return low;
}

// What is known of the indices of some consecutive entries.
struct IndexSurvey {
    std::int32_t largest, last;
    std::int32_t descents;  // entries that do not exceed the one before
    bool outside;           // one is negative or beyond int32
};

// Copies indices and looks at them. `before` is the entry before the first.
template <class Index>
RARESTREAM_ALWAYS_INLINE IndexSurvey survey_indices(const Index* from, std::int32_t size, std::int32_t before,
                                                    std::int32_t* at) {
    constexpr int WIDE = REGISTER / 4;
    IndexSurvey found{-1, before, 0, false};
    std::int32_t p = 0;
    if (size >= WIDE) {
        MaskRegister largest = MaskRegister{} - 1, last = MaskRegister{} + before, descents{}, bits{};
        for (; p + WIDE <= size; p += WIDE) {
            const MaskRegister now = narrowed(from + p, bits);
            store_register(at + p, now);
            descents -= now <= shifted_in(last, now);
            largest = now > largest ? now : largest;
            last = now;
        }
        for (int l = 0; l < WIDE; ++l) {
            found.largest = largest[l] > found.largest ? largest[l] : found.largest;
            found.descents += descents[l];
            found.outside |= bits[l] < 0;
        }
        found.last = last[WIDE - 1];
    }
    for (; p < size; ++p) {
        const Index given = from[p];
        const std::int32_t j = static_cast<std::int32_t>(given);
        at[p] = j;
        found.descents += j <= found.last;
        found.largest = j > found.largest ? j : found.largest;
        found.outside |= given >> 31 != 0;
        found.last = j;
    }
    return found;
}

// Each entry is read once, so a caller that changes its arrays meanwhile or later does not change what was checked. Without
// `to_indices` or `to_values` these are only checked.
template <class Index, class Value>
CopyResult copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values) {
    constexpr std::int64_t CHUNK = 2048;  // entries at a time: what was copied is read again while it is in the L1 cache
    constexpr int WIDE = REGISTER / 4;
    std::int32_t largest = -1, before = -1;
    bool invalid = false;
    NotFinite not_finite;
    std::int64_t descents = 0, allowed_descents = 0, row = 1;
    std::int32_t spare_indices[CHUNK];
    for (std::int64_t start = 0; start < nonzeros; start += CHUNK) {
        const std::int32_t size = static_cast<std::int32_t>(start + CHUNK < nonzeros ? CHUNK : nonzeros - start);
        std::int32_t* const at = to_indices ? to_indices + start : spare_indices;
        const IndexSurvey found = survey_indices(indices + start, size, before, at);
        const Value* const of = values + start;
        std::int32_t p = 0;
        for (; p + WIDE <= size; p += WIDE) {
            const FloatRegister x = narrowed(of + p);
            if (to_values) store_register(to_values + start + p, x);
            not_finite.see(x);
        }
        for (; p < size; ++p) {
            const float x = static_cast<float>(of[p]);
            if (to_values) to_values[start + p] = x;
            not_finite.see(x);
        }
        // Only the first entry of a row need not exceed the one before it.
        for (; row < rows && indptr[row] < start + size; ++row) {
            const std::int64_t first = indptr[row] - start;
            if (first < 0 || first >= size) break;  // pointers that nobody has copied may change
            allowed_descents += (indptr[row] > indptr[row - 1]) & (at[first] <= (first > 0 ? at[first - 1] : before));
        }
        before = found.last;
        invalid |= found.outside;
        largest = found.largest > largest ? found.largest : largest;
        descents += found.descents;
    }
    invalid |= not_finite.any();
    return {!invalid && largest < INT32_MAX, descents == allowed_descents, static_cast<std::int64_t>(largest) + 1};
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
