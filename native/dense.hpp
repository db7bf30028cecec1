// Weights that are thresholded in every row: one pass over all coordinates. It moves w along the class sums S- and S+,
// takes the proximal step, and sums <w, S-> and <w, S+> for the next row, reading and writing each weight once.
//
// The verbs are those of span.hpp, so that a method's step is written once: without a threshold Span does it in O(k).
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "run.hpp"
#include "sums.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
class Dense {
    static constexpr std::int64_t RUN = 64 * LANES;  // coordinates whose products are summed in Real

    Real *const w_, *const sums_[2];
    const std::int64_t size_;
    double *const products_, *const squares_;  // <w, S>, <S, S>
    double alpha_[2] = {0, 0};                 // along the sums, until the pass of this row

public:
    static constexpr std::int64_t numbers() { return 4; }  // products, squares

    static bool fits(const State<Real>& state) { return state.columns == 3 && (state.step == 1 || state.size < 2); }

    Dense(const State<Real>& state, double* numbers)
        : w_(state.table), sums_{state.table + state.apart, state.table + 2 * state.apart}, size_(state.size),
          products_(numbers), squares_(numbers + 2) {}

    Real weight(std::int32_t j) const { return w_[j]; }
    double product(int c) const { return products_[c]; }
    double square(int c) const { return squares_[c] > 0 ? squares_[c] : 0; }

    double reach() const { return 1000; }  // of a sum, for x of length 1; with room for squares

    // S_c += h x
    void add(const Sample<Real>& row, double h, int c, const Chance& chance) {
        double product = 0, square = 0;
        for (std::int64_t p = 0; p < row.k; ++p) {
            Real& total = sums_[c][row.at[p]];
            const double before = total;
            total = rounded<Real>(before + h * row.x[p], chance.of(row.at[p]));
            product += w_[row.at[p]] * (total - before);
            square += (total - before) * (total + before);
        }
        products_[c] += product;
        squares_[c] += square;
    }

    // w += c x
    void move(const Sample<Real>& row, double c) {
        for (std::int64_t p = 0; p < row.k; ++p)
            w_[row.at[p]] = static_cast<Real>(w_[row.at[p]] + c * row.x[p]);
    }

    // w += by S_c
    void along(int c, double by) { alpha_[c] += by; }

    // Scale::max: w_j and S_j times `by`.
    void shrink(std::int32_t j, Real by) {
        const double w = w_[j];
        w_[j] *= by;
        for (int c = 0; c < 2; ++c) {
            const double before = sums_[c][j];
            sums_[c][j] *= by;
            const double now = sums_[c][j];
            products_[c] += w_[j] * now - w * before;
            squares_[c] += now * now - before * before;
        }
    }

    // w += by y, of the first n coordinates
    void push(const Real* y, std::int64_t n, double by) {
        const Real f = static_cast<Real>(by);
        for (std::int64_t j = 0; j < n; ++j) w_[j] += f * y[j];
    }

    // w <- factor soft(w, threshold). Runs start at fixed coordinates, and room to spare is zeros: it changes no bit.
    void shrink_all(double threshold, double factor) {
        using V = Lanes<Real>;
        const Real by[2] = {static_cast<Real>(alpha_[0]), static_cast<Real>(alpha_[1])};
        const Real lam = static_cast<Real>(threshold), f = static_cast<Real>(factor);
        V products[2];
        const auto pass = [&](Real* w, const Real* S0, const Real* S1) RARESTREAM_MELT {
            const V s0 = load(S0), s1 = load(S1);
            const V now = f * soft(load(w) + (by[0] * s0 + by[1] * s1), lam);
            store(w, now);
            products[0] = products[0] + now * s0;
            products[1] = products[1] + now * s1;
        };
        for (int c = 0; c < 2; ++c) products_[c] = alpha_[c] = 0;
        for (std::int64_t start = 0; start < size_; start += RUN) {
            const std::int64_t stop = start + RUN < size_ ? start + RUN : size_;
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
