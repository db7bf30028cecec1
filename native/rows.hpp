// The scaling of rows, which is a setting of every model.
#pragma once

#include <cstdint>

#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Lanes p .. p+7 of a row of k values, 0 past its end. `readable` values may be read from x, the row's and what follows.
inline F32 values_at(const float* x, std::int64_t p, std::int64_t k, std::int64_t readable) {
    if (p + LANES <= k) return load(x + p);
    if (p + LANES <= readable) return first(load(x + p), k - p);
    float tail[LANES] = {};
    for (int l = 0; p + l < k; ++l) tail[l] = x[p + l];
    return load(tail);
}

// The Euclidean norm, eight lanes of double.
inline double norm(const float* x, std::int64_t k, std::int64_t readable) {
    F64 total = F64::all(0);
    for (std::int64_t p = 0; p < k; p += LANES) {
        const F64 v = widened<double>(values_at(x, p, k, readable));
        total = total + v * v;
    }
    return std::sqrt(sum(total));
}

// A row about to be used: the lanes are its values times u. Past its end they are 0, and point at some coordinate, which
// they must not move.
template <class Real>
struct Scaled {
    const std::int32_t* at;
    const float* x;
    const Real* ready;  // in place of x when values were changed on the way: zeros up to whole lanes
    std::int64_t k, readable;
    Real u;
    bool grew;  // Scale::max: a value is larger than any before of its coordinate

    Lanes<Real> lanes(std::int64_t p, std::int32_t* padded, const std::int32_t*& where) const {
        where = at + p;
        if (p + LANES > readable) {
            for (int l = 0; l < LANES; ++l) padded[l] = p + l < k ? at[p + l] : 0;
            where = padded;
        }
        return (ready ? load(ready + p) : widened<Real>(values_at(x, p, k, readable))) * u;
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
        const Real most = larger ? size : before;
        grew |= larger;
        scratch.shrink[p] = larger ? before / most : Real(1);
        scratch.ready[p] = most > 0 ? x[p] / most : Real(0);
    }
    return grew;
}

// Row i of the rows, scaled.
template <class Real>
inline Scaled<Real> scaled(const Rows& rows, std::int64_t i, Scale scale, const float* largest,
                           const Scratch<Real>& scratch) {
    const std::int64_t from = rows.indptr[i], k = rows.indptr[i + 1] - from;
    const std::int64_t readable = rows.indptr[rows.size] - from, whole = (k + LANES - 1) / LANES * LANES;
    const std::int32_t* at = rows.indices + from;
    const float* x = rows.values + from;
    Scaled<Real> row{at, x, nullptr, k, readable, Real(1), false};
    if (scale == Scale::none) return row;
    double length;
    if (scale == Scale::max) {
        row.grew = measure(largest, at, x, k, scratch);
        row.ready = scratch.ready;
        double squares = 0;
        for (std::int64_t p = 0; p < k; ++p)
            squares += static_cast<double>(scratch.ready[p]) * static_cast<double>(scratch.ready[p]);
        length = std::sqrt(squares);
    } else {
        length = norm(x, k, readable);
    }
    if (length > 1e-15 && length < 1e15) {
        row.u = static_cast<Real>(1 / length);
        if (!row.ready) return row;
    } else {
        // So far from 1 that float32 could not hold 1 / length or a product on the way: divide once, in double.
        for (std::int64_t p = 0; p < k; ++p) {
            const double value = row.ready ? static_cast<double>(scratch.ready[p]) : static_cast<double>(x[p]);
            scratch.ready[p] = length > 0 ? static_cast<Real>(value / length) : Real(0);
        }
        row.ready = scratch.ready;
    }
    for (std::int64_t p = k; p < whole; ++p) scratch.ready[p] = 0;
    return row;
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
