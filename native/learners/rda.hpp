#pragma once

#include "../reals.hpp"
#include "../run.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Rda {  // maths: src/rarestream/learners/rda.py
    double gamma, lam, rho, intercept;

    template <class Real>
    struct Run {
        const Rda& rda;
        Real* const z;
        Tally& tally;
        Real gain, threshold;  // of weights read after t rows

        static bool fits(const Rda&, const State<Real>& state) {
            return state.columns == 1 && state.step == 1 && state.numbers * sizeof(double) == sizeof(Tally);
        }

        Run(const Rda& learner, const State<Real>& state) : rda(learner), z(state.table), tally(tally_of(state)) { now(); }

        void now() {
            const double t = tally.n_pos + tally.n_neg;
            gain = static_cast<Real>(t > 0 ? -1 / (rda.gamma * std::sqrt(t)) : 0);
            threshold = static_cast<Real>(rda.lam * t + rda.gamma * rda.rho * std::sqrt(t));
        }

        Real weight(std::int32_t j) const {
            const Real size = std::fabs(z[j]) - threshold;
            return size > 0 ? (z[j] > 0 ? gain : -gain) * size : 0;
        }

        double reach(double) const { return 1 + 1 / rda.gamma; }  // a logistic slope is at most 1

        void shrink(std::int32_t j, Real by) { z[j] *= by; }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double t = tally.n_pos + tally.n_neg, c = sigmoid(s + tally.w0) - (positive ? 1 : 0);
            const Real hc = static_cast<Real>(h * c);
            for (std::int64_t p = 0; p < row.k; ++p) z[row.at[p]] += hc * row.x[p];
            // w0 = -z0 / (gamma sqrt(t)), and z0 is read back from it.
            if (rda.intercept != 0) tally.w0 = (tally.w0 * std::sqrt(t - h) - h * c / rda.gamma) / std::sqrt(t);
            now();
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
