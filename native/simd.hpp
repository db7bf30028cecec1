// Vectors of eight numbers. The same source is compiled twice, once for any machine and once with AVX2 (RARESTREAM_ISA
// names the two), and both give the same bits: sums have one fixed eight-lane order, square root and division are
// exact by IEEE 754, and nothing is contracted.
//
// Only inline code of this namespace may be instantiated in kernels_*.cpp: a std template compiled there with AVX2
// could be the copy the linker keeps for everyone.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "platform.hpp"

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

#if defined(__AVX2__)
constexpr int REGISTER = 32;  // bytes
#else
constexpr int REGISTER = 16;
#endif
typedef float FloatRegister __attribute__((vector_size(REGISTER)));
typedef double DoubleRegister __attribute__((vector_size(REGISTER)));
typedef std::int32_t MaskRegister __attribute__((vector_size(REGISTER)));

// A register from memory of any alignment, in one access: memcpy may use two, and the load that follows then stalls.
template <class Register>
RARESTREAM_ALWAYS_INLINE Register load_register(const void* p) {
    typedef Register Anywhere __attribute__((aligned(4), may_alias));
    return *static_cast<const Anywhere*>(p);
}

template <class Register>
RARESTREAM_ALWAYS_INLINE void store_register(void* p, const Register& r) {
    typedef Register Anywhere __attribute__((aligned(4), may_alias));
    *static_cast<Anywhere*>(p) = r;
}

RARESTREAM_ALWAYS_INLINE FloatRegister broadcast(float value) {
#if defined(__AVX2__)
    return (FloatRegister)_mm256_set1_ps(value);
#else
    return FloatRegister{value, value, value, value};
#endif
}

RARESTREAM_ALWAYS_INLINE DoubleRegister broadcast(double value) {
#if defined(__AVX2__)
    return (DoubleRegister)_mm256_set1_pd(value);
#else
    return DoubleRegister{value, value};
#endif
}

// `Lanes` numbers in as many registers as they need.
template <class Real_, class Register_, int Lanes = LANES>
struct VectorOf {
    using Real = Real_;
    using Register = Register_;
    static constexpr int PER_REGISTER = sizeof(Register) / sizeof(Real);
    static constexpr int PARTS = Lanes / PER_REGISTER;
    Register part[PARTS];

    static RARESTREAM_ALWAYS_INLINE VectorOf all(Real value) {
        VectorOf r;
        for (auto& p : r.part) {
            if constexpr (sizeof(Register) == REGISTER)
                p = broadcast(value);
            else
                p = value - Register{};  // x - 0 is x, also for x = -0
        }
        return r;
    }
    static RARESTREAM_ALWAYS_INLINE VectorOf load(const Real* p) {
        VectorOf r;
        for (int i = 0; i < PARTS; ++i) r.part[i] = load_register<Register>(p + i * PER_REGISTER);
        return r;
    }
    RARESTREAM_ALWAYS_INLINE void store(Real* p) const {
        for (int i = 0; i < PARTS; ++i) store_register(p + i * PER_REGISTER, part[i]);
    }
    // f of each pair of registers.
    template <class Function>
    friend RARESTREAM_ALWAYS_INLINE VectorOf map_registers(const VectorOf& l, const VectorOf& r, Function&& f) {
        VectorOf out;
        for (int i = 0; i < PARTS; ++i) out.part[i] = f(l.part[i], r.part[i]);
        return out;
    }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator+(VectorOf l, VectorOf r) {
        return map_registers(l, r, [](Register a, Register b) RARESTREAM_INLINE_LAMBDA { return a + b; });
    }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator-(VectorOf l, VectorOf r) {
        return map_registers(l, r, [](Register a, Register b) RARESTREAM_INLINE_LAMBDA { return a - b; });
    }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator*(VectorOf l, VectorOf r) {
        return map_registers(l, r, [](Register a, Register b) RARESTREAM_INLINE_LAMBDA { return a * b; });
    }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator/(VectorOf l, VectorOf r) {
        return map_registers(l, r, [](Register a, Register b) RARESTREAM_INLINE_LAMBDA { return a / b; });
    }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator*(Real l, VectorOf r) { return all(l) * r; }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator*(VectorOf l, Real r) { return l * all(r); }
    friend RARESTREAM_ALWAYS_INLINE VectorOf operator+(Real l, VectorOf r) { return all(l) + r; }
};

using F32 = VectorOf<float, FloatRegister>;
using F64 = VectorOf<double, DoubleRegister>;
static_assert(sizeof(F32) == 32 && sizeof(F64) == 64, "eight lanes, no padding");

template <class Real>
struct VectorFor;
template <>
struct VectorFor<float> {
    using type = F32;
};
template <>
struct VectorFor<double> {
    using type = F64;
};
template <class Real>
using Vector = typename VectorFor<Real>::type;

template <class Real>
RARESTREAM_ALWAYS_INLINE Vector<Real> load(const Real* p) {
    return Vector<Real>::load(p);
}

template <class Real>
RARESTREAM_ALWAYS_INLINE void store(Real* p, const Vector<Real>& v) {
    v.store(p);
}

// The first `live` lanes; the others become 0.
RARESTREAM_ALWAYS_INLINE F32 first_lanes(F32 v, std::int64_t live) {
    static const std::int32_t keep[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const std::int32_t* mask = keep + LANES - live;
    for (int i = 0; i < F32::PARTS; ++i)
        v.part[i] = (FloatRegister)((MaskRegister)v.part[i] & load_register<MaskRegister>(mask + i * (LANES / F32::PARTS)));
    return v;
}

// Row values are float32 whatever the state is.
template <class Real>
RARESTREAM_ALWAYS_INLINE Vector<Real> widened(const F32& v);

template <>
RARESTREAM_ALWAYS_INLINE F32 widened<float>(const F32& v) {
    return v;
}

template <>
RARESTREAM_ALWAYS_INLINE F64 widened<double>(const F32& v) {
    F64 wide;
#if defined(__AVX2__)
    wide.part[0] = (DoubleRegister)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v.part[0]));
    wide.part[1] = (DoubleRegister)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v.part[0], 1));
#elif defined(__SSE2__)
    for (int i = 0; i < 2; ++i) {
        const __m128 half = (__m128)v.part[i];
        wide.part[2 * i] = (DoubleRegister)_mm_cvtps_pd(half);
        wide.part[2 * i + 1] = (DoubleRegister)_mm_cvtps_pd(_mm_movehl_ps(half, half));
    }
#else
    float narrow[LANES];
    double widened_values[LANES];
    store(narrow, v);
    for (int l = 0; l < LANES; ++l) widened_values[l] = narrow[l];
    wide = load(widened_values);
#endif
    return wide;
}

// The square root of one register. IEEE 754 leaves it no choice of rounding, so all instruction sets agree.
template <class Real, class Register>
RARESTREAM_ALWAYS_INLINE Register square_root_of_register(Register r) {
    constexpr bool single = sizeof(Real) == 4;
    (void)single;
#if defined(__AVX512F__)
    // The masked form: the plain one warns of an uninitialised operand.
    if constexpr (sizeof(Register) == 64 && single) return (Register)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)r);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(Register) == 32 && single) return (Register)_mm256_sqrt_ps((__m256)r);
    if constexpr (sizeof(Register) == 32 && !single) return (Register)_mm256_sqrt_pd((__m256d)r);
#elif defined(__SSE2__)
    if constexpr (sizeof(Register) == 16 && single) return (Register)_mm_sqrt_ps((__m128)r);
    if constexpr (sizeof(Register) == 16 && !single) return (Register)_mm_sqrt_pd((__m128d)r);
#endif
    for (std::size_t l = 0; l < sizeof(Register) / sizeof(Real); ++l) r[l] = std::sqrt(r[l]);
    return r;
}

template <class Real, class Register, int Lanes>
RARESTREAM_ALWAYS_INLINE VectorOf<Real, Register, Lanes> square_root(VectorOf<Real, Register, Lanes> v) {
    for (auto& p : v.part) p = square_root_of_register<Real>(p);
    return v;
}
RARESTREAM_ALWAYS_INLINE float square_root(float v) { return std::sqrt(v); }
RARESTREAM_ALWAYS_INLINE double square_root(double v) { return std::sqrt(v); }

// z shrunk towards zero by lam, and exactly zero where |z| <= lam.
template <class V>
RARESTREAM_ALWAYS_INLINE V soft_threshold(const V& z, const V& lam) {
    using R = typename V::Register;
    return map_registers(z, lam, [](R x, R top) RARESTREAM_INLINE_LAMBDA {
        const R low = -top, capped = x < top ? x : top;
        return x - (capped > low ? capped : low);
    });
}
template <class V>
RARESTREAM_ALWAYS_INLINE V soft_threshold(const V& z, typename V::Real lam) {
    return soft_threshold(z, V::all(lam));
}

// `a` if a number is not 0, else `b`; without a branch.
template <class V>
RARESTREAM_ALWAYS_INLINE V if_not_zero(double number, const V& a, const V& b) {
    using R = typename V::Register;
    const DoubleRegister numbers = broadcast(number);
    return map_registers(a, b, [&](R x, R y) RARESTREAM_INLINE_LAMBDA {
        return (R)(numbers != 0.0 ? (DoubleRegister)x : (DoubleRegister)y);
    });
}

// Whether the size of every number is below a limit; false if one is not a number.
RARESTREAM_ALWAYS_INLINE bool all_below(const F32& v, float limit) {
    bool below = true;
    for (const FloatRegister& one : v.part) {
#if defined(__AVX2__)
        const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), (__m256)one);
        below &= _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(limit), _CMP_LT_OQ)) == 0xFF;
#elif defined(__SSE2__)
        const __m128 size = _mm_andnot_ps(_mm_set1_ps(-0.0f), (__m128)one);
        below &= _mm_movemask_ps(_mm_cmplt_ps(size, _mm_set1_ps(limit))) == 0xF;
#else
        for (int l = 0; l < F32::PER_REGISTER; ++l) below &= std::fabs(one[l]) < limit;
#endif
    }
    return below;
}

// The sum of the lanes, always in this order: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
template <class V>
RARESTREAM_ALWAYS_INLINE double sum(const V& lanes) {
#if defined(__AVX2__)
    if constexpr (sizeof(typename V::Real) == 4) {
        const __m256 v = (__m256)lanes.part[0];
        const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
#endif
    typename V::Real v[LANES];
    store(v, lanes);
    return static_cast<double>(((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])));
}

// The pairs of eight coordinates, which are `Stride` pairs apart.
template <int Stride = 1, class Real>
RARESTREAM_ALWAYS_INLINE void gather(const Pair<Real>* state, const std::int32_t* at, Vector<Real>& z, Vector<Real>& n) {
    const auto pair_of = [&](int i) RARESTREAM_INLINE_LAMBDA { return state + Stride * std::int64_t{at[i]}; };
#if defined(__AVX2__)
    if constexpr (sizeof(Real) == 4) {
        const auto two = [&](int i) RARESTREAM_INLINE_LAMBDA {
            __m128 pair = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(pair_of(i))));
            return _mm_loadh_pi(pair, reinterpret_cast<const __m64*>(pair_of(i + 1)));
        };
        const __m256 even = _mm256_set_m128(two(4), two(0)), odd = _mm256_set_m128(two(6), two(2));
        const __m256 zs = _mm256_shuffle_ps(even, odd, 0x88), ns = _mm256_shuffle_ps(even, odd, 0xDD);
        z.part[0] = (FloatRegister)zs;
        n.part[0] = (FloatRegister)ns;
    } else {
        for (int half = 0; half < 2; ++half) {
            const auto one = [&](int i) RARESTREAM_INLINE_LAMBDA {
                return _mm_loadu_pd(reinterpret_cast<const double*>(pair_of(4 * half + i)));
            };
            const __m256d even = _mm256_set_m128d(one(2), one(0)), odd = _mm256_set_m128d(one(3), one(1));
            z.part[half] = (DoubleRegister)_mm256_unpacklo_pd(even, odd);
            n.part[half] = (DoubleRegister)_mm256_unpackhi_pd(even, odd);
        }
    }
#else
    Real zs[LANES], ns[LANES];
    for (int l = 0; l < LANES; ++l) {
        zs[l] = pair_of(l)->z;
        ns[l] = pair_of(l)->n;
    }
    z = load(zs);
    n = load(ns);
#endif
}

// Writes lane l of eight pairs to to(l). A pair is always stored as a whole: loading it soon after two half stores would
// stall.
template <class Real, class To>
RARESTREAM_ALWAYS_INLINE void store_pairs(const Vector<Real>& z, const Vector<Real>& n, To&& to) {
#if defined(__AVX2__)
    if constexpr (sizeof(Real) == 4) {
        const __m256 zs = (__m256)z.part[0], ns = (__m256)n.part[0];
        const __m256 low = _mm256_unpacklo_ps(zs, ns), high = _mm256_unpackhi_ps(zs, ns);
        const __m128 two[4] = {_mm256_castps256_ps128(low), _mm256_castps256_ps128(high), _mm256_extractf128_ps(low, 1),
                               _mm256_extractf128_ps(high, 1)};
        for (int i = 0; i < 4; ++i) {
            _mm_storel_pi(reinterpret_cast<__m64*>(to(2 * i)), two[i]);
            _mm_storeh_pi(reinterpret_cast<__m64*>(to(2 * i + 1)), two[i]);
        }
    } else {
        for (int half = 0; half < 2; ++half) {
            const __m256d zs = (__m256d)z.part[half], ns = (__m256d)n.part[half];
            const __m256d even = _mm256_unpacklo_pd(zs, ns), odd = _mm256_unpackhi_pd(zs, ns);
            const __m128d one[4] = {_mm256_castpd256_pd128(even), _mm256_castpd256_pd128(odd),
                                    _mm256_extractf128_pd(even, 1), _mm256_extractf128_pd(odd, 1)};
            for (int l = 0; l < 4; ++l) _mm_storeu_pd(&to(4 * half + l)->z, one[l]);
        }
    }
#else
    Real zs[LANES], ns[LANES];
    store(zs, z);
    store(ns, n);
    for (int l = 0; l < LANES; ++l) *to(l) = {zs[l], ns[l]};
#endif
}

// Writes the first `live` lanes back. A pair is always stored as a whole: loading it soon after two half stores would
// stall.
template <int Stride = 1, class Real>
RARESTREAM_ALWAYS_INLINE void scatter(Pair<Real>* state, const std::int32_t* at, const Vector<Real>& z,
                                      const Vector<Real>& n, std::int64_t live) {
    const auto pair_of = [&](int i) RARESTREAM_INLINE_LAMBDA { return state + Stride * std::int64_t{at[i]}; };
#if defined(__AVX2__)
    if constexpr (sizeof(Real) == 4) {
        const __m256 zs = (__m256)z.part[0], ns = (__m256)n.part[0];
        const __m256 low = _mm256_unpacklo_ps(zs, ns), high = _mm256_unpackhi_ps(zs, ns);
        const __m128 two[4] = {_mm256_castps256_ps128(low), _mm256_castps256_ps128(high), _mm256_extractf128_ps(low, 1),
                               _mm256_extractf128_ps(high, 1)};
        if (live >= LANES) {
            for (int i = 0; i < 4; ++i) {
                _mm_storel_pi(reinterpret_cast<__m64*>(pair_of(2 * i)), two[i]);
                _mm_storeh_pi(reinterpret_cast<__m64*>(pair_of(2 * i + 1)), two[i]);
            }
            return;
        }
        for (int i = 0; 2 * i < live; ++i) {
            _mm_storel_pi(reinterpret_cast<__m64*>(pair_of(2 * i)), two[i]);
            if (2 * i + 1 < live) _mm_storeh_pi(reinterpret_cast<__m64*>(pair_of(2 * i + 1)), two[i]);
        }
        return;
    } else {
        for (int half = 0; half < 2; ++half) {
            const __m256d zs = (__m256d)z.part[half], ns = (__m256d)n.part[half];
            const __m256d even = _mm256_unpacklo_pd(zs, ns), odd = _mm256_unpackhi_pd(zs, ns);
            const __m128d one[4] = {_mm256_castpd256_pd128(even), _mm256_castpd256_pd128(odd),
                                    _mm256_extractf128_pd(even, 1), _mm256_extractf128_pd(odd, 1)};
            for (int l = 0; l < 4; ++l)
                if (4 * half + l < live) _mm_storeu_pd(&pair_of(4 * half + l)->z, one[l]);
        }
        return;
    }
#endif
    Real zs[LANES], ns[LANES];
    store(zs, z);
    store(ns, n);
    for (int l = 0; l < LANES && l < live; ++l) *pair_of(l) = {zs[l], ns[l]};
}

// Writes all eight pairs back.
template <int Stride = 1, class Real>
RARESTREAM_ALWAYS_INLINE void scatter_all(Pair<Real>* state, const std::int32_t* at, const Vector<Real>& z,
                                          const Vector<Real>& n) {
    store_pairs<Real>(z, n, [&](int l) RARESTREAM_INLINE_LAMBDA { return state + Stride * std::int64_t{at[l]}; });
}

// Writes the first `live` lanes back, and the others to a pair of no coordinate: no branch depends on how many there are.
// All eight of `at` are read.
template <int Stride = 1, class Real>
RARESTREAM_ALWAYS_INLINE void scatter_some(Pair<Real>* state, const std::int32_t* at, const Vector<Real>& z,
                                           const Vector<Real>& n, std::int64_t live) {
    static const std::int64_t keep[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const std::int64_t* const kept = keep + LANES - live;
    Pair<Real> none;
    const auto elsewhere = reinterpret_cast<std::uintptr_t>(&none);
    store_pairs<Real>(z, n, [&](int l) RARESTREAM_INLINE_LAMBDA {
        const auto there = reinterpret_cast<std::uintptr_t>(state + Stride * std::int64_t{at[l]});
        // Not `l < live ? there : elsewhere`: compilers make branches of that.
        return reinterpret_cast<Pair<Real>*>(elsewhere + ((there - elsewhere) & static_cast<std::uintptr_t>(kept[l])));
    });
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
