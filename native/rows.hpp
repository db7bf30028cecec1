// The scaling of rows, which is a setting of every model.
#pragma once

#include <cstdint>

#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// The Euclidean norm, eight lanes of double.
inline double norm(const float* x, std::int64_t k) {
    F64 total{};
    std::int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        const F64 v = load_values<double>(x + p);
        total += v * v;
    }
    if (p < k) {
        float tail[LANES] = {};
        for (int l = 0; p + l < k; ++l) tail[l] = x[p + l];
        const F64 v = load_values<double>(tail);
        total += v * v;
    }
    return std::sqrt(sum(total));
}

// A row about to be used: the lanes are x times u. Past its end stand zeros that point at coordinate 0.
template <class Real>
struct Scaled {
    const std::int32_t* at;
    const float* x;
    std::int64_t k;
    Real u;
    bool grew;  // Scale::max: a value is larger than any before of its coordinate

    Lanes<Real> lanes(std::int64_t p, std::int32_t* padded, const std::int32_t*& where) const {
        if (p + LANES <= k) {
            where = at + p;
            return load_values<Real>(x + p) * u;
        }
        float tail[LANES] = {};
        for (int l = 0; l < LANES; ++l) padded[l] = 0;
        for (int l = 0; p + l < k; ++l) {
            padded[l] = at[p + l];
            tail[l] = x[p + l];
        }
        where = padded;
        return load_values<Real>(tail) * u;
    }
};

// Scale::max divides x by the largest |x| of its coordinate so far, this row's included. Says whether any grew, and by
// what factor the coordinate's older measure shrinks against the new one.
template <class Real>
inline bool measure(const float* largest, const std::int32_t* at, const float* x, std::int64_t k,
                    const Scratch<Real>& scratch) {
    bool grew = false;
    for (std::int64_t p = 0; p < k; ++p) {
        const float size = std::fabs(x[p]), before = largest[at[p]];
        const bool larger = size > before;
        const float most = larger ? size : before;
        grew |= larger;
        scratch.shrink[p] = larger ? static_cast<Real>(before) / static_cast<Real>(size) : Real(1);
        scratch.raw[p] = most > 0 ? x[p] / most : 0.0f;
    }
    return grew;
}

template <class Real>
inline Scaled<Real> scaled(Scale scale, const float* largest, const std::int32_t* at, const float* x, std::int64_t k,
                           const Scratch<Real>& scratch) {
    if (scale == Scale::none) return {at, x, k, Real(1), false};
    bool grew = false;
    if (scale == Scale::max) {
        grew = measure(largest, at, x, k, scratch);
        x = scratch.raw;
    }
    const double length = norm(x, k);
    if (length > 1e-15 && length < 1e15) return {at, x, k, static_cast<Real>(1 / length), grew};
    // So far from 1 that float32 could not hold 1 / length or a product on the way: divide once, in double.
    for (std::int64_t p = 0; p < k; ++p) scratch.raw[p] = length > 0 ? static_cast<float>(x[p] / length) : 0.0f;
    return {at, scratch.raw, k, Real(1), grew};
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
