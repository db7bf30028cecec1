// Eight numbers at a time. The same source is compiled twice, once for any machine and once with AVX2 (RARESTREAM_ISA
// names the two), and both give the same bits: sums run in one fixed eight-lane order, square root and division are
// exact by IEEE 754, and nothing is contracted.
//
// Only inline code of this namespace may be instantiated in kernels_*.cpp: a std template compiled there with AVX2
// could be the copy the linker keeps for everyone.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#ifndef RARESTREAM_ISA
#define RARESTREAM_ISA portable
#endif

namespace rarestream {
inline namespace RARESTREAM_ISA {

constexpr int LANES = 8;

typedef float F32 __attribute__((vector_size(32)));
typedef double F64 __attribute__((vector_size(64)));

template <class Real>
struct LanesOf;
template <>
struct LanesOf<float> {
    typedef F32 type;
};
template <>
struct LanesOf<double> {
    typedef F64 type;
};
template <class Real>
using Lanes = typename LanesOf<Real>::type;

template <class Real>
inline Lanes<Real> load(const Real* p) {
    Lanes<Real> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class Real>
inline void store(Real* p, Lanes<Real> v) {
    std::memcpy(p, &v, sizeof v);
}

// Row values are float32 whatever the state is.
template <class Real>
inline Lanes<Real> load_values(const float* p) {
    return __builtin_convertvector(load<float>(p), Lanes<Real>);
}

inline F32 root(F32 v) {
    F32 r;
#if defined(__AVX2__)
    __m256 t;
    std::memcpy(&t, &v, 32);
    t = _mm256_sqrt_ps(t);
    std::memcpy(&r, &t, 32);
#elif defined(__SSE2__)
    __m128 t[2];
    std::memcpy(t, &v, 32);
    t[0] = _mm_sqrt_ps(t[0]);
    t[1] = _mm_sqrt_ps(t[1]);
    std::memcpy(&r, t, 32);
#else
    for (int l = 0; l < LANES; ++l) r[l] = std::sqrt(v[l]);
#endif
    return r;
}

inline F64 root(F64 v) {
    F64 r;
#if defined(__AVX2__)
    __m256d t[2];
    std::memcpy(t, &v, 64);
    t[0] = _mm256_sqrt_pd(t[0]);
    t[1] = _mm256_sqrt_pd(t[1]);
    std::memcpy(&r, t, 64);
#elif defined(__SSE2__)
    __m128d t[4];
    std::memcpy(t, &v, 64);
    for (auto& part : t) part = _mm_sqrt_pd(part);
    std::memcpy(&r, t, 64);
#else
    for (int l = 0; l < LANES; ++l) r[l] = std::sqrt(v[l]);
#endif
    return r;
}

// z shrunk towards zero by lam, exactly zero within it.
template <class V, class Real>
inline V soft(V z, Real lam) {
    const V top = V{} + lam, low = V{} - lam;
    const V inside = z > top ? top : (z < low ? low : z);
    return z - inside;
}

template <class V>
inline double sum(V v) {
    return static_cast<double>(((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])));
}

template <class Real>
inline void gather(const Pair<Real>* state, const std::int32_t* at, Lanes<Real>& z, Lanes<Real>& n) {
#if defined(__AVX2__)
    if constexpr (sizeof(Real) == 4) {
        const auto two = [&](int i) {
            __m128 pair = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(state + at[i])));
            return _mm_loadh_pi(pair, reinterpret_cast<const __m64*>(state + at[i + 1]));
        };
        const __m256 even = _mm256_set_m128(two(4), two(0)), odd = _mm256_set_m128(two(6), two(2));
        const __m256 zs = _mm256_shuffle_ps(even, odd, 0x88), ns = _mm256_shuffle_ps(even, odd, 0xDD);
        std::memcpy(&z, &zs, 32);
        std::memcpy(&n, &ns, 32);
    } else {
        __m256d zs[2], ns[2];
        for (int half = 0; half < 2; ++half) {
            const std::int32_t* j = at + 4 * half;
            const auto one = [&](int i) { return _mm_loadu_pd(reinterpret_cast<const double*>(state + j[i])); };
            const __m256d even = _mm256_set_m128d(one(2), one(0)), odd = _mm256_set_m128d(one(3), one(1));
            zs[half] = _mm256_unpacklo_pd(even, odd);
            ns[half] = _mm256_unpackhi_pd(even, odd);
        }
        std::memcpy(&z, zs, 64);
        std::memcpy(&n, ns, 64);
    }
#else
    for (int l = 0; l < LANES; ++l) {
        z[l] = state[at[l]].z;
        n[l] = state[at[l]].n;
    }
#endif
}

template <class Real>
inline void scatter(Pair<Real>* state, const std::int32_t* at, Lanes<Real> z, Lanes<Real> n) {
#if defined(__AVX2__)
    if constexpr (sizeof(Real) == 4) {
        __m256 zs, ns;
        std::memcpy(&zs, &z, 32);
        std::memcpy(&ns, &n, 32);
        const __m256 low = _mm256_unpacklo_ps(zs, ns), high = _mm256_unpackhi_ps(zs, ns);
        const auto two = [&](__m128 pairs, int i) {
            _mm_storel_pi(reinterpret_cast<__m64*>(state + at[i]), pairs);
            _mm_storeh_pi(reinterpret_cast<__m64*>(state + at[i + 1]), pairs);
        };
        two(_mm256_castps256_ps128(low), 0);
        two(_mm256_castps256_ps128(high), 2);
        two(_mm256_extractf128_ps(low, 1), 4);
        two(_mm256_extractf128_ps(high, 1), 6);
    } else {
        __m256d zs[2], ns[2];
        std::memcpy(zs, &z, 64);
        std::memcpy(ns, &n, 64);
        for (int half = 0; half < 2; ++half) {
            const std::int32_t* j = at + 4 * half;
            const __m256d even = _mm256_unpacklo_pd(zs[half], ns[half]), odd = _mm256_unpackhi_pd(zs[half], ns[half]);
            const auto one = [&](int i, __m128d pair) { _mm_storeu_pd(reinterpret_cast<double*>(state + j[i]), pair); };
            one(0, _mm256_castpd256_pd128(even));
            one(1, _mm256_castpd256_pd128(odd));
            one(2, _mm256_extractf128_pd(even, 1));
            one(3, _mm256_extractf128_pd(odd, 1));
        }
    }
#else
    for (int l = 0; l < LANES; ++l) state[at[l]] = {z[l], n[l]};
#endif
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
