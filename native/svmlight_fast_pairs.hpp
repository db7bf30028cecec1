// The fast path for the pairs that nearly all files consist of:  index ':' value ' '  with an index of one to ten digits
// and a value without exponent. The portable version parses any such pair; the AVX2 version parses indices of up to
// eight digits, d and d.ffff of up to sixteen decimals, and leaves the others to the portable one. Both give the number
// nearest to the text: they compute a whole number exactly and round once, in the division; what is too long for that goes
// to nearest_double.
#pragma once

#include <cstdint>
#include <cstring>
#include <system_error>

#include "isa.hpp"
#include "platform.hpp"
#include "svmlight_digits.hpp"
#include "svmlight_number.hpp"

namespace rarestream::svmlight {

// Where the next pair is written, and what is known of the row so far.
struct RowBuilder {
    std::int32_t* index;
    float* value;
    std::int32_t first;          // 0 or 1: what the file counts from
    std::int32_t previous = -1;  // the last index
    bool ascending = true;

    // A pair whose value is already in place.
    void add(std::int32_t j) {
        *index++ = j;
        ++value;
        ascending &= j > previous;
        previous = j;
    }
};

// Parses pairs from `at` while they have the form above; returns the position of the first thing that has not, which may be
// a blank or a newline. Up to 64 bytes past the line are read. An index 0 in a file that counts from 1 comes out
// as -1: it is noticed at the end of the row, because -1 is never above the index before it.
using FastPairs = const char* (*)(const char* at, RowBuilder& run);

// digits [. digits] from `s`, which is moved past them; false if it is something else, or too long to be exact.
inline bool plain_value(const char*& s, double& value) {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12,
                                        1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24};
    static constexpr std::uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    const char* const begin = s;
    const std::uint64_t before = load_digits(s);
    unsigned n = leading_digits(before), decimals = 0;
    if (n == 0) return false;
    std::uint64_t mantissa = eight_digits(aligned_right(before, n));
    s += n;
    if (*s == '.') {
        ++s;
        do {
            const std::uint64_t after = load_digits(s);
            n = leading_digits(after);
            if (n == 0) break;
            // Twenty digits may not fit; 10^11 * 10^8 does.
            if (mantissa >= 100000000000ull) return false;
            mantissa = mantissa * tens[n] + eight_digits(aligned_right(after, n));
            decimals += n;
            s += n;
        } while (n == 8 && decimals < 24);
    }
    if (static_cast<unsigned char>(*s) > ' ') return false;
    if (mantissa <= (1ull << 53) && decimals <= 22) {
        value = static_cast<double>(static_cast<std::int64_t>(mantissa)) / powers[decimals];
        return true;
    }
    return nearest_double(begin, s, value).ec == std::errc();
}

// Puts the first digits of an index, one or two, before its last eight; false if they are no digits, or the index is above
// the largest there may be.
inline bool prepend_digits(const char* at, unsigned more, std::int32_t first, std::uint32_t& index) {
    const unsigned a = static_cast<unsigned char>(at[0] ^ '0'), b = static_cast<unsigned char>(at[1] ^ '0');
    const std::uint64_t before = more == 1 ? a : a * 10 + b;
    const std::uint64_t whole = before * 100000000 + index;
    index = static_cast<std::uint32_t>(whole);
    return (a <= 9) & ((more == 1) | (b <= 9)) & (whole <= 0x7ffffffeull + static_cast<unsigned>(first));
}

inline const char* some_pairs(const char* at, RowBuilder& row, std::ptrdiff_t limit) {
    RowBuilder run = row;  // in registers
    for (; limit; --limit) {
        std::uint64_t key = load_digits(at);
        unsigned k = leading_digits(key), more = 0;
        if (k == 8 && at[8] != ':') {
            more = at[9] == ':' ? 1 : 2;
            key = load_digits(at + more);
            if (leading_digits(key) != 8) break;
            k += more;
        }
        if (k == 0 || at[k] != ':') break;
        std::uint32_t index = eight_digits(aligned_right(key, k - more));
        if (more && !prepend_digits(at, more, run.first, index)) break;
        const char* s = at + k + 1;
        const bool minus = *s == '-';
        s += minus;
        const unsigned digit = static_cast<unsigned char>(*s ^ '0');
        double number = digit;
        bool known = digit <= 9;
        const char* stop = s + 1;
        if (*stop == '.') {
            const std::uint64_t decimals = load_digits(s + 2);
            const unsigned n = leading_digits(decimals);
            number = static_cast<double>(digit * 100000000u + eight_digits(aligned_left(decimals, n))) / 1e8;
            stop += n + 1;
            known &= n > 0;
        }
        if (!known || static_cast<unsigned char>(*stop) > ' ') {
            if (!plain_value(s, number)) break;
            stop = s;
        }
        *run.value = static_cast<float>(minus ? -number : number);
        run.add(static_cast<std::int32_t>(index - static_cast<std::uint32_t>(run.first)));
        at = stop;
        if (*at != ' ') break;
        ++at;
    }
    row = run;
    return at;
}

inline const char* fast_pairs_portable(const char* at, RowBuilder& run) { return some_pairs(at, run, PTRDIFF_MAX); }

#if defined(__x86_64__)

// A bit for every separator in 64 bytes: whatever is not above the blank, and the colon.
RARESTREAM_AVX2 inline std::uint64_t separators(const char* p) {
    const __m256i blank = _mm256_set1_epi8(' '), colon = _mm256_set1_epi8(':');
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    const __m256i x = _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(a, blank), blank), _mm256_cmpeq_epi8(a, colon));
    const __m256i y = _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(b, blank), blank), _mm256_cmpeq_epi8(b, colon));
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(x)) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(y))) << 32;
}

RARESTREAM_AVX2 inline __m128i two_words(std::uint64_t low, std::uint64_t high) {
    return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}

// The lowest bit of the mask, which loses it; 64 if there is none.
RARESTREAM_AVX2 inline unsigned next_bit(std::uint64_t& mask) {
    const std::uint64_t found = _tzcnt_u64(mask);
    mask = _blsr_u64(mask);
    return static_cast<unsigned>(found);
}

// Eight digits in each half of v to a number, minus `subtrahend`, in each half of the result; false if some byte is no
// digit.
RARESTREAM_AVX2 inline bool twice_eight_digits(__m128i v, std::int32_t subtrahend, std::uint64_t& both) {
    const __m128i nine = _mm_set1_epi8(9);
    const __m128i beyond = _mm_subs_epu8(v, nine);
    const __m128i tens = _mm_maddubs_epi16(v, _mm_set1_epi16(10 | 1 << 8));
    const __m128i hundreds = _mm_madd_epi16(tens, _mm_set1_epi32(100 | 1 << 16));
    const __m128i packed = _mm_packus_epi32(hundreds, hundreds);
    const __m128i numbers = _mm_madd_epi16(packed, _mm_set1_epi32(10000 | 1 << 16));
    both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_sub_epi32(numbers, _mm_set1_epi32(subtrahend))));
    return _mm_testz_si128(beyond, beyond);
}

// The pair at `at` whose colon and end stand `colon` and `stop` bytes on, with an index of up to eight digits.
RARESTREAM_AVX2 inline bool fast_pair(const char* at, unsigned colon, unsigned stop, float& value, std::uint32_t& index) {
    const char* s = at + colon + 1;
    const bool minus = *s == '-';
    s += minus;
    const unsigned n = stop - colon - 1 - minus, digit = static_cast<unsigned char>(*s ^ '0');
    if (colon - 1 > 7 || at[colon] != ':' || digit > 9) return false;
    const std::uint64_t key = aligned_right(load_digits(at), colon);
    double number = digit;
    std::uint64_t both;
    if (n == 1) {
        if (beyond_nine(key)) return false;
        index = eight_digits(key);
    } else if (s[1] != '.') {
        return false;
    } else if (n - 3 <= 7) {
        const std::uint64_t decimals = aligned_left(load_digits(s + 2), n - 2);
        if (!twice_eight_digits(two_words(key, decimals), 0, both)) return false;
        index = static_cast<std::uint32_t>(both);
        number = static_cast<double>(static_cast<std::int64_t>(digit * 100000000u + (both >> 32))) / 1e8;
    } else if (n - 11 <= 7) {
        const std::uint64_t more = aligned_left(load_digits(s + 10), n - 10);
        if (beyond_nine(key) || !twice_eight_digits(two_words(load_digits(s + 2), more), 0, both)) return false;
        index = eight_digits(key);
        const std::uint64_t mantissa = digit * 10000000000000000ull + (both & 0xffffffffu) * 100000000u + (both >> 32);
        if (mantissa > (1ull << 53)) return false;
        number = static_cast<double>(static_cast<std::int64_t>(mantissa)) / 1e16;
    } else {
        return false;
    }
    value = static_cast<float>(minus ? -number : number);
    return true;
}

// Two pairs whose values have one digit each, as in 17:1 205:1, side by side: colons stand at c and c2, ends at s and s2.
RARESTREAM_AVX2 inline bool two_of_one_digit(const char* at, unsigned c, unsigned s, unsigned c2, unsigned s2, float* value,
                                             std::int32_t first, std::uint64_t& both) {
    const unsigned k = c2 - s - 1;
    const unsigned x = static_cast<unsigned char>(at[c + 1] ^ '0'), y = static_cast<unsigned char>(at[c2 + 1] ^ '0');
    if (c - 1 > 7 || k - 1 > 7 || at[c] != ':' || at[s] != ' ' || at[c2] != ':' || at[s2] == ':' || x > 9 || y > 9) {
        return false;
    }
    const std::uint64_t low = aligned_right(load_digits(at), c), high = aligned_right(load_digits(at + s + 1), k);
    if (!twice_eight_digits(two_words(low, high), first, both)) {
        return false;
    }
    value[0] = static_cast<float>(static_cast<int>(x));
    value[1] = static_cast<float>(static_cast<int>(y));
    return true;
}

RARESTREAM_AVX2 inline const char* fast_pairs_avx2(const char* at, RowBuilder& row) {
    RowBuilder run = row;  // in registers
    for (;;) {
        // Two pairs from each 64 bytes: with as many as there are, the end of the loop would be mispredicted.
        std::uint64_t mask = separators(at);
        const unsigned c = next_bit(mask), s = next_bit(mask), c2 = next_bit(mask), s2 = next_bit(mask);
        std::uint64_t both;
        std::uint32_t whole;
        if (s == c + 2 && s2 == c2 + 2 && two_of_one_digit(at, c, s, c2, s2, run.value, run.first, both)) {
            run.add(static_cast<std::int32_t>(both));
            run.add(static_cast<std::int32_t>(both >> 32));
            at += s2;
        } else {
            if (s == 64 || at[s] == ':' || !fast_pair(at, c, s, *run.value, whole)) break;
            run.add(static_cast<std::int32_t>(whole - static_cast<std::uint32_t>(run.first)));
            at += s;
            if (*at != ' ') break;
            ++at;
            if (s2 == 64) continue;  // the second pair is cut off: load again from its start
            const unsigned done = s + 1;
            if (at[s2 - done] == ':' || !fast_pair(at, c2 - done, s2 - done, *run.value, whole)) break;
            run.add(static_cast<std::int32_t>(whole - static_cast<std::uint32_t>(run.first)));
            at += s2 - done;
        }
        if (*at != ' ') break;
        ++at;
    }
    row = run;
    return at;
}
#endif

inline FastPairs fast_pairs(Isa isa) {
#if defined(__x86_64__)
    if (uses_avx2(isa)) return fast_pairs_avx2;
#endif
    (void)isa;
    return fast_pairs_portable;
}

}  // namespace rarestream::svmlight
