// AdaOAM: adaptive gradient steps on the pairwise square loss. Maths: src/rarestream/learners/adaoam.py.
#pragma once

#include "../second_moments.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct AdaOam {
    double eta, lam, epsilon, rank, seed;

    struct Scalars {
        double ww;       // <w, w>
        double longest;  // |x| of any row so far
    };

    template <class Real>
    struct Updater {
        using V = Vector<Real>;
        static constexpr std::int64_t CHUNK = 64 * LANES;  // coordinates at a time: they stay in the L1 cache
        static constexpr double MINIMUM = sizeof(Real) == 4 ? 1e-18 : 1e-150;  // epsilon: the square of a smaller g is 0

        const double eta, lam, epsilon;
        const std::uint64_t seed;
        const int rank;
        Tally& tally;
        Scalars& own;
        const std::int64_t size, column_stride;
        Real *const w, *const v, *const sums, *const sketches;  // of negatives, then of positives
        double* const drawn;                                    // the sums of r, likewise
        SecondMoments<Real> moments;                            // with rank = 0, in place of both
        const Workspace<double> r, u;

        static bool fits(const AdaOam& learner, const State<Real>& state) {
            const int drawn = 2 * static_cast<int>(learner.rank);
            return state.columns == 4 + drawn && (state.row_stride == 1 || state.size < 2) && scalars_fit<Scalars>(state) &&
                   state.n_extra == 1 &&
                   (drawn ? state.extra[0].shape[0] == drawn : SecondMoments<Real>::fits(state.extra[0]));
        }

        Updater(const AdaOam& learner, const State<Real>& state)
            : eta(learner.eta), lam(learner.lam), epsilon(learner.epsilon > MINIMUM ? learner.epsilon : MINIMUM),
              seed(static_cast<std::uint64_t>(learner.seed)), rank(static_cast<int>(learner.rank)), tally(tally_of(state)),
              own(scalars_of<Scalars>(state)), size(state.size), column_stride(state.column_stride), w(state.table),
              v(w + column_stride), sums(v + column_stride), sketches(sums + 2 * column_stride),
              drawn(rank ? static_cast<double*>(state.extra[0].data) : nullptr),
              moments(rank ? ExtraArray{nullptr, {2, 0, 0}} : state.extra[0], size), r(rank), u(rank) {}

        Real weight(std::int32_t j) const { return w[j]; }

        // A step has length eta at most; it is g, and g^2 in v, that must not overflow. Random signs may make the sketch
        // larger than the sum it approximates, but by far less than 16 times.
        double max_step(double s) const {
            const double length = 1 + own.longest;
            return eta + 16 * (lam + length * length) * (1 + std::fabs(s) + std::sqrt(own.ww));
        }

        void rescale(std::int32_t j, Real factor) {
            const double root = std::sqrt(v[j]);
            w[j] = static_cast<Real>(w[j] * factor * (epsilon + root) / (epsilon + factor * root));
            v[j] *= factor * factor;
            for (int c = 0; c < 2 + 2 * rank; ++c) sums[c * column_stride + j] *= factor;
            if (rank == 0) moments.rescale(j, factor);
        }

        void step(const ScaledRow<Real>& row, double, bool positive, double h) {
            if (row.xx > own.longest * own.longest) own.longest = std::sqrt(row.xx);
            add(row, positive, h);
            const bool others = !positive;
            const double n = positive ? tally.n_neg : tally.n_pos, y = positive ? 1 : -1;
            if (n < MINIMUM) return;  // no rows of that class yet, or none of a noticeable importance
            double s = 0;             // again: `rescale` may have changed weights since the row was scored
            for (std::int64_t p = 0; p < row.k; ++p) s += double(w[row.at[p]]) * row.x[p];
            const double a = products(others) / n, c = s - a - y;  // a = <w, m>
            const double correction = rank == 0 ? a : centre(others, a) / n;
            descend(row, c, others, -(c + correction) / n, n, h);
        }

    private:
        Real* sum_of(bool positive) const { return sums + (positive ? column_stride : 0); }
        Real* sketch_of(bool positive) const { return sketches + (positive ? rank * column_stride : 0); }

        void add(const ScaledRow<Real>& row, bool positive, double h) {
            const RoundingBits rounding(tally);
            const auto add_to = [&](Real* column, double f) {
                for (std::int64_t p = 0; p < row.k; ++p) {
                    Real& total = column[row.at[p]];
                    total = stochastic_round<Real>(total + f * row.x[p], rounding.bits(row.at[p]));
                }
            };
            add_to(sum_of(positive), h);
            if (rank == 0) moments.add(row, positive, h, rounding);
            draw_signs(seed, tally, std::sqrt(h / rank), rank, r);
            for (int c = 0; c < rank; ++c) {
                add_to(sketch_of(positive) + c * column_stride, r[c]);
                drawn[(positive ? rank : 0) + c] += r[c];
            }
        }

        // <column, w> of the coordinates start .. stop. Past the end of the state there are zeros, as in unused slots.
        double product(const Real* column, std::int64_t start, std::int64_t stop) const {
            V sums = V::all(0);
            std::int64_t j = start;
            for (; j + LANES <= stop; j += LANES) sums = sums + load(column + j) * load(w + j);
            if (j < stop) {
                Real last[2][LANES] = {};
                for (std::int64_t l = 0; j + l < stop; ++l) {
                    last[0][l] = column[j + l];
                    last[1][l] = w[j + l];
                }
                sums = sums + load(last[0]) * load(last[1]);
            }
            return sum(sums);
        }

        // u = Z'w; returns <sum of x, w>.
        double products(bool positive) const {
            double total = 0;
            for (int c = 0; c < rank; ++c) u[c] = 0;
            for (std::int64_t start = 0; start < size; start += CHUNK) {
                const std::int64_t stop = start + CHUNK < size ? start + CHUNK : size;
                total += product(sum_of(positive), start, stop);
                for (int c = 0; c < rank; ++c) u[c] += product(sketch_of(positive) + c * column_stride, start, stop);
            }
            return total;
        }

        // u = (Z - m rho')'w, where it was Z'w; returns <rho, u>.
        double centre(bool positive, double a) const {
            const double* const rho = drawn + (positive ? rank : 0);
            for (int c = 0; c < rank; ++c) u[c] -= rho[c] * a;
            return dot(rho, u, rank);
        }

        // g = lambda w + c x + c_S S + Z u / n, or Q w / n in place of the last; and the step.
        void descend(const ScaledRow<Real>& row, double c, bool others, double c_S, double n, double h) {
            const Real l2 = static_cast<Real>(lam), of_x = static_cast<Real>(c), of_S = static_cast<Real>(c_S);
            const Real of_Q = static_cast<Real>(1 / n), eps = static_cast<Real>(epsilon);
            const Real rate = static_cast<Real>(h * eta), importance = static_cast<Real>(h);
            const Real* const Q = rank ? nullptr : moments.times(others, [this](std::int32_t j) { return w[j]; });
            std::int64_t p = 0;
            double ww = 0;
            for (std::int64_t start = 0; start < size; start += CHUNK) {
                const std::int64_t stop = start + CHUNK < size ? start + CHUNK : size, run = stop - start;
                Real* __restrict const to = w + start, * __restrict const squares = v + start;
                const Real* __restrict const S = sum_of(others) + start;
                Real g[CHUNK];
                for (std::int64_t j = 0; j < run; ++j) g[j] = l2 * to[j] + of_S * S[j];
                for (int b = 0; b < rank; ++b) {
                    const Real* __restrict const Z = sketch_of(others) + b * column_stride + start;
                    const Real of_Z = static_cast<Real>(u[b] / n);
                    for (std::int64_t j = 0; j < run; ++j) g[j] += of_Z * Z[j];
                }
                if (rank == 0)
                    for (std::int64_t j = start; j < stop && j < moments.size(); ++j) g[j - start] += of_Q * Q[j];
                for (; p < row.k && row.at[p] < stop; ++p) g[row.at[p] - start] += of_x * row.x[p];
                bool any = false;
                for (std::int64_t j = 0; j < run; ++j) any |= g[j] != 0;
                if (any) {  // memory of features never seen is not touched
                    for (std::int64_t j = 0; j < run; ++j) {
                        squares[j] += importance * (g[j] * g[j]);
                        to[j] -= rate * g[j] / (eps + std::sqrt(squares[j]));
                    }
                }
                ww += product(w, start, stop);
            }
            own.ww = ww;
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
