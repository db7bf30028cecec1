// The pairs nearly every file is made of, and nothing else:  index ':' value ' '  with an index of one to seven digits and a
// value d or d.ffff of up to eight decimals, with or without a minus. Both ways give the same numbers, because both
// compute a whole number exactly and round once, in the division.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "svmlight_digits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rarestream::svmlight {

enum class Isa { portable, avx2 };

inline bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

// What this machine can do; RARESTREAM_ISA=portable asks for less.
inline Isa best_isa() {
    const char* wanted = std::getenv("RARESTREAM_ISA");
    if (wanted && std::strcmp(wanted, "portable") == 0) return Isa::portable;
    return has_avx2() ? Isa::avx2 : Isa::portable;
}

// Where pairs go, and what is known of the row so far.
struct Run {
    std::int32_t* index;
    float* value;
    std::int32_t first;          // 0 or 1: what the file counts from
    std::int32_t previous = -1;  // the last index
    bool ascending = true;
};

// Takes pairs from `at` while they are ordinary and one blank follows; returns where the first other thing stands, a blank
// or newline included. Up to 64 bytes past the line are read. An index 0 in a file that counts from 1 comes out as -1: it is
// noticed at the end of the row, because -1 is never above the index before it.
using QuickPairs = const char* (*)(const char* at, Run& run);

inline const char* quick_pairs_portable(const char* at, Run& run) {
    std::int32_t* index = run.index;
    float* value = run.value;
    std::int32_t previous = run.previous;
    const std::int32_t first = run.first;
    bool ascending = run.ascending;
    for (;;) {
        const std::uint64_t key = load_digits(at);
        const unsigned k = leading_digits(key);
        if (k - 1 > 6 || at[k] != ':') break;
        const char* s = at + k + 1;
        const bool minus = *s == '-';
        s += minus;
        const unsigned digit = static_cast<unsigned char>(*s ^ '0');
        if (digit > 9) break;
        double number = digit;
        if (s[1] == '.') {
            const std::uint64_t decimals = load_digits(s + 2);
            const unsigned n = leading_digits(decimals);
            if (n == 0) break;
            number = static_cast<double>(digit * 100000000u + eight_digits(aligned_left(decimals, n))) / 1e8;
            s += n + 1;
        }
        ++s;
        if (static_cast<unsigned char>(*s) > ' ') break;
        const std::int32_t j = static_cast<std::int32_t>(eight_digits(aligned_right(key, k))) - first;
        *index++ = j;
        *value++ = static_cast<float>(minus ? -number : number);
        ascending &= j > previous;
        previous = j;
        at = s + 1;
        if (*s != ' ') {
            at = s;
            break;
        }
    }
    run = {index, value, first, previous, ascending};
    return at;
}

#if defined(__x86_64__)
#define RARESTREAM_AVX2 __attribute__((target("avx2,bmi,bmi2")))

// A bit for every separator in 64 bytes: whatever is not above the blank, and the colon.
RARESTREAM_AVX2 inline std::uint64_t separators(const char* p) {
    const __m256i blank = _mm256_set1_epi8(' '), colon = _mm256_set1_epi8(':');
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    const __m256i x =
        _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(a, blank), blank), _mm256_cmpeq_epi8(a, colon));
    const __m256i y =
        _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(b, blank), blank), _mm256_cmpeq_epi8(b, colon));
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(x)) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(y))) << 32;
}

// Eight digits in each half of v to a number in each half of the result; false if some byte is not 0 to 9.
RARESTREAM_AVX2 inline bool twice_eight_digits(__m128i v, std::uint64_t& both) {
    const __m128i nine = _mm_set1_epi8(9);
    const __m128i beyond = _mm_subs_epu8(v, nine);
    const __m128i tens = _mm_maddubs_epi16(v, _mm_set1_epi16(10 | 1 << 8));
    const __m128i hundreds = _mm_madd_epi16(tens, _mm_set1_epi32(100 | 1 << 16));
    const __m128i packed = _mm_packus_epi32(hundreds, hundreds);
    both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_madd_epi16(packed, _mm_set1_epi32(10000 | 1 << 16))));
    return _mm_testz_si128(beyond, beyond);
}

// The pair at `at` whose colon and end stand `colon` and `stop` bytes on.
RARESTREAM_AVX2 inline bool quick_pair(const char* at, unsigned colon, unsigned stop, std::uint32_t& index,
                                       float& value) {
    const char* s = at + colon + 1;
    const bool minus = *s == '-';
    s += minus;
    const unsigned n = stop - colon - 1 - minus, digit = static_cast<unsigned char>(*s ^ '0');
    if (colon - 1 > 6 || at[colon] != ':' || digit > 9) return false;
    const std::uint64_t key = aligned_right(load_digits(at), colon);
    double number = digit;
    if (n == 1) {
        if (beyond_nine(key)) return false;
        index = eight_digits(key);
    } else {
        if (s[1] != '.' || n - 3 > 7) return false;
        const std::uint64_t decimals = aligned_left(load_digits(s + 2), n - 2);
        std::uint64_t both;
        if (!twice_eight_digits(_mm_set_epi64x(static_cast<long long>(decimals), static_cast<long long>(key)), both)) {
            return false;
        }
        index = static_cast<std::uint32_t>(both);
        number = static_cast<double>(static_cast<std::int64_t>(digit * 100000000u + (both >> 32))) / 1e8;
    }
    value = static_cast<float>(minus ? -number : number);
    return true;
}

RARESTREAM_AVX2 inline const char* quick_pairs_avx2(const char* at, Run& run) {
    std::int32_t* index = run.index;
    float* value = run.value;
    std::int32_t previous = run.previous;
    const std::int32_t first = run.first;
    bool ascending = run.ascending;
    for (;;) {
        // Two pairs from one look at 64 bytes: taking as many as there are would end on a branch guessed wrong.
        std::uint64_t mask = separators(at);
        unsigned done = 0;
        std::uint32_t whole;
        bool more = false;
        for (int pair = 0; pair < 2; ++pair) {
            const unsigned colon = static_cast<unsigned>(_tzcnt_u64(mask));
            mask = _blsr_u64(mask);
            const unsigned stop = static_cast<unsigned>(_tzcnt_u64(mask));
            mask = _blsr_u64(mask);
            if (stop == 64) {
                more = pair == 1;  // the second is cut off: look again from its start
                break;
            }
            more = at[stop] != ':' && quick_pair(at + done, colon - done, stop - done, whole, *value);
            if (!more) break;
            const std::int32_t j = static_cast<std::int32_t>(whole) - first;
            *index++ = j;
            ++value;
            ascending &= j > previous;
            previous = j;
            done = stop;
            more = at[stop] == ' ';
            if (!more) break;
            ++done;
        }
        at += done;
        if (!more) break;
    }
    run = {index, value, first, previous, ascending};
    return at;
}
#endif

inline QuickPairs quick_pairs(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::avx2) return quick_pairs_avx2;
#endif
    (void)isa;
    return quick_pairs_portable;
}

}  // namespace rarestream::svmlight
