// Weights that are thresholded in every row: one pass over all coordinates. It moves w along the class sums S- and S+,
// takes the proximal step, and sums <w, S-> and <w, S+> for the next row, reading and writing each weight once.
//
// The methods are those of LowRankWeights, which needs only O(k) but allows no threshold, so that a learner's step is
// written once for both.
#pragma once

#include <cstdint>

#include "simd.hpp"
#include "updater.hpp"
#include "stochastic_rounding.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
class DenseWeights {
    static constexpr std::int64_t CHUNK = 64 * LANES;  // coordinates whose products are summed in Real

    Real *const w_, *const sums_[2];
    const std::int64_t size_;
    double *const products_, *const squares_;  // <w, S>, <S, S>
    double alpha_[2] = {0, 0};                 // to be added along the sums in the next pass

public:
    static constexpr std::int64_t n_scalars() { return 4; }  // products, squares

    static bool fits(const State<Real>& state) { return state.columns == 3 && (state.row_stride == 1 || state.size < 2); }

    DenseWeights(const State<Real>& state, double* scalars)
        : w_(state.table), sums_{state.table + state.column_stride, state.table + 2 * state.column_stride},
          size_(state.size), products_(scalars), squares_(scalars + 2) {}

    Real weight(std::int32_t j) const { return w_[j]; }
    double product(int c) const { return products_[c]; }
    double square(int c) const { return squares_[c] > 0 ? squares_[c] : 0; }

    double max_step() const { return 1000; }  // of a sum, for x of length 1; with a margin for squares

    // S_c += h x
    void add(const ScaledRow<Real>& row, double h, int c, const RoundingBits& rounding) {
        double product = 0, square = 0;
        for (std::int64_t p = 0; p < row.k; ++p) {
            Real& total = sums_[c][row.at[p]];
            const double before = total;
            total = stochastic_round<Real>(before + h * row.x[p], rounding.bits(row.at[p]));
            product += w_[row.at[p]] * (total - before);
            square += (total - before) * (total + before);
        }
        products_[c] += product;
        squares_[c] += square;
    }

    // w += c x
    void move(const ScaledRow<Real>& row, double c) {
        for (std::int64_t p = 0; p < row.k; ++p) w_[row.at[p]] = static_cast<Real>(w_[row.at[p]] + c * row.x[p]);
    }

    // w += f S_c
    void move_along(int c, double f) { alpha_[c] += f; }

    // Scale::max: multiplies w_j and S_j.
    void rescale(std::int32_t j, Real factor) {
        const double w = w_[j];
        w_[j] *= factor;
        for (int c = 0; c < 2; ++c) {
            const double before = sums_[c][j];
            sums_[c][j] *= factor;
            const double now = sums_[c][j];
            products_[c] += w_[j] * now - w * before;
            squares_[c] += now * now - before * before;
        }
    }

    // w += f y, in the first n coordinates
    void add_vector(const Real* y, std::int64_t n, double f) {
        const Real factor = static_cast<Real>(f);
        for (std::int64_t j = 0; j < n; ++j) w_[j] += factor * y[j];
    }

    // w <- factor soft_threshold(w, threshold). Chunks start at fixed coordinates and unused slots are zero, so the
    // number of slots does not change the result.
    void proximal_step(double threshold, double factor) {
        using V = Vector<Real>;
        const Real alpha[2] = {static_cast<Real>(alpha_[0]), static_cast<Real>(alpha_[1])};
        const Real lam = static_cast<Real>(threshold), f = static_cast<Real>(factor);
        V products[2];
        const auto pass = [&](Real* w, const Real* S0, const Real* S1) RARESTREAM_INLINE_LAMBDA {
            const V s0 = load(S0), s1 = load(S1);
            const V now = f * soft_threshold(load(w) + (alpha[0] * s0 + alpha[1] * s1), lam);
            store(w, now);
            products[0] = products[0] + now * s0;
            products[1] = products[1] + now * s1;
        };
        for (int c = 0; c < 2; ++c) products_[c] = alpha_[c] = 0;
        for (std::int64_t start = 0; start < size_; start += CHUNK) {
            const std::int64_t stop = start + CHUNK < size_ ? start + CHUNK : size_;
            products[0] = products[1] = V::all(0);
            std::int64_t j = start;
            for (; j + LANES <= stop; j += LANES) pass(w_ + j, sums_[0] + j, sums_[1] + j);
            if (j < stop) {
                Real last[3][LANES] = {};
                for (std::int64_t l = 0; j + l < stop; ++l) {
                    last[0][l] = w_[j + l];
                    last[1][l] = sums_[0][j + l];
                    last[2][l] = sums_[1][j + l];
                }
                pass(last[0], last[1], last[2]);
                for (std::int64_t l = 0; j + l < stop; ++l) w_[j + l] = last[0][l];
            }
            for (int c = 0; c < 2; ++c) products_[c] += sum(products[c]);
        }
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
