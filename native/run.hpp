// The loop of learners whose step is more than a slope: their header has a Run, which borrows the state.
//
//     template <class Real>
//     struct Run {
//         static bool fits(const Learner&, const State<Real>&);       // columns, numbers and arrays are those it expects
//         Run(const Learner&, const State<Real>&);
//         Real weight(std::int32_t j) const;                          // of a row as the model scales it
//         double reach(double s) const;                               // no step moves a weight by more, for |x| <= 1
//         void shrink(std::int32_t j, Real by);                       // x_j of all rows so far is worth `by` of what it was
//         void step(const Sample<Real>&, double s, bool positive, double h);
//         Tally& tally;                                               // has counted the row when `step` is called
//     };
//
// A Run for scoring is made of a state that others score with too: making one writes nothing.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "learn.hpp"
#include "rows.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A row as a step sees it: values as the model scales them.
template <class Real>
struct Sample {
    const std::int32_t* at;
    const Real* x;
    std::int64_t k;
    double xx;    // <x, x>
    Real* spare;  // as long as the row, for the step's own use
};

// The numbers of a state as a struct of doubles: its Tally, or what the learner keeps after it.
template <class Real>
Tally& tally_of(const State<Real>& state) {
    return *reinterpret_cast<Tally*>(state.tally);
}
template <class Numbers, class Real>
Numbers& numbers_of(const State<Real>& state) {
    return *reinterpret_cast<Numbers*>(state.tally + sizeof(Tally) / sizeof(double));
}
template <class Numbers, class Real>
bool numbers_fit(const State<Real>& state) {
    return state.numbers * sizeof(double) == sizeof(Tally) + sizeof(Numbers);
}

template <class Run>
RARESTREAM_INLINE auto weights_at(const Run& run, const std::int32_t* at) {
    decltype(run.weight(0)) w[LANES];
    for (int l = 0; l < LANES; ++l) w[l] = run.weight(at[l]);
    return load(w);
}

// As `learn` of learn.hpp: returns the number of rows learned.
template <class Run, class Real>
std::int64_t learn_rows(Run& run, const State<Real>& state, Rows rows, Scale scale, double* scores,
                        Scratch<Real> scratch) {
    using V = Lanes<Real>;
    const Ahead ahead(state.table, state.step * sizeof(Real), state.size, rows);
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<Real> row(rows, i);
        const Dot dot = scaled(row, scale, state.largest, scratch, [&](const Row<Real>& r) RARESTREAM_MELT -> Dot {
            V wx = V::all(0), xx = V::all(0);
            r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_MELT {
                ahead.look(r.at + p);
                wx = wx + weights_at(run, at) * x;
                xx = xx + x * x;
                store(scratch.x + p, x);
            });
            return {sum(wx), sum(xx), 1};
        });
        const double s = scores[i] = dot.score(), xx = dot.xx * (dot.u * dot.u);
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) continue;  // scored, and leaves no trace
        if (!(h >= SMALLEST_IMPORTANCE && std::sqrt(xx < 1 ? 1 : xx) * run.reach(s) * (h > 1 ? h : 1) < BOUND<Real>)) return i;
        const bool positive = rows.labels[i] > 0;
        if (row.grew) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                if (scratch.shrink[p] == 1) continue;
                run.shrink(row.at[p], scratch.shrink[p]);
                state.largest[row.at[p]] = std::fabs(row.x[p]);
            }
        }
        const V u = V::all(static_cast<Real>(dot.u));
        for (std::int64_t p = 0; p < row.k; p += LANES) store(scratch.x + p, u * load(scratch.x + p));
        run.tally.count(s, positive, h);
        run.step({row.at, scratch.x, row.k, xx, scratch.z}, s, positive, h);
    }
    return rows.size;
}

template <class Run, class Real>
void score_run(const Run& run, const State<Real>& state, const Rows& rows, Scale scale, double* scores,
               const Scratch<Real>& scratch) {
    const Ahead ahead(state.table, state.step * sizeof(Real), state.size, rows);
    score_rows<Real>(ahead, state.largest, rows, scale, scores, scratch,
                     [&](const std::int32_t* at) RARESTREAM_MELT { return weights_at(run, at); });
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
