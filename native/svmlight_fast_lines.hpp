// The lines that nearly all files consist of:  label ' ' index ':' value ' ' index ':' value ...  with a label of one
// digit, indices of one to eight digits that ascend, and values d or d.ffff of up to eight decimals. AVX2, or
// AVX-512, finds the separators of some kilobytes first, and AVX2 then takes four pairs at a time from between them: where
// the next pair begins is known before the last one is parsed. A line that is anything else is left to the parser of single
// pairs, which gives the same numbers: both divide a whole number that is exact, and round once.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "isa.hpp"
#include "pool.hpp"

namespace rarestream::svmlight {

#if defined(__x86_64__)

// Where the separators of a text are: blanks, colons and newlines. Lines are taken from the front as more are found.
class Separators {
public:
    static constexpr std::ptrdiff_t PIECE = 4096;  // bytes that are searched at once
    static constexpr std::size_t LONGEST = 32768;  // separators of a line

    struct Line {
        const std::uint32_t* begin;    // its separators
        const std::uint32_t* newline;  // the last of them
        std::uint32_t colons;          // how many of them are colons; the others are blanks
    };

    // `wide`: with AVX-512, which this machine must have; else with AVX2.
    explicit Separators(bool wide)
        : wide_(wide), places_(pooled<std::uint32_t>(LONGEST + PIECE + ROOM)), lines_(pooled<Found>(PIECE)) {}

    // Places count from `text`.
    void start(const char* text, const char* at, const char* end) {
        text_ = text;
        at_ = at;
        end_ = end;
        begin_ = count_ = line_ = line_count_ = 0;
        colons_ = 0;
    }

    // The next whole line; false if there is none, or it has other control characters or too many separators.
    // Up to 64 bytes past the end are read.
    bool next(Line& line) {
        while (line_ == line_count_) {
            if (at_ >= end_ || count_ - begin_ > LONGEST) return false;
            std::memmove(places_.get(), places_.get() + begin_, (count_ - begin_) * sizeof(std::uint32_t));
            count_ -= begin_;
            begin_ = line_ = line_count_ = 0;
            if (!search()) end_ = at_;
        }
        const Found found = lines_[line_++];
        line = {places_.get() + begin_, places_.get() + found.newline, found.colons};
        begin_ = found.newline + 1;
        return true;
    }

private:
    struct Found {
        std::uint32_t newline, colons;
    };
    static constexpr std::size_t ROOM = 32;  // what is written past the last one

    // Searches the next piece; false if it ends before a control character that is neither blank nor newline.
    bool search() { return wide_ ? search_avx512() : search_avx2(); }
    RARESTREAM_AVX2 bool search_avx2() { return search_with<OfAvx2>(); }
    RARESTREAM_AVX512 bool search_avx512() { return search_with<OfAvx512>(); }

    template <class Vectors>
    RARESTREAM_ALWAYS_INLINE bool search_with() {
        const char* const stop = end_ - at_ > PIECE ? at_ + PIECE : end_;
        std::uint32_t* out = places_.get() + count_;
        for (; at_ < stop; at_ += 64) {
            const std::uint64_t inside = stop - at_ < 64 ? ~std::uint64_t{0} >> (64 - (stop - at_)) : ~std::uint64_t{0};
            std::uint64_t colons, blanks, low;  // low: blanks and control characters
            Vectors::find(at_, colons, blanks, low);
            colons &= inside;
            low &= inside;
            const std::uint64_t found = low | colons;
            if (const std::uint64_t others = low & ~blanks) {
                std::uint64_t newlines = Vectors::newlines(at_) & inside;
                if (others != newlines) {
                    count_ = static_cast<std::size_t>(out - places_.get());
                    return false;
                }
                std::uint32_t before = 0;
                for (; newlines; newlines &= newlines - 1) {
                    const std::uint64_t below = newlines ^ (newlines - 1);  // the newline and what is before it
                    const std::uint32_t upto = ones(colons & below);
                    const auto place = static_cast<std::uint32_t>(out - places_.get()) + ones(found & below) - 1;
                    lines_[line_count_++] = {place, colons_ + upto - before};
                    colons_ = 0;
                    before = upto;
                }
                colons_ -= before;  // may wrap, and back again
            }
            colons_ += ones(colons);
            out = Vectors::put(found, static_cast<std::uint32_t>(at_ - text_), out);
        }
        at_ = stop;
        count_ = static_cast<std::size_t>(out - places_.get());
        return true;
    }

    static RARESTREAM_ALWAYS_INLINE std::uint32_t ones(std::uint64_t bits) {
        return static_cast<std::uint32_t>(__builtin_popcountll(bits));
    }

    // A bit for each of 64 bytes; and `put` writes where the bits of a mask are, after `offset`, and some more numbers.
    struct OfAvx2 {
        RARESTREAM_AVX2 static void find(const char* at, std::uint64_t& colons, std::uint64_t& blanks, std::uint64_t& low) {
            const __m256i blank = _mm256_set1_epi8(' '), colon = _mm256_set1_epi8(':');
            const __m256i a = load(at), b = load(at + 32);
            colons = mask(_mm256_cmpeq_epi8(a, colon), _mm256_cmpeq_epi8(b, colon));
            blanks = mask(_mm256_cmpeq_epi8(a, blank), _mm256_cmpeq_epi8(b, blank));
            low = mask(_mm256_cmpeq_epi8(_mm256_max_epu8(a, blank), blank),
                       _mm256_cmpeq_epi8(_mm256_max_epu8(b, blank), blank));
        }

        RARESTREAM_AVX2 static std::uint64_t newlines(const char* at) {
            const __m256i newline = _mm256_set1_epi8('\n');
            return mask(_mm256_cmpeq_epi8(load(at), newline), _mm256_cmpeq_epi8(load(at + 32), newline));
        }

        // Twelve at once, then four: how many there are would be mispredicted.
        RARESTREAM_AVX2 static std::uint32_t* put(std::uint64_t bits, std::uint32_t offset, std::uint32_t* out) {
            std::uint32_t* const end = out + _mm_popcnt_u64(bits);
            for (int i = 0; i < 12; ++i) {
                out[i] = offset + static_cast<std::uint32_t>(_tzcnt_u64(bits));
                bits = _blsr_u64(bits);
            }
            for (out += 12; out < end; out += 4) {
                for (int i = 0; i < 4; ++i) {
                    out[i] = offset + static_cast<std::uint32_t>(_tzcnt_u64(bits));
                    bits = _blsr_u64(bits);
                }
            }
            return end;
        }

        RARESTREAM_AVX2 static __m256i load(const char* at) {
            return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
        }

        RARESTREAM_AVX2 static std::uint64_t mask(__m256i a, __m256i b) {
            return static_cast<std::uint32_t>(_mm256_movemask_epi8(a)) |
                   static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(b))) << 32;
        }
    };

    struct OfAvx512 {
        RARESTREAM_AVX512 static void find(const char* at, std::uint64_t& colons, std::uint64_t& blanks,
                                           std::uint64_t& low) {
            const __m512i blank = _mm512_set1_epi8(' '), bytes = _mm512_loadu_si512(at);
            colons = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(':'));
            blanks = _mm512_cmpeq_epi8_mask(bytes, blank);
            low = _mm512_cmple_epu8_mask(bytes, blank);
        }

        RARESTREAM_AVX512 static std::uint64_t newlines(const char* at) {
            return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(at), _mm512_set1_epi8('\n'));
        }

        RARESTREAM_AVX512 static std::uint32_t* put(std::uint64_t bits, std::uint32_t offset, std::uint32_t* out) {
            alignas(64) static constexpr std::uint8_t numbers[64] = {
                0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
            // GCC 12 warns of the forms without a mask.
            const __m512i places = _mm512_maskz_compress_epi8(bits, _mm512_load_si512(numbers));
            const __m512i offsets = _mm512_set1_epi32(static_cast<int>(offset));
            const auto count = static_cast<int>(_mm_popcnt_u64(bits));
            store(out, _mm512_maskz_extracti32x4_epi32(0xf, places, 0), offsets);
            if (count > 16) store(out + 16, _mm512_maskz_extracti32x4_epi32(0xf, places, 1), offsets);
            if (count > 32) store(out + 32, _mm512_maskz_extracti32x4_epi32(0xf, places, 2), offsets);
            if (count > 48) store(out + 48, _mm512_maskz_extracti32x4_epi32(0xf, places, 3), offsets);
            return out + count;
        }

        RARESTREAM_AVX512 static void store(std::uint32_t* out, __m128i places, __m512i offsets) {
            _mm512_storeu_si512(out, _mm512_add_epi32(_mm512_maskz_cvtepu8_epi32(0xffff, places), offsets));
        }
    };

    bool wide_;
    PooledArray<std::uint32_t> places_;
    PooledArray<Found> lines_;  // of the last piece
    const char *text_ = nullptr, *at_ = nullptr, *end_ = nullptr;
    std::size_t begin_ = 0, count_ = 0, line_ = 0, line_count_ = 0;
    std::uint32_t colons_ = 0;  // since the last newline
};

inline int load_four(const char* p) {
    int x;
    std::memcpy(&x, p, 4);
    return x;
}

RARESTREAM_AVX2 inline __m128i two_eights(const char* low, const char* high) {
    const __m128i first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(low));
    return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(first), reinterpret_cast<const __m64*>(high)));
}

RARESTREAM_AVX2 inline __m256i two_pairs(const char* text, std::uint32_t first, std::uint32_t second) {
    // The eight bytes before a colon end with the index; the decimals begin three bytes after it.
    return _mm256_inserti128_si256(_mm256_castsi128_si256(two_eights(text + first - 8, text + first + 3)),
                                   two_eights(text + second - 8, text + second + 3), 1);
}

// Digits of an index, at its end, and of decimals, at their beginning: lengths of both, for two pairs. Other bytes are 0.
RARESTREAM_AVX2 inline __m256i only_digits(__m256i bytes, __m128i lengths, __m256i& wrong) {
    const __m256i never_left = _mm256_set_epi64x(255, 0, 255, 0), never_right = _mm256_set_epi64x(0, 255, 0, 255);
    const __m256i all = _mm256_set1_epi64x(-1);
    const __m256i rest = _mm256_sub_epi64(_mm256_set1_epi64x(64), _mm256_slli_epi64(_mm256_cvtepi32_epi64(lengths), 3));
    const __m256i kept = _mm256_or_si256(_mm256_sllv_epi64(all, _mm256_or_si256(rest, never_left)),
                                         _mm256_srlv_epi64(all, _mm256_or_si256(rest, never_right)));
    const __m256i digits = _mm256_and_si256(_mm256_xor_si256(bytes, _mm256_set1_epi8('0')), kept);
    wrong = _mm256_or_si256(wrong, _mm256_subs_epu8(digits, _mm256_set1_epi8(9)));
    return digits;
}

// Numbers of four digits each.
RARESTREAM_AVX2 inline __m256i by_fours(__m256i digits) {
    const __m256i tens = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(10 | 1 << 8));
    return _mm256_madd_epi16(tens, _mm256_set1_epi32(100 | 1 << 16));
}

struct FourPairs {
    __m128i indices;
    __m128 values;
};

// Four pairs from between separators: the one before `places`, and eight from there. What is wrong is or-ed to `wrong`.
RARESTREAM_AVX2 inline FourPairs four_pairs(const char* text, const std::uint32_t* places, std::int32_t first,
                                            __m256i& wrong) {
    // Lengths of index, decimals, index, decimals, ...; -1 decimals: there is no point, and the value has one digit.
    const __m256i here = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
    const __m256i before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places - 1));
    const __m256i lengths = _mm256_sub_epi32(_mm256_sub_epi32(here, before), _mm256_set_epi32(3, 1, 3, 1, 3, 1, 3, 1));
    const __m128i low = _mm256_castsi256_si128(lengths), high = _mm256_extracti128_si256(lengths, 1);
    const __m128i decimals = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0xdd));
    const __m128i whole = _mm_cmpeq_epi32(decimals, _mm_set1_epi32(-1));
    // All are 1 to 8, but for -1 decimals: less one, 0 to 7.
    const __m256i less = _mm256_add_epi32(lengths, _mm256_set1_epi32(-1));
    const __m256i too_long = _mm256_andnot_si256(
        _mm256_cmpeq_epi32(lengths, _mm256_set_epi32(-1, INT32_MIN, -1, INT32_MIN, -1, INT32_MIN, -1, INT32_MIN)),
        _mm256_srli_epi32(less, 3));
    wrong = _mm256_or_si256(wrong, too_long);

    // From the colons on: a colon, a digit, a point.
    __m128i colons = _mm_cvtsi32_si128(load_four(text + places[0]));
    colons = _mm_insert_epi32(colons, load_four(text + places[2]), 1);
    colons = _mm_insert_epi32(colons, load_four(text + places[4]), 2);
    colons = _mm_insert_epi32(colons, load_four(text + places[6]), 3);
    colons = _mm_xor_si128(colons, _mm_set1_epi32(':' | '0' << 8 | '.' << 16));
    const __m128i beyond = _mm_subs_epu8(colons, _mm_set1_epi32(static_cast<int>(0xff000900)));
    const __m128i no_point = _mm_and_si128(whole, _mm_set1_epi32(0xff0000));
    wrong = _mm256_or_si256(wrong, _mm256_zextsi128_si256(_mm_andnot_si128(no_point, beyond)));
    const __m128i units = _mm_and_si128(_mm_srli_epi32(colons, 8), _mm_set1_epi32(0xff));

    const __m256i even = only_digits(two_pairs(text, places[0], places[4]), _mm_unpacklo_epi64(low, high), wrong);
    const __m256i odd = only_digits(two_pairs(text, places[2], places[6]), _mm_unpackhi_epi64(low, high), wrong);
    const __m256i numbers =
        _mm256_madd_epi16(_mm256_packus_epi32(by_fours(even), by_fours(odd)), _mm256_set1_epi32(10000 | 1 << 16));
    const __m128 left = _mm_castsi128_ps(_mm256_castsi256_si128(numbers));
    const __m128 right = _mm_castsi128_ps(_mm256_extracti128_si256(numbers, 1));
    const __m128i indices = _mm_castps_si128(_mm_shuffle_ps(left, right, 0x88));
    const __m128i after = _mm_castps_si128(_mm_shuffle_ps(left, right, 0xdd));
    const __m128i mantissas = _mm_add_epi32(_mm_mullo_epi32(units, _mm_set1_epi32(100000000)), after);
    const __m256d values = _mm256_div_pd(_mm256_cvtepi32_pd(mantissas), _mm256_set1_pd(1e8));
    return {_mm_sub_epi32(indices, _mm_set1_epi32(first)), _mm256_cvtpd_ps(values)};
}

// The pairs between separators, of which there are two each; at least four pairs. False if they are not as above.
RARESTREAM_AVX2 inline bool pairs_between(const char* text, const std::uint32_t* places, std::ptrdiff_t n,
                                          std::int32_t first, std::int32_t* indices, float* values) {
    __m256i wrong = _mm256_setzero_si256();
    __m128i last = _mm_set1_epi32(-1), ascending = last;
    for (std::ptrdiff_t i = 0; i < n; i += 4) {
        if (i > n - 4) {  // some are parsed again
            i = n - 4;
            last = _mm_set1_epi32(INT32_MIN);
        }
        const FourPairs four = four_pairs(text, places + 2 * i, first, wrong);
        ascending = _mm_and_si128(ascending, _mm_cmpgt_epi32(four.indices, _mm_alignr_epi8(four.indices, last, 12)));
        last = four.indices;
        _mm_storeu_si128(reinterpret_cast<__m128i*>(indices + i), four.indices);
        _mm_storeu_ps(values + i, four.values);
    }
    return _mm256_testz_si256(wrong, wrong) && _mm_movemask_epi8(ascending) == 0xffff;
}

#endif

}  // namespace rarestream::svmlight
