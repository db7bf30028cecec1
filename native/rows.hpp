// Rows as vectors, and how a model scales them.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// One row, read as vectors of eight. Past its end the values are 0 and the indices those of arbitrary coordinates, which
// must not be changed.
template <class Real>
struct Row {
    const std::int32_t* at;
    const float* x;
    const Real* scaled_x = nullptr;  // in place of x where values had to be scaled first; zeros up to a whole vector
    std::int64_t k;
    std::int64_t readable;         // entries that may be read from `at` and `x`: the row's and those that follow it
    bool exceeds_largest = false;  // Scale::max: some value is larger than all before of its coordinate

    Row(const RowsView& rows, std::int64_t i)
        : at(rows.indices + rows.indptr[i]), x(rows.values + rows.indptr[i]), k(rows.indptr[i + 1] - rows.indptr[i]),
          readable(rows.indptr[rows.size] - rows.indptr[i]) {}

    // Calls f(p, values p .. p+7, their coordinates) along the row.
    template <class Function>
    RARESTREAM_ALWAYS_INLINE void each(Function&& f) const {
        std::int64_t p = 0;
        for (; p + LANES <= k; p += LANES) f(p, scaled_x ? load(scaled_x + p) : widened<Real>(load(x + p)), at + p);
        if (p == k) return;
        std::int32_t padded[LANES];
        const std::int32_t* coordinates = at + p;
        if (p + LANES > readable) {
            for (int l = 0; l < LANES; ++l) padded[l] = p + l < k ? at[p + l] : 0;
            coordinates = padded;
        }
        f(p, scaled_x ? load(scaled_x + p) : widened<Real>(tail(p)), coordinates);
    }

private:
    RARESTREAM_ALWAYS_INLINE F32 tail(std::int64_t p) const {
        if (p + LANES <= readable) return first_lanes(load(x + p), k - p);
        float values[LANES] = {};
        for (int l = 0; p + l < k; ++l) values[l] = x[p + l];
        return load(values);
    }
};

// Scale::max divides x by the largest |x| of its coordinate so far, including this row. Where that has grown, `rescale` is
// the factor for the numbers of the coordinate.
template <class Real>
inline void divide_by_largest(Row<Real>& row, const float* largest, const RowScratch<Real>& scratch) {
    for (std::int64_t p = 0; p < row.k; ++p) {
        const float size = std::fabs(row.x[p]), before = largest[row.at[p]];
        const bool larger = size > before;
        const Real maximum = larger ? size : before;
        row.exceeds_largest |= larger;
        scratch.rescale[p] = larger ? before / maximum : Real(1);
        scratch.scaled[p] = maximum > 0 ? row.x[p] / maximum : Real(0);
    }
    for (std::int64_t p = row.k; p % LANES; ++p) scratch.scaled[p] = 0;
    row.scaled_x = scratch.scaled;
}

// Whether a sum of squares in Real is accurate: no square was so small or so large that float32 cannot hold it.
template <class Real>
RARESTREAM_ALWAYS_INLINE bool squares_reliable(double squares) {
    return sizeof(Real) == 8 ? squares > 0 : squares > 1e-25 && squares < 1e25;
}

// Divides the row by its norm, in double: for rows so large or small that float32 cannot hold their squares.
template <class Real>
inline void normalise(Row<Real>& row, const RowScratch<Real>& scratch) {
    const auto value = [&](std::int64_t p) { return row.scaled_x ? double(scratch.scaled[p]) : double(row.x[p]); };
    double squares = 0;
    for (std::int64_t p = 0; p < row.k; ++p) squares += value(p) * value(p);
    const double norm = std::sqrt(squares);
    for (std::int64_t p = 0; p < row.k; ++p) scratch.scaled[p] = norm == 0 ? Real(0) : static_cast<Real>(value(p) / norm);
    for (std::int64_t p = row.k; p % LANES; ++p) scratch.scaled[p] = 0;
    row.scaled_x = scratch.scaled;
}

// The result of a pass over a row: <w, x>, <x, x>, and the factor u that scales x.
struct Dot {
    double wx, xx, u;
    double score() const { return u * wx; }
};

// Runs `pass(row)`, which returns <w, x> and <x, x>, on a row as the model scales it. Rows are divided by their norm
// after the pass, because the norm comes from the same pass as the score.
template <class Real, class Pass>
RARESTREAM_ALWAYS_INLINE Dot with_scaling(Row<Real>& row, Scale scale, const float* largest,
                                          const RowScratch<Real>& scratch, Pass&& pass) {
    if (scale == Scale::max) divide_by_largest(row, largest, scratch);
    for (bool normalised = false;; normalised = true) {
        const Dot dot = pass(row);
        if (scale == Scale::none || normalised) return dot;
        if (squares_reliable<Real>(dot.xx)) return {dot.wx, dot.xx, 1 / std::sqrt(dot.xx)};
        normalise(row, scratch);
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
