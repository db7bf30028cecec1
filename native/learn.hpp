// The loop of learners whose coordinate is a pair {z, n} and whose rows matter through their slope alone: gather the row's
// pairs, score, ask the learner for the slope, step, scatter. Others: run.hpp.
#pragma once

#include <cstdint>

#include "csr.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Brings coordinates near before their rows come. Far enough ahead to hide main memory, near enough to stay in cache:
// measured best at 60 to 240 non-zeros. A table that fits in the nearer caches loses by it.
class Ahead {
    static constexpr std::int64_t DISTANCE = 120, FROM_BYTES = 1 << 20;
    const char* table_;
    std::int64_t bytes_;        // of an entry
    const std::int32_t* last_;  // where the last whole lanes start that are far enough from the end; null: do not look

public:
    RARESTREAM_INLINE Ahead(const void* table, std::int64_t bytes, std::int64_t size, const Rows& rows)
        : table_(static_cast<const char*>(table)), bytes_(bytes), last_(nullptr) {
        const std::int64_t nonzeros = rows.indptr[rows.size];
        if (size * bytes > FROM_BYTES && nonzeros >= DISTANCE + LANES) last_ = rows.indices + nonzeros - DISTANCE - LANES;
    }

    RARESTREAM_INLINE void look(const std::int32_t* at) const {
        if (at > last_) return;
        for (int l = 0; l < LANES; ++l) __builtin_prefetch(table_ + at[DISTANCE + l] * bytes_, 1, 3);
    }
};

// A step this large would leave numbers whose squares, sums and products overflow: of 10^8 steps that are smaller, none do.
template <class Real>
constexpr double BOUND = sizeof(Real) == 4 ? 1e15 : 1e148;

// Whether a row of this score, class means, square and importance would take a step that large. Hardly ever called, so kept out
// of the loop.
template <class Real>
__attribute__((noinline)) bool steps_too_far(double s, double a, double b, double xx, double h) {
    const double slope = 2 + std::fabs(s) + std::fabs(a) + std::fabs(b), length = xx > 1 ? std::sqrt(xx) : 1;
    return !(h >= SMALLEST_IMPORTANCE && length * slope * (h > 1 ? h : 1) < BOUND<Real>);
}

// Learns every row in turn; scores[i] is row i's score before it was learned. Returns the number of rows learned: fewer
// than all when a row's values, its importance or the weights it meets are so large that its step would overflow. That row is
// not learned.
//
// Arguments come by value: stores of lanes may touch anything that has an address, and would have every pointer and setting
// read again after each of them.
template <class Learner, class Real>
std::int64_t learn(Learner learner, State<Real> state, Rows rows, Scale scale, double* scores, Scratch<Real> scratch) {
    using V = Lanes<Real>;
    Pair<Real>* const pairs = state.pairs();
    float* const largest = state.largest;
    Tally tally = Tally::read(state.tally);
    auto rule = learner.template coordinates<Real>();
    const Ahead ahead(pairs, sizeof(Pair<Real>), state.size, rows);
    // Means are of scores: while all of these are moderate the means are, and rows of length and importance 1 take small steps.
    constexpr double MODERATE = 1e6;
    bool small = scale != Scale::none && !rows.importances && std::fabs(tally.a) < MODERATE && std::fabs(tally.b) < MODERATE;
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<Real> row(rows, i);
        rule.now(tally);
        const Dot dot = scaled(row, scale, largest, scratch, [&](const Row<Real>& r) RARESTREAM_MELT -> Dot {
            V wx = V::all(0), xx = V::all(0);
            r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_MELT {
                ahead.look(r.at + p);
                V z, n;
                gather(pairs, at, z, n);
                const V w = rule.weight(z, n);
                wx = wx + w * x;
                xx = xx + x * x;
                store(scratch.x + p, x);
                store(scratch.z + p, z);
                store(scratch.n + p, n);
                store(scratch.w + p, w);
            });
            return {sum(wx), sum(xx), 1};
        });
        const double s = scores[i] = dot.score();
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) continue;  // scored, and leaves no trace
        small = small && std::fabs(s) < MODERATE;
        if (!small && steps_too_far<Real>(s, tally.a, tally.b, scale == Scale::none ? dot.xx : 1, h)) {
            tally.write(state.tally);
            return i;
        }
        const double c = learner.slope(tally, s, rows.labels[i] > 0, h);
        if (row.grew) remeasure(rule, largest, row, scratch);
        if (c == 0 && !row.grew) continue;
        rule.aim(c, h, dot.u);
        for (std::int64_t p = 0; p < row.k; p += LANES) {
            V z = load(scratch.z + p), n = load(scratch.n + p);
            if (c != 0) rule.step(z, n, load(scratch.w + p), load(scratch.x + p));
            scatter(pairs, row.at + p, z, n, row.k - p);
        }
    }
    tally.write(state.tally);
    return rows.size;
}

// Scale::max: what was gathered was measured by a largest value that this row has outgrown.
template <class Coordinates, class Real>
inline void remeasure(const Coordinates& rule, float* largest, const Row<Real>& row, const Scratch<Real>& scratch) {
    for (std::int64_t p = 0; p < row.k; ++p) {
        scratch.z[p] *= scratch.shrink[p];
        scratch.n[p] *= scratch.shrink[p];
        const float size = std::fabs(row.x[p]);
        if (size > largest[row.at[p]]) largest[row.at[p]] = size;
    }
    for (std::int64_t p = 0; p < row.k; p += LANES)
        store(scratch.w + p, rule.weight(load(scratch.z + p), load(scratch.n + p)));
}

// Scores rows; `weights_at(coordinates)` gives eight weights. The order of summation is that of `learn`.
template <class Real, class WeightsAt>
RARESTREAM_INLINE void score_rows(const Ahead& ahead, const float* largest, Rows rows, Scale scale, double* scores,
                                  Scratch<Real> scratch, WeightsAt&& weights_at) {
    using V = Lanes<Real>;
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<Real> row(rows, i);
        const Dot dot = scaled(row, scale, largest, scratch, [&](const Row<Real>& r) RARESTREAM_MELT -> Dot {
            V wx = V::all(0), xx = V::all(0);
            r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_MELT {
                ahead.look(r.at + p);
                wx = wx + weights_at(at) * x;
                xx = xx + x * x;
            });
            return {sum(wx), sum(xx), 1};
        });
        scores[i] = dot.score();
    }
}

// With weights that stand in a plain array.
template <class Real>
void score(const Real* weights, std::int64_t size, const float* largest, const Rows& rows, Scale scale, double* scores,
           const Scratch<Real>& scratch) {
    const auto weights_at = [=](const std::int32_t* at) RARESTREAM_MELT {
        Real w[LANES];
        for (int l = 0; l < LANES; ++l) w[l] = weights[at[l]];
        return load(w);
    };
    const Ahead ahead(weights, sizeof(Real), size, rows);
    score_rows<Real>(ahead, largest, rows, scale, scores, scratch, weights_at);
}

// With weights read off a learner's pairs.
template <class Learner, class Real>
void score(const Learner& learner, const State<Real>& state, const Rows& rows, Scale scale, double* scores,
           const Scratch<Real>& scratch) {
    auto rule = learner.template coordinates<Real>();
    rule.now(Tally::read(state.tally));
    const Pair<Real>* pairs = state.pairs();
    const auto weights_at = [&](const std::int32_t* at) RARESTREAM_MELT {
        Lanes<Real> z, n;
        gather(pairs, at, z, n);
        return rule.weight(z, n);
    };
    const Ahead ahead(pairs, sizeof(Pair<Real>), state.size, rows);
    score_rows<Real>(ahead, state.largest, rows, scale, scores, scratch, weights_at);
}

// The weight of every coordinate, as the rows meet it.
template <class Learner, class Real>
void weights(const Learner& learner, const State<Real>& state, Real* out) {
    auto rule = learner.template coordinates<Real>();
    rule.now(Tally::read(state.tally));
    const Pair<Real>* pairs = state.pairs();
    for (std::int64_t j = 0; j < state.size; j += LANES) {
        const int live = static_cast<int>(state.size - j < LANES ? state.size - j : LANES);
        Real z[LANES] = {}, n[LANES] = {}, w[LANES];
        for (int l = 0; l < live; ++l) {
            z[l] = pairs[j + l].z;
            n[l] = pairs[j + l].n;
        }
        store(w, rule.weight(load(z), load(n)));
        for (int l = 0; l < live; ++l) out[j + l] = w[l] + Real(0);  // no negative zeros
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
