// A number as two features: with u = 2 log2 |x|, k = floor(u) and t = u - k, the buckets k and k + 1 with the values 1 - t
// and t.
//
// A linear function of these is a continuous, piecewise linear function of log |x|. There is no state, so that a number
// has the same features in every file, in a service and on a cluster. Only arithmetic that rounds alike on all machines is
// used.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "isa.hpp"

namespace rarestream::features {

constexpr int SMALLEST_BUCKET = -2148, LARGEST_BUCKET = 2048;  // of the smallest and the largest double
constexpr std::string_view ZERO_BUCKET = "~0";

struct SoftBucket {
    int k;     // the lower of the two
    double t;  // 0 <= t < 1: the share of the upper one
};

// For a finite x != 0.
inline SoftBucket soft_bucket(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= 0x7FFFFFFFFFFFFFFFull;
    int exponent = static_cast<int>(bits >> 52);
    if (exponent == 0) {  // denormal
        std::memcpy(&x, &bits, sizeof x);
        x *= 18014398509481984.0;  // 2^54
        std::memcpy(&bits, &x, sizeof bits);
        exponent = static_cast<int>(bits >> 52) - 54;
    }
    exponent -= 1023;
    bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double m;
    std::memcpy(&m, &bits, sizeof m);  // 1 <= m < 2
    const bool upper = m >= 1.4142135623730951;
    if (upper) m *= 0.5;
    const double f = (m - 1.0) / (m + 1.0), g = f * f;  // log m = 2 artanh f, |f| <= 0.172
    double p = 1.0 / 21.0;
    for (int i = 19; i >= 1; i -= 2) p = p * g + 1.0 / i;
    double t = 2.0 * (2.0 * f * p * 1.4426950408889634);  // 2 log2 m
    if (upper) t += 1.0;
    if (t < 0.0) t = 0.0;
    if (t >= 1.0) t = 0.99999999999999989;
    return {2 * exponent + upper, t};
}

// It is inlined into a function of each instruction set.
template <class Number>
RARESTREAM_ALWAYS_INLINE void soft_buckets_in_vectors(const Number* numbers, int size, SoftBucket* found) {
    constexpr int STEP = 64;
    double mantissas[STEP], shares[STEP];
    std::int64_t exponents[STEP];
    for (int start = 0; start < size; start += STEP) {
        const int count = size - start < STEP ? size - start : STEP;
        for (int i = 0; i < count; ++i) {
            const double x = static_cast<double>(numbers[start + i]);
            std::uint64_t bits;
            std::memcpy(&bits, &x, sizeof bits);
            exponents[i] = static_cast<std::int64_t>(bits >> 52 & 0x7FF);
            bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
            std::memcpy(&mantissas[i], &bits, sizeof bits);
        }
        for (int i = 0; i < count; ++i) {
            const bool upper = mantissas[i] >= 1.4142135623730951;
            const double m = upper ? mantissas[i] * 0.5 : mantissas[i];
            const double f = (m - 1.0) / (m + 1.0), g = f * f;
            double p = 1.0 / 21.0;
            p = p * g + 1.0 / 19.0;
            p = p * g + 1.0 / 17.0;
            p = p * g + 1.0 / 15.0;
            p = p * g + 1.0 / 13.0;
            p = p * g + 1.0 / 11.0;
            p = p * g + 1.0 / 9.0;
            p = p * g + 1.0 / 7.0;
            p = p * g + 1.0 / 5.0;
            p = p * g + 1.0 / 3.0;
            p = p * g + 1.0 / 1.0;
            double t = 2.0 * (2.0 * f * p * 1.4426950408889634) + (upper ? 1.0 : 0.0);
            t = t < 0.0 ? 0.0 : t;
            shares[i] = t >= 1.0 ? 0.99999999999999989 : t;
        }
        for (int i = 0; i < count; ++i) {
            if (exponents[i] == 0) {  // denormal
                found[start + i] = soft_bucket(static_cast<double>(numbers[start + i]));
                continue;
            }
            const int upper = mantissas[i] >= 1.4142135623730951;
            found[start + i] = {2 * (static_cast<int>(exponents[i]) - 1023) + upper, shares[i]};
        }
    }
}

#if defined(__x86_64__)
template <class Number>
RARESTREAM_AVX2 void soft_buckets_avx2(const Number* numbers, int size, SoftBucket* found) {
    soft_buckets_in_vectors(numbers, size, found);
}
#endif

// Those of many numbers, of which zeros, infinities and NaNs give anything. It is the arithmetic of soft_bucket, in loops
// without branches, which take a fraction of the time.
template <class Number>
void soft_buckets(const Number* numbers, int size, SoftBucket* found, [[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
    if (uses_avx2(isa)) return soft_buckets_avx2(numbers, size, found);
#endif
    soft_buckets_in_vectors(numbers, size, found);
}

// The names of all buckets: ~2^1.5 for 3 of a positive number, ~-2^1.5 of a negative one.
class BucketNames {
public:
    static const BucketNames& all() {
        static const BucketNames* const names = new BucketNames;  // never destroyed: threads may outlive the interpreter
        return *names;
    }

    std::string_view name(int k, bool negative) const {
        const std::size_t i = 2 * static_cast<std::size_t>(k - SMALLEST_BUCKET) + negative;
        return std::string_view(text_).substr(starts_[i], starts_[i + 1] - starts_[i]);
    }

private:
    BucketNames() {
        for (int k = SMALLEST_BUCKET; k <= LARGEST_BUCKET; ++k) {
            const int whole = (k < 0 ? -k : k) / 2;
            for (const char* sign : {"", "-"}) {
                starts_.push_back(text_.size());
                text_ += std::string("~") + sign + "2^" + (k < 0 ? "-" : "") + std::to_string(whole) + (k % 2 ? ".5" : "");
            }
        }
        starts_.push_back(text_.size());
    }

    std::string text_;
    std::vector<std::size_t> starts_;
};

}  // namespace rarestream::features
