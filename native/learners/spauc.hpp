// SPAUC: proximal steps along the row and both class means. Maths: src/rarestream/learners/spauc.py.
#pragma once

#include "../class_means.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// What both penalties share: the gradient step.
template <class Real, class Weights>
struct SpaucGradient : ClassMeansUpdater<Real, Weights> {
    using Base = ClassMeansUpdater<Real, Weights>;
    using Base::mean, Base::rows, Base::tally, Base::weights;
    const double mu;

    SpaucGradient(double mu_, const State<Real>& state) : Base(state), mu(mu_) {}

    double eta() const {
        const double t = tally.n_pos + tally.n_neg;
        return 2 / (mu * (t > 1 ? t - 1 : 0) + 1);
    }

    double max_step(double s) const {
        return this->max_step_of(5 * eta() * (1 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false))));
    }

    // Returns the length of the step, which the proximal step has too.
    double descend(const ScaledRow<Real>& row, double s, bool positive, double h) {
        weights.add(row, h, positive, RoundingBits(tally));
        if (rows(!positive) == 0) return 0;  // p is 0 or 1, and the gradient 0
        const double p = tally.n_pos / (tally.n_pos + tally.n_neg), a = mean(true), b = mean(false), step = h * eta();
        const double c = 2 * (positive ? 1 - p : p) * (s - (positive ? a : b)), v = 2 * p * (1 - p) * (1 + b - a);
        weights.move(row, -step * c);
        weights.move_along(positive, step * c / rows(positive));
        weights.move_along(true, step * v / rows(true));
        weights.move_along(false, -step * v / rows(false));
        return step;
    }
};

struct Spauc {
    double mu;

    template <class Real>
    struct Updater : SpaucGradient<Real, LowRankWeights<Real, 2>> {
        static bool fits(const Spauc&, const State<Real>& state) { return Updater::state_fits(state); }

        Updater(const Spauc& learner, const State<Real>& state)
            : SpaucGradient<Real, LowRankWeights<Real, 2>>(learner.mu, state) {}

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            this->descend(row, s, positive, h);
            this->weights.rebase_if_needed();
        }
    };
};

struct SpaucL1 {
    double mu, l1;

    template <class Real>
    struct Updater : SpaucGradient<Real, DenseWeights<Real>> {
        const double l1;

        static bool fits(const SpaucL1&, const State<Real>& state) { return Updater::state_fits(state); }

        Updater(const SpaucL1& learner, const State<Real>& state)
            : SpaucGradient<Real, DenseWeights<Real>>(learner.mu, state), l1(learner.l1) {}

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            const double step = this->descend(row, s, positive, h);
            if (step > 0) this->weights.proximal_step(step * l1, 1);
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
