// Rows as lanes, and their scaling, which is a setting of every model.
#pragma once

#include <cstdint>

#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// One row, read eight lanes at a time. Past its end the lanes are 0, and point at some coordinate, which they must not
// move.
template <class Real>
struct Row {
    const std::int32_t* at;
    const float* x;
    const Real* ready = nullptr;  // in place of x when its values were changed on the way; zeros up to whole lanes
    std::int64_t k;
    std::int64_t readable;  // entries that may be read from `at` and `x`: the row's and those that follow it
    bool grew = false;      // Scale::max: a value is larger than any before of its coordinate

    Row(const Rows& rows, std::int64_t i)
        : at(rows.indices + rows.indptr[i]), x(rows.values + rows.indptr[i]), k(rows.indptr[i + 1] - rows.indptr[i]),
          readable(rows.indptr[rows.size] - rows.indptr[i]) {}

    // Calls act(p, lanes p .. p+7, their coordinates) along the row.
    template <class Act>
    RARESTREAM_INLINE void each(Act&& act) const {
        std::int64_t p = 0;
        for (; p + LANES <= k; p += LANES) act(p, ready ? load(ready + p) : widened<Real>(load(x + p)), at + p);
        if (p == k) return;
        std::int32_t padded[LANES];
        const std::int32_t* where = at + p;
        if (p + LANES > readable) {
            for (int l = 0; l < LANES; ++l) padded[l] = p + l < k ? at[p + l] : 0;
            where = padded;
        }
        act(p, ready ? load(ready + p) : widened<Real>(tail(p)), where);
    }

private:
    RARESTREAM_INLINE F32 tail(std::int64_t p) const {
        if (p + LANES <= readable) return first(load(x + p), k - p);
        float values[LANES] = {};
        for (int l = 0; p + l < k; ++l) values[l] = x[p + l];
        return load(values);
    }
};

// Scale::max divides x by the largest |x| of its coordinate so far, this row's included; `shrink` is by what factor a
// coordinate's older measure shrinks against the new one.
template <class Real>
inline void measure(Row<Real>& row, const float* largest, const Scratch<Real>& scratch) {
    for (std::int64_t p = 0; p < row.k; ++p) {
        const float size = std::fabs(row.x[p]), before = largest[row.at[p]];
        const bool larger = size > before;
        const Real most = larger ? size : before;
        row.grew |= larger;
        scratch.shrink[p] = larger ? before / most : Real(1);
        scratch.ready[p] = most > 0 ? row.x[p] / most : Real(0);
    }
    for (std::int64_t p = row.k; p % LANES; ++p) scratch.ready[p] = 0;
    row.ready = scratch.ready;
}

// Whether a sum of squares in Real can be trusted to have lost nothing at either end of its range.
template <class Real>
RARESTREAM_INLINE bool sound(double squares) {
    return sizeof(Real) == 8 ? squares > 0 : squares > 1e-25 && squares < 1e25;
}

// Divides the row by its norm, in double: for rows so large or small that float32 cannot hold their squares.
template <class Real>
inline void normalise(Row<Real>& row, const Scratch<Real>& scratch) {
    const auto value = [&](std::int64_t p) { return row.ready ? double(scratch.ready[p]) : double(row.x[p]); };
    double squares = 0;
    for (std::int64_t p = 0; p < row.k; ++p) squares += value(p) * value(p);
    const double norm = std::sqrt(squares);
    for (std::int64_t p = 0; p < row.k; ++p) scratch.ready[p] = norm == 0 ? Real(0) : static_cast<Real>(value(p) / norm);
    for (std::int64_t p = row.k; p % LANES; ++p) scratch.ready[p] = 0;
    row.ready = scratch.ready;
}

// What a pass over a row's lanes brings: <w, x> and <x, x>, and what x is to be multiplied by.
struct Dot {
    double wx, xx, u;
    double score() const { return u * wx; }
};

// Runs `pass(row)`, which returns <w, x> and <x, x>, on a row as the model scales it. Rows are scaled after the fact: their
// norm comes from the same pass as their score.
template <class Real, class Pass>
RARESTREAM_INLINE Dot scaled(Row<Real>& row, Scale scale, const float* largest, const Scratch<Real>& scratch,
                             Pass&& pass) {
    if (scale == Scale::max) measure(row, largest, scratch);
    for (bool normal = false;; normal = true) {
        const Dot dot = pass(row);
        if (scale == Scale::none || normal) return dot;
        if (sound<Real>(dot.xx)) return {dot.wx, dot.xx, 1 / std::sqrt(dot.xx)};
        normalise(row, scratch);
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
