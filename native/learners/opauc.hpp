#pragma once

#include "../dense.hpp"
#include "../products.hpp"
#include "../run.hpp"
#include "../span.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// maths: src/rarestream/learners/opauc.py
struct Opauc {
    double eta, lam, rank, seed;

    template <class Real>
    struct Run {
        const double eta, lam, seed;
        const int rank;
        Tally& tally;
        Span<Real, 0> span;    // M: of negatives, then of positives, the sum of x, and its sketch
        double* const drawn_;  // the sums of r over negatives, over positives
        const Workspace<double> r_, v_;

        static int width(const Opauc& learner) { return 1 + static_cast<int>(learner.rank); }

        static bool fits(const Opauc& learner, const State<Real>& state) {
            const int m = 2 * width(learner);
            return Span<Real, 0>::fits(state, m) && state.numbers * sizeof(double) == sizeof(Tally) &&
                   state.arrays == 2 && state.more[0].shape[0] == Span<Real, 0>::numbers(m) && state.more[1].shape[0] == m - 2;
        }

        Run(const Opauc& learner, const State<Real>& state)
            : eta(learner.eta), lam(learner.lam), seed(learner.seed), rank(static_cast<int>(learner.rank)),
              tally(tally_of(state)), span(state, static_cast<double*>(state.more[0].data), 2 * width(learner)),
              drawn_(static_cast<double*>(state.more[1].data)), r_(rank), v_(rank) {}

        double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
        int first(bool positive) const { return positive ? 1 + rank : 0; }
        const double* drawn(bool positive) const { return drawn_ + (positive ? rank : 0); }

        Real weight(std::int32_t j) const { return span.weight(j); }
        void shrink(std::int32_t j, Real by) { span.shrink(j, by); }

        // Of a class: <w, m>, and v = (Z - m rho')'w.
        double mean(bool positive) const { return span.product(first(positive)) / rows(positive); }
        void products(bool positive, double mean) const {
            for (int b = 0; b < rank; ++b) v_[b] = span.product(first(positive) + 1 + b) - drawn(positive)[b] * mean;
        }

        double reach(double s) const {
            double far = 0;
            for (int c = 0; c < 2; ++c) {
                if (rows(c) == 0) continue;
                const double n = rows(c), a = mean(c), m = std::sqrt(span.square(first(c))) / n;
                double sketch = 0;
                for (int b = 0; b < rank; ++b) sketch += span.square(first(c) + 1 + b);
                products(c, a);
                const double rho = std::sqrt(dot(drawn(c), drawn(c), rank)), v = std::sqrt(dot(&v_[0], v_, rank));
                far += (1 + std::fabs(s) + std::fabs(a)) * (1 + m) + (std::sqrt(sketch) + m * rho) * v / n;
            }
            return span.reach() + eta * far;
        }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            draw_signs(static_cast<std::uint64_t>(seed), tally, std::sqrt(h / rank), rank, r_);
            span.add(row, h, first(positive), Chance(tally));
            span.add(row, r_, first(positive) + 1, rank, Chance(tally));
            for (int b = 0; b < rank; ++b) drawn_[(positive ? rank : 0) + b] += r_[b];
            const bool others = !positive;
            const double n = rows(others), step = h * eta;
            if (n == 0) return;
            const double a = mean(others), e = (positive ? 1 : -1) - (s - a);
            products(others, a);
            span.move(row, step * e);
            span.along(first(others), -step * (e - dot(drawn(others), v_, rank) / n) / n);
            for (int b = 0; b < rank; ++b) span.along(first(others) + 1 + b, -step * v_[b] / n);
            span.scale(1 / (1 + step * lam));
            span.settle();
        }
    };
};

// rank = 0: the sums of x x' over negatives and over positives, in full.
struct OpaucExact {
    double eta, lam;

    template <class Real>
    struct Run {
        struct Numbers {
            double all[Dense<Real>::numbers()];
        };

        const double eta, lam;
        Tally& tally;
        Dense<Real> weights;
        Pairs<Real> pairs;

        static bool fits(const OpaucExact&, const State<Real>& state) {
            return Dense<Real>::fits(state) && numbers_fit<Numbers>(state) && state.arrays == 1 &&
                   Pairs<Real>::fits(state.more[0]);
        }

        Run(const OpaucExact& learner, const State<Real>& state)
            : eta(learner.eta), lam(learner.lam), tally(tally_of(state)), weights(state, numbers_of<Numbers>(state).all),
              pairs(state.more[0], state.size) {}

        double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
        double mean(bool positive) const { return weights.product(positive) / rows(positive); }

        Real weight(std::int32_t j) const { return weights.weight(j); }

        double reach(double s) const {
            double ww = 0, far = 0;
            for (std::int32_t j = 0; j < pairs.size(); ++j) ww += double(weight(j)) * weight(j);
            for (int c = 0; c < 2; ++c) {
                if (rows(c) == 0) continue;
                const double n = rows(c), a = mean(c), m = std::sqrt(weights.square(c)) / n;
                far += (1 + std::fabs(s) + std::fabs(a)) * (1 + m) + pairs.trace(c) / n * std::sqrt(ww);
            }
            return weights.reach() + eta * far;
        }

        void shrink(std::int32_t j, Real by) {
            weights.shrink(j, by);
            pairs.shrink(j, by);
        }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            pairs.add(row, positive, h, Chance(tally));
            weights.add(row, h, positive, Chance(tally));
            const bool others = !positive;
            const double n = rows(others), step = h * eta;
            if (n == 0) return;
            const double a = mean(others), e = (positive ? 1 : -1) - (s - a);
            weights.push(pairs.times(others, [this](std::int32_t j) { return weight(j); }), pairs.size(), -step / n);
            weights.move(row, step * e);
            weights.along(others, -step * (e - a) / n);
            weights.shrink_all(0, 1 / (1 + step * lam));
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
