// OPAUC: gradient steps on the pairwise square loss with covariances, sketched or in full. Maths:
// src/rarestream/learners/opauc.py.
#pragma once

#include "../dense_weights.hpp"
#include "../second_moments.hpp"
#include "../updater.hpp"
#include "../low_rank_weights.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// rank > 0: a sketch of the sums of x x'.
struct Opauc {
    double eta, lam, rank, seed;

    template <class Real>
    struct Updater {
        const double eta, lam, seed;
        const int rank;
        Tally& tally;
        LowRankWeights<Real, 0> weights;  // M: of negatives, then of positives, the sum of x, and its sketch
        double* const drawn_;             // the sums of r over negatives, over positives
        const Workspace<double> r_, v_;

        static int width(const Opauc& learner) { return 1 + static_cast<int>(learner.rank); }

        static bool fits(const Opauc& learner, const State<Real>& state) {
            const int m = 2 * width(learner);
            return LowRankWeights<Real, 0>::fits(state, m) && state.n_scalars * sizeof(double) == sizeof(Tally) &&
                   state.n_extra == 2 && state.extra[0].shape[0] == LowRankWeights<Real, 0>::n_scalars(m) &&
                   state.extra[1].shape[0] == m - 2;
        }

        Updater(const Opauc& learner, const State<Real>& state)
            : eta(learner.eta), lam(learner.lam), seed(learner.seed), rank(static_cast<int>(learner.rank)),
              tally(tally_of(state)), weights(state, static_cast<double*>(state.extra[0].data), 2 * width(learner)),
              drawn_(static_cast<double*>(state.extra[1].data)), r_(rank), v_(rank) {}

        double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
        int first(bool positive) const { return positive ? 1 + rank : 0; }
        const double* drawn(bool positive) const { return drawn_ + (positive ? rank : 0); }

        Real weight(std::int32_t j) const { return weights.weight(j); }
        void rescale(std::int32_t j, Real factor) { weights.rescale(j, factor); }

        // Of a class: <w, m>, and v = (Z - m rho')'w.
        double mean(bool positive) const { return weights.product(first(positive)) / rows(positive); }
        void products(bool positive, double mean) const {
            for (int b = 0; b < rank; ++b) v_[b] = weights.product(first(positive) + 1 + b) - drawn(positive)[b] * mean;
        }

        double max_step(double s) const {
            double distance = 0;
            for (int c = 0; c < 2; ++c) {
                if (rows(c) == 0) continue;
                const double n = rows(c), a = mean(c), m = std::sqrt(weights.square(first(c))) / n;
                double sketch = 0;
                for (int b = 0; b < rank; ++b) sketch += weights.square(first(c) + 1 + b);
                products(c, a);
                const double rho = std::sqrt(dot(drawn(c), drawn(c), rank)), v = std::sqrt(dot(&v_[0], v_, rank));
                distance += (1 + std::fabs(s) + std::fabs(a)) * (1 + m) + (std::sqrt(sketch) + m * rho) * v / n;
            }
            return weights.max_step() + eta * distance;
        }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            draw_signs(static_cast<std::uint64_t>(seed), tally, std::sqrt(h / rank), rank, r_);
            weights.add(row, h, first(positive), RoundingBits(tally));
            weights.add(row, r_, first(positive) + 1, rank, RoundingBits(tally));
            for (int b = 0; b < rank; ++b) drawn_[(positive ? rank : 0) + b] += r_[b];
            const bool others = !positive;
            const double n = rows(others), step = h * eta;
            if (n == 0) return;
            const double a = mean(others), e = (positive ? 1 : -1) - (s - a);
            products(others, a);
            weights.move(row, step * e);
            weights.move_along(first(others), -step * (e - dot(drawn(others), v_, rank) / n) / n);
            for (int b = 0; b < rank; ++b) weights.move_along(first(others) + 1 + b, -step * v_[b] / n);
            weights.scale(1 / (1 + step * lam));
            weights.rebase_if_needed();
        }
    };
};

// rank = 0: the sums of x x' over negatives and over positives, in full.
struct OpaucExact {
    double eta, lam;

    template <class Real>
    struct Updater {
        struct Scalars {
            double all[DenseWeights<Real>::n_scalars()];
        };

        const double eta, lam;
        Tally& tally;
        DenseWeights<Real> weights;
        SecondMoments<Real> moments;

        static bool fits(const OpaucExact&, const State<Real>& state) {
            return DenseWeights<Real>::fits(state) && scalars_fit<Scalars>(state) && state.n_extra == 1 &&
                   SecondMoments<Real>::fits(state.extra[0]);
        }

        Updater(const OpaucExact& learner, const State<Real>& state)
            : eta(learner.eta), lam(learner.lam), tally(tally_of(state)), weights(state, scalars_of<Scalars>(state).all),
              moments(state.extra[0], state.size) {}

        double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
        double mean(bool positive) const { return weights.product(positive) / rows(positive); }

        Real weight(std::int32_t j) const { return weights.weight(j); }

        double max_step(double s) const {
            double ww = 0, distance = 0;
            for (std::int32_t j = 0; j < moments.size(); ++j) ww += double(weight(j)) * weight(j);
            for (int c = 0; c < 2; ++c) {
                if (rows(c) == 0) continue;
                const double n = rows(c), a = mean(c), m = std::sqrt(weights.square(c)) / n;
                distance += (1 + std::fabs(s) + std::fabs(a)) * (1 + m) + moments.trace(c) / n * std::sqrt(ww);
            }
            return weights.max_step() + eta * distance;
        }

        void rescale(std::int32_t j, Real factor) {
            weights.rescale(j, factor);
            moments.rescale(j, factor);
        }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            moments.add(row, positive, h, RoundingBits(tally));
            weights.add(row, h, positive, RoundingBits(tally));
            const bool others = !positive;
            const double n = rows(others), step = h * eta;
            if (n == 0) return;
            const double a = mean(others), e = (positive ? 1 : -1) - (s - a);
            weights.add_vector(moments.times(others, [this](std::int32_t j) { return weight(j); }), moments.size(),
                               -step / n);
            weights.move(row, step * e);
            weights.move_along(others, -step * (e - a) / n);
            weights.proximal_step(0, 1 / (1 + step * lam));
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
