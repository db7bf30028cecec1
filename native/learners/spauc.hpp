#pragma once

#include "../means.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// maths: src/rarestream/learners/spauc.py
template <class Real, class Weights>
struct SpaucRun : AlongMeans<Real, Weights> {
    using Base = AlongMeans<Real, Weights>;
    using Base::mean, Base::rows, Base::tally, Base::weights;
    const double mu;

    SpaucRun(double mu_, const State<Real>& state) : Base(state), mu(mu_) {}

    double eta() const {
        const double t = tally.n_pos + tally.n_neg;
        return 2 / (mu * (t > 1 ? t - 1 : 0) + 1);
    }

    double reach(double s) const {
        return this->reach_of(5 * eta() * (1 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false))));
    }

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
        static bool fits(const Spauc&, const State<Real>& state) { return Run::suits(state); }

        Run(const Spauc& learner, const State<Real>& state) : SpaucRun<Real, Span<Real, 2>>(learner.mu, state) {}

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

        static bool fits(const SpaucL1&, const State<Real>& state) { return Run::suits(state); }

        Run(const SpaucL1& learner, const State<Real>& state)
            : SpaucRun<Real, Dense<Real>>(learner.mu, state), l1(learner.l1) {}

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double step = this->descend(row, s, positive, h);
            if (step > 0) this->weights.shrink_all(step * l1, 1);
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
