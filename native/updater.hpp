// The loop of learners that learn.hpp does not cover: their header defines an Updater, which borrows the state.
//
//     template <class Real>
//     struct Updater {
//         static bool fits(const Learner&, const State<Real>&);  // whether the state is one of this learner
//         Updater(const Learner&, const State<Real>&);
//         Real weight(std::int32_t j) const;          // for rows as the model scales them
//         double max_step(double s) const;            // an upper bound on the change of a weight, for |x| <= 1
//         void rescale(std::int32_t j, Real factor);  // Scale::max: x_j of all rows so far is multiplied by it
//         void step(const ScaledRow<Real>&, double s, bool positive, double h);
//         Tally& tally;                               // has counted the row when `step` is called
//     };
//
// Several threads may score with one state at once, so the constructor must not write to it.
#pragma once

#include <cstdint>

#include "simd.hpp"
#include "learn.hpp"
#include "rows.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A row with its values as the model scales them.
template <class Real>
struct ScaledRow {
    const std::int32_t* at;
    const Real* x;
    std::int64_t k;
    double xx;      // <x, x>
    Real* scratch;  // as long as the row, for the step's own use
};

// The scalars of a state as a struct of doubles: its Tally, and those of the learner that follow.
template <class Real>
Tally& tally_of(const State<Real>& state) {
    return *reinterpret_cast<Tally*>(state.tally);
}
template <class Scalars, class Real>
Scalars& scalars_of(const State<Real>& state) {
    return *reinterpret_cast<Scalars*>(state.tally + sizeof(Tally) / sizeof(double));
}
template <class Scalars, class Real>
bool scalars_fit(const State<Real>& state) {
    return state.n_scalars * sizeof(double) == sizeof(Tally) + sizeof(Scalars);
}

template <class Updater>
RARESTREAM_ALWAYS_INLINE auto weights_at(const Updater& updater, const std::int32_t* at) {
    decltype(updater.weight(0)) w[LANES];
    for (int l = 0; l < LANES; ++l) w[l] = updater.weight(at[l]);
    return load(w);
}

// Like `learn` of learn.hpp; returns the number of rows learned.
template <class Updater, class Real>
std::int64_t learn_with_updater(Updater& updater, const State<Real>& state, RowsView rows, Scale scale, double* scores,
                                RowScratch<Real> scratch) {
    using V = Vector<Real>;
    const Prefetcher prefetcher(state.table, state.row_stride * sizeof(Real), state.size, rows);
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<Real> row(rows, i);
        const Dot dot =
            with_scaling(row, scale, state.largest, scratch, [&](const Row<Real>& r) RARESTREAM_INLINE_LAMBDA -> Dot {
                V wx = V::all(0), xx = V::all(0);
                r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
                    prefetcher.prefetch(r.at + p);
                    wx = wx + weights_at(updater, at) * x;
                    xx = xx + x * x;
                    store(scratch.x + p, x);
                });
                return {sum(wx), sum(xx), 1};
            });
        const double s = scores[i] = dot.score(), xx = dot.xx * (dot.u * dot.u);
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) continue;  // such a row is scored, and changes nothing
        const double step = std::sqrt(xx < 1 ? 1 : xx) * updater.max_step(s) * (h > 1 ? h : 1);
        if (!(h >= SMALLEST_IMPORTANCE) || exceeds_step_limit<Real, Updater>(step)) return i;
        const bool positive = rows.labels[i] > 0;
        if (row.exceeds_largest) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                if (scratch.rescale[p] == 1) continue;
                updater.rescale(row.at[p], scratch.rescale[p]);
                state.largest[row.at[p]] = std::fabs(row.x[p]);
            }
        }
        const V u = V::all(static_cast<Real>(dot.u));
        for (std::int64_t p = 0; p < row.k; p += LANES) store(scratch.x + p, u * load(scratch.x + p));
        updater.tally.count(s, positive, h);
        updater.step({row.at, scratch.x, row.k, xx, scratch.z}, s, positive, h);
    }
    return rows.size;
}

template <class Updater, class Real>
void score_with_updater(const Updater& updater, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
                        const RowScratch<Real>& scratch) {
    const Prefetcher prefetcher(state.table, state.row_stride * sizeof(Real), state.size, rows);
    score_rows<Real>(prefetcher, state.largest, rows, scale, scores, scratch,
                     [&](const std::int32_t* at) RARESTREAM_INLINE_LAMBDA { return weights_at(updater, at); });
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
