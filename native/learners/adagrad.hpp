// AdaGrad: dual averaging of the logistic loss with a step size per coordinate. Maths: src/rarestream/learners/adagrad.py.
#pragma once

#include "../update_rules.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct AdaGrad {
    double eta, lam, epsilon, intercept;

    template <class Real>
    struct Rule : DualAveragingRule<Real> {
        double l1;

        explicit Rule(const AdaGrad& learner)
            : DualAveragingRule<Real>(learner.eta, 0, learner.epsilon, 2), l1(learner.lam) {}

        RARESTREAM_ALWAYS_INLINE void begin_row(const Tally& tally) {
            this->lam = static_cast<Real>(l1 * (tally.n_pos + tally.n_neg));
        }
    };

    template <class Real>
    Rule<Real> rule() const {
        return Rule<Real>(*this);
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        const double c = logistic_slope(s + tally.w0, positive);
        if (intercept != 0) {  // w0 = -eta z0 / (epsilon + n0), and z0 is read back from it
            const double before = epsilon + tally.n0;
            tally.n0 = std::sqrt(tally.n0 * tally.n0 + h * c * c);
            tally.w0 = (tally.w0 * before - eta * h * c) / (epsilon + tally.n0);
        }
        return c;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
