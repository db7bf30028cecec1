#pragma once

#include "../dense.hpp"
#include "../run.hpp"
#include "../span.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// maths: src/rarestream/learners/spauc.py
template <class Real, class Weights>
struct SpaucRun {
    const double mu;
    Tally& tally;
    Weights weights;  // with the sums of x over negatives (0) and positives (1)

    double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
    double mean(bool positive) const { return rows(positive) > 0 ? weights.product(positive) / rows(positive) : 0; }
    double eta() const {
        const double t = tally.n_pos + tally.n_neg;
        return 2 / (mu * (t > 1 ? t - 1 : 0) + 1);
    }

    Real weight(std::int32_t j) const { return weights.weight(j); }

    // x moves w itself and through the mean of its class; both means move w, whatever x.
    double reach(double s) const {
        double far = 2;
        for (int c = 0; c < 2; ++c)
            if (rows(c) > 0) far += std::sqrt(weights.square(c)) / rows(c);
        return weights.reach() + 5 * eta() * (1 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false))) * far;
    }

    void shrink(std::int32_t j, Real by) { weights.shrink(j, by); }

    // Returns the length of the step, which the penalty takes too.
    double descend(const Sample<Real>& row, double s, bool positive, double h) {
        weights.add(row, h, positive, Chance(tally));
        if (rows(!positive) == 0) return 0;  // p is 0 or 1, and the gradient 0
        const double p = tally.n_pos / (tally.n_pos + tally.n_neg), a = mean(true), b = mean(false), step = h * eta();
        const double c = 2 * (positive ? 1 - p : p) * (s - (positive ? a : b)), v = 2 * p * (1 - p) * (1 + b - a);
        weights.move(row, -step * c);
        weights.along(positive, step * c / rows(positive));
        weights.along(true, step * v / rows(true));
        weights.along(false, -step * v / rows(false));
        return step;
    }
};

struct Spauc {
    double mu;

    template <class Real>
    struct Run : SpaucRun<Real, Span<Real, 2>> {
        struct Numbers {
            double all[Span<Real, 2>::numbers(2)];
        };

        static bool fits(const Spauc&, const State<Real>& state) {
            return Span<Real, 2>::fits(state, 2) && numbers_fit<Numbers>(state);
        }

        Run(const Spauc& learner, const State<Real>& state)
            : SpaucRun<Real, Span<Real, 2>>{learner.mu, tally_of(state), {state, numbers_of<Numbers>(state).all}} {}

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            this->descend(row, s, positive, h);
            this->weights.settle();
        }
    };
};

struct SpaucL1 {
    double mu, l1;

    template <class Real>
    struct Run : SpaucRun<Real, Dense<Real>> {
        const double l1;

        struct Numbers {
            double all[Dense<Real>::numbers()];
        };

        static bool fits(const SpaucL1&, const State<Real>& state) {
            return Dense<Real>::fits(state) && numbers_fit<Numbers>(state);
        }

        Run(const SpaucL1& learner, const State<Real>& state)
            : SpaucRun<Real, Dense<Real>>{learner.mu, tally_of(state), {state, numbers_of<Numbers>(state).all}},
              l1(learner.l1) {}

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double step = this->descend(row, s, positive, h);
            if (step > 0) this->weights.shrink_all(step * l1, 1);
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
