// The hashes of many names at once, eight in each step where the machine has AVX2. One name alone keeps the processor
// waiting: every step of its hash needs the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "features/murmur3.hpp"
#include "isa.hpp"

namespace rarestream::features {

// Names that are hashed together. `hashes` has the seed of each before, and its hash after. READABLE bytes after the end of
// each name are read; the arrays have room for a full step.
struct Names {
    static constexpr std::size_t SIZE = 64, STEP = 8, READABLE = 16;
    const char* texts[SIZE];
    std::uint32_t sizes[SIZE];
    std::uint32_t hashes[SIZE];
};

using HashNames = void (*)(Names& names, std::size_t count);

inline void hash_names_portable(Names& names, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        names.hashes[i] = murmur3_padded(names.texts[i], names.sizes[i], names.hashes[i]);
    }
}

#if defined(__x86_64__)
template <int Bits>
RARESTREAM_AVX2 inline __m256i rotated_left(__m256i x) {
    return _mm256_or_si256(_mm256_slli_epi32(x, Bits), _mm256_srli_epi32(x, 32 - Bits));
}

// One round each, of the four bytes at `begin` of every name: those past its end count as zero, and the round of fewer than
// four bytes is the last, unfinished one.
RARESTREAM_AVX2 inline __m256i murmur3_round(__m256i h, __m256i four, __m256i bits, int begin) {
    const __m256i missing =
        _mm256_max_epi32(_mm256_sub_epi32(_mm256_set1_epi32(8 * begin + 32), bits), _mm256_setzero_si256());
    four = _mm256_and_si256(four, _mm256_srlv_epi32(_mm256_set1_epi32(-1), missing));  // a shift by 32 or more gives zero
    four = rotated_left<15>(_mm256_mullo_epi32(four, _mm256_set1_epi32(static_cast<int>(0xcc9e2d51u))));
    h = _mm256_xor_si256(h, _mm256_mullo_epi32(four, _mm256_set1_epi32(0x1b873593)));
    __m256i finished = rotated_left<13>(h);
    finished = _mm256_add_epi32(_mm256_add_epi32(finished, _mm256_slli_epi32(finished, 2)),
                                _mm256_set1_epi32(static_cast<int>(0xe6546b64u)));
    return _mm256_blendv_epi8(h, finished, _mm256_cmpeq_epi32(missing, _mm256_setzero_si256()));
}

RARESTREAM_AVX2 inline __m256i two_names(const char* low, const char* high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
                                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}

RARESTREAM_AVX2 inline void hash_names_avx2(Names& names, std::size_t count) {
    constexpr std::uint32_t LONGEST = 64;  // bytes; longer names are rare, and hashed one by one
    static constexpr char nothing[Names::READABLE] = {};
    for (std::size_t i = count; i % Names::STEP; ++i) {
        names.texts[i] = nothing;
        names.sizes[i] = 0;
    }
    for (std::size_t first = 0; first < count; first += Names::STEP) {
        const char* const* texts = names.texts + first;
        const __m256i sizes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(names.sizes + first));
        const __m256i longest = _mm256_set1_epi32(static_cast<int>(LONGEST));
        const __m256i bits = _mm256_slli_epi32(_mm256_min_epu32(sizes, longest), 3);
        __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(names.hashes + first));
        for (int begin = 0; begin < static_cast<int>(LONGEST); begin += 16) {
            const auto more_than = [&](int bytes) RARESTREAM_AVX2 {
                return _mm256_movemask_epi8(_mm256_cmpgt_epi32(bits, _mm256_set1_epi32(8 * bytes)));
            };
            if (begin && !more_than(begin)) break;
            const char* at[Names::STEP];
            for (std::size_t i = 0; i < Names::STEP; ++i) {  // of a name that has ended, anything
                at[i] = texts[i] + (begin && names.sizes[first + i] > static_cast<std::uint32_t>(begin) ? begin : 0);
            }
            const __m256i a = two_names(at[0], at[4]), b = two_names(at[1], at[5]);
            const __m256i c = two_names(at[2], at[6]), d = two_names(at[3], at[7]);
            const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
            h = murmur3_round(h, _mm256_unpacklo_epi64(ab, cd), bits, begin);
            h = murmur3_round(h, _mm256_unpackhi_epi64(ab, cd), bits, begin + 4);
            if (!more_than(begin + 8)) break;
            const __m256i ab2 = _mm256_unpackhi_epi32(a, b), cd2 = _mm256_unpackhi_epi32(c, d);
            h = murmur3_round(h, _mm256_unpacklo_epi64(ab2, cd2), bits, begin + 8);
            h = murmur3_round(h, _mm256_unpackhi_epi64(ab2, cd2), bits, begin + 12);
        }
        h = _mm256_xor_si256(h, sizes);
        h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 16)),
                               _mm256_set1_epi32(static_cast<int>(0x85ebca6bu)));
        h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 13)),
                               _mm256_set1_epi32(static_cast<int>(0xc2b2ae35u)));
        h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
        if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(sizes, longest), longest)) != -1) {
            for (std::size_t i = first; i < std::min(first + Names::STEP, count); ++i) {
                names.hashes[i] = murmur3_padded(names.texts[i], names.sizes[i], names.hashes[i]);
            }
            continue;
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(names.hashes + first), h);
    }
}
#endif

inline HashNames hash_names(Isa isa) {
#if defined(__x86_64__)
    if (uses_avx2(isa)) return hash_names_avx2;
#endif
    (void)isa;
    return hash_names_portable;
}

}  // namespace rarestream::features
