// exp and log in plain arithmetic. The C library chooses between variants by CPU, which differ in the last bits; a model
// must not depend on that. Both are accurate to about one unit in the last place.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// exp(x - k log 2) for a whole number k next to x / log 2, of a double or a register of them.
template <class Number>
RARESTREAM_ALWAYS_INLINE Number exponential_of_rest(const Number& x, const Number& k) {
    const Number r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    // The Taylor series up to r^13 / 13!, |r| <= 0.35, as a tree: for a short row, a chain of thirteen steps would be the
    // longest latency of all.
    const Number r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    const Number p01 = 1.0 + r, p23 = 1.0 / 2 + r * (1.0 / 6), p45 = 1.0 / 24 + r * (1.0 / 120);
    const Number p67 = 1.0 / 720 + r * (1.0 / 5040), p89 = 1.0 / 40320 + r * (1.0 / 362880);
    const Number pab = 1.0 / 3628800 + r * (1.0 / 39916800), pcd = 1.0 / 479001600 + r * (1.0 / 6227020800);
    return ((p01 + r2 * p23) + r4 * (p45 + r2 * p67)) + r8 * ((p89 + r2 * pab) + r4 * pcd);
}

inline double exponential(double x) {
    if (!(x > -708.0)) return 0.0;
    if (x > 708.0) x = 708.0;
    const double k = static_cast<double>(static_cast<std::int64_t>(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5)));
    const double p = exponential_of_rest(x, k);
    const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

// exponential(x) of N numbers from 0 to 700, bit for bit: a loop without branches, which becomes vectors.
template <int N>
inline void exponentials(const double (&x)[N], double (&out)[N]) {
    for (int i = 0; i < N; ++i) {
        const auto k = static_cast<std::int32_t>(x[i] * 1.4426950408889634 + 0.5);
        const double p = exponential_of_rest(x[i], static_cast<double>(k));
        const std::uint64_t bits = static_cast<std::uint64_t>(k + 1023) << 52;
        double power;
        std::memcpy(&power, &bits, sizeof power);
        out[i] = p * power;
    }
}

// For x > 0 and not denormal.
inline double logarithm(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    double e = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e += 1.0;
    }
    const double f = (m - 1.0) / (m + 1.0), g = f * f;  // log m = 2 artanh f, |f| <= 0.172
    double p = 1.0 / 21.0;
    for (int i = 19; i >= 1; i -= 2) p = p * g + 1.0 / i;
    return e * 6.93147180369123816490e-01 + (2.0 * f * p + e * 1.90821492927058770002e-10);
}

// x limited to [-limit, limit].
inline double clipped(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

// 1 / (1 + exp(-x))
inline double sigmoid(double x) {
    if (x >= 0) return 1.0 / (1.0 + exponential(-x));
    const double e = exponential(x);
    return e / (1.0 + e);
}

typedef std::uint64_t UnsignedRegister __attribute__((vector_size(REGISTER)));

// The same of every number in a register, without branches.
RARESTREAM_ALWAYS_INLINE DoubleRegister sigmoid(DoubleRegister x) {
    // Adding 1.5 2^52 rounds to an integer, which is then in the low bits.
    const DoubleRegister magic = broadcast(6755399441055744.0), minus = x < 0 ? x : -x;
    const DoubleRegister y = minus > -708.0 ? minus : broadcast(-708.0), whole = y * 1.4426950408889634 + magic;
    const DoubleRegister k = whole - magic, p = exponential_of_rest(y, k);
    const DoubleRegister small = p * (DoubleRegister)(((UnsignedRegister)whole + 1023) << 52), share = 1.0 / (1.0 + small);
    return x >= 0 ? share : small * share;
}

// |c|^r; the usual powers need no exp and log. In the precision of the state, as this is on the critical path.
template <class Real>
RARESTREAM_ALWAYS_INLINE Real power(Real c, double r) {
    c = std::fabs(c);
    if (r == 0.5) return std::sqrt(c);
    if (r == 2.0) return c * c;
    if (r == 1.0) return c;
    if (r == 0.0) return 1;
    return c < Real(1e-30) ? 0 : static_cast<Real>(exponential(r * logarithm(static_cast<double>(c))));
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
