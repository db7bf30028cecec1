// The scores that rows have at every size of a model, in one pass over them.
//
// A model of size B keeps its B largest weights. The class of a weight is the number of the first size that keeps it
// (weight_order.hpp), so an entry of a row counts at that size and at all larger ones. Weights that are cut add zeros, as
// they do in a model of that size: the scores are those that `score` of learn.hpp gives with that model, bit for bit.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.hpp"
#include "learn.hpp"
#include "rows.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Sizes per vector and vectors per pass, so that all sums stay in registers: the usual 50 sizes need one pass.
constexpr int VECTORS = 7, SIZES_PER_PASS = VECTORS * LANES;

// keep[c] has all bits set from its c-th number on: a mask for what is added at the sizes from c on.
template <class Real>
struct SizeMasks {
    alignas(64) Real keep[SIZES_PER_PASS + 1][SIZES_PER_PASS];

    SizeMasks() {
        std::memset(keep, 0, sizeof keep);
        for (int c = 0; c < SIZES_PER_PASS; ++c) std::memset(&keep[c][c], 0xFF, (SIZES_PER_PASS - c) * sizeof(Real));
    }
};

template <class V>
RARESTREAM_ALWAYS_INLINE V masked(const V& x, const typename V::Real* bits) {
    V out;
    for (int i = 0; i < V::PARTS; ++i)
        out.part[i] =
            (typename V::Register)((MaskRegister)x.part[i] & load_register<MaskRegister>(bits + i * (LANES / V::PARTS)));
    return out;
}

// scores[s * rows + i] is that of row i at size s.
template <class Real>
void score_path(const Real* weights, const std::uint16_t* classes, std::int64_t size, std::int64_t sizes,
                const float* largest, RowsView rows, Scale scale, double* scores, RowScratch<Real> scratch) {
    using V = Vector<Real>;
    const SizeMasks<Real> masks;
    alignas(64) Real sums[LANES][SIZES_PER_PASS];
    Real* const wx = scratch.w;
    const Prefetcher prefetcher(weights, sizeof(Real), size, rows), class_prefetcher(classes, sizeof *classes, size, rows);
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<Real> row(rows, i);
        const Dot dot = with_scaling(row, scale, largest, scratch, [&](const Row<Real>& r) RARESTREAM_INLINE_LAMBDA -> Dot {
            V xx = V::all(0);
            r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
                prefetcher.prefetch(r.at + p);
                class_prefetcher.prefetch(r.at + p);
                Real w[LANES];
                for (int l = 0; l < LANES; ++l) w[l] = weights[at[l]];
                store(wx + p, load(w) * x);
                xx = xx + x * x;
            });
            return {0, sum(xx), 1};
        });
        for (std::int64_t start = 0; start < sizes; start += SIZES_PER_PASS) {
            for (int l = 0; l < LANES; ++l) {  // as the lanes of `score`: every eighth entry, in the order of the row
                V sum[VECTORS];
                for (V& vector : sum) vector = V::all(0);
                for (std::int64_t p = l; p < row.k; p += LANES) {
                    const std::int64_t c = classes[row.at[p]] - start;
                    const Real* keep = masks.keep[c < 0 ? 0 : c > SIZES_PER_PASS ? SIZES_PER_PASS : c];
                    const V one = V::all(wx[p]);
                    for (int t = 0; t < VECTORS; ++t) sum[t] = sum[t] + masked(one, keep + t * LANES);
                }
                for (int t = 0; t < VECTORS; ++t) store(sums[l] + t * LANES, sum[t]);
            }
            for (std::int64_t s = 0; s < SIZES_PER_PASS && start + s < sizes; s += LANES) {
                const auto lane = [&](int l) RARESTREAM_INLINE_LAMBDA { return load(sums[l] + s); };
                Real all[LANES];  // in the order of `sum`
                store(all, ((lane(0) + lane(4)) + (lane(2) + lane(6))) + ((lane(1) + lane(5)) + (lane(3) + lane(7))));
                for (std::int64_t t = 0; t < LANES && start + s + t < sizes; ++t)
                    scores[(start + s + t) * rows.size + i] = Dot{all[t], dot.xx, dot.u}.score();
            }
        }
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
