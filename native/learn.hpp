// One loop for all learners: gather the row's pairs, score, ask the learner for the slope, step, scatter.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "rows.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Far enough ahead to hide main memory, near enough to stay in cache: measured best at 60 to 240 non-zeros.
constexpr std::int64_t PREFETCH_AHEAD = 120;
// A state that fits in the nearer caches loses by prefetching.
constexpr std::int64_t PREFETCH_FROM_BYTES = 1 << 20;

template <class Entry>
inline void prefetch(const Entry* table, const Rows& rows, std::int64_t from, std::int64_t k) {
    const std::int64_t end = rows.indptr[rows.size], start = from + PREFETCH_AHEAD;
    const std::int64_t stop = start + k < end ? start + k : end;
    for (std::int64_t p = start; p < stop; ++p) __builtin_prefetch(table + rows.indices[p], 1, 3);
}

// Learns every row in turn; scores[i] is row i's score before it was learned. Returns the number of rows learned: fewer
// than all when a row that is not scaled has values so large that its step would overflow. That row is not learned.
template <class Learner, class Real>
std::int64_t learn(const Learner& learner, const Table<Real>& table, Tally& tally, const Rows& rows, Scale scale,
                   double* scores, const Scratch<Real>& scratch) {
    using V = Lanes<Real>;
    auto rule = learner.template coordinates<Real>();
    const bool ahead = table.size * static_cast<std::int64_t>(sizeof(Pair<Real>)) > PREFETCH_FROM_BYTES;
    const double bound = sizeof(Real) == 4 ? 1e17 : 1e150;
    for (std::int64_t i = 0; i < rows.size; ++i) {
        const std::int64_t from = rows.indptr[i], k = rows.indptr[i + 1] - from;
        if (ahead) prefetch(table.pairs, rows, from, k);
        const auto row = scaled(rows, i, scale, table.largest, scratch);
        V total = V::all(0);
        std::int32_t padded[LANES];
        for (std::int64_t p = 0; p < k; p += LANES) {
            const std::int32_t* at;
            const V x = row.lanes(p, padded, at);
            V z, n;
            gather(table.pairs, at, z, n);
            const V w = rule.weight(z, n);
            total = total + w * x;
            store(scratch.x + p, x);
            store(scratch.z + p, z);
            store(scratch.n + p, n);
            store(scratch.w + p, w);
        }
        const double s = scores[i] = sum(total);
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) continue;  // scored, and leaves no trace
        if (scale == Scale::none) {
            const double slope = 2 + std::fabs(s) + std::fabs(tally.a) + std::fabs(tally.b);
            if (!(norm(row.x, k, row.readable) * slope * (h > 1 ? h : 1) < bound)) return i;
        }
        const double c = learner.slope(tally, s, rows.labels[i] > 0, h);
        if (row.grew) {  // what was gathered was measured by a smaller largest value
            for (std::int64_t p = 0; p < k; ++p) {
                scratch.z[p] *= scratch.shrink[p];
                scratch.n[p] *= scratch.shrink[p];
                const float size = std::fabs(rows.values[from + p]);
                if (size > table.largest[row.at[p]]) table.largest[row.at[p]] = size;
            }
            for (std::int64_t p = 0; p < k; p += LANES)
                store(scratch.w + p, rule.weight(load(scratch.z + p), load(scratch.n + p)));
        }
        if (c == 0 && !row.grew) continue;
        rule.aim(c, h);
        for (std::int64_t p = 0; p < k; p += LANES) {
            V z = load(scratch.z + p), n = load(scratch.n + p);
            rule.step(z, n, load(scratch.w + p), load(scratch.x + p));
            scatter(table.pairs, row.at + p, z, n, k - p);
        }
    }
    return rows.size;
}

// Scores rows with weights that stand in a plain array, in the order of summation of `learn`.
template <class Real>
void score(const Real* weights, std::int64_t size, const float* largest, const Rows& rows, Scale scale, double* scores,
           const Scratch<Real>& scratch) {
    const bool ahead = size * static_cast<std::int64_t>(sizeof(Real)) > PREFETCH_FROM_BYTES;
    for (std::int64_t i = 0; i < rows.size; ++i) {
        const std::int64_t from = rows.indptr[i], k = rows.indptr[i + 1] - from;
        if (ahead) prefetch(weights, rows, from, k);
        const auto row = scaled(rows, i, scale, largest, scratch);
        auto total = Lanes<Real>::all(0);
        std::int32_t padded[LANES];
        for (std::int64_t p = 0; p < k; p += LANES) {
            const std::int32_t* at;
            const Lanes<Real> x = row.lanes(p, padded, at);
            Real w[LANES];
            for (int l = 0; l < LANES; ++l) w[l] = weights[at[l]];
            total = total + load(w) * x;
        }
        scores[i] = sum(total);
    }
}

// The same with weights read off a learner's pairs.
template <class Learner, class Real>
void score(const Learner& learner, const Table<Real>& table, const Rows& rows, Scale scale, double* scores,
           const Scratch<Real>& scratch) {
    const auto rule = learner.template coordinates<Real>();
    const bool ahead = table.size * static_cast<std::int64_t>(sizeof(Pair<Real>)) > PREFETCH_FROM_BYTES;
    for (std::int64_t i = 0; i < rows.size; ++i) {
        const std::int64_t from = rows.indptr[i], k = rows.indptr[i + 1] - from;
        if (ahead) prefetch(table.pairs, rows, from, k);
        const auto row = scaled(rows, i, scale, table.largest, scratch);
        auto total = Lanes<Real>::all(0);
        std::int32_t padded[LANES];
        for (std::int64_t p = 0; p < k; p += LANES) {
            const std::int32_t* at;
            const Lanes<Real> x = row.lanes(p, padded, at);
            Lanes<Real> z, n;
            gather(table.pairs, at, z, n);
            total = total + rule.weight(z, n) * x;
        }
        scores[i] = sum(total);
    }
}

// The weight of every coordinate, as the rows meet it.
template <class Learner, class Real>
void weights(const Learner& learner, const Pair<Real>* pairs, std::int64_t size, Real* out) {
    const auto rule = learner.template coordinates<Real>();
    for (std::int64_t j = 0; j < size; j += LANES) {
        const int live = static_cast<int>(size - j < LANES ? size - j : LANES);
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
