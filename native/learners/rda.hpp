// RDA: regularised dual averaging of the logistic loss. Maths: src/rarestream/learners/rda.py.
#pragma once

#include "../portable_math.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Rda {
    double gamma, lam, rho, intercept;

    template <class Real>
    struct Updater {
        const Rda& rda;
        Real* const z;
        Tally& tally;
        Real rate, threshold;  // of the weights after t rows

        static bool fits(const Rda&, const State<Real>& state) {
            return state.columns == 1 && state.row_stride == 1 && state.n_scalars * sizeof(double) == sizeof(Tally);
        }

        Updater(const Rda& learner, const State<Real>& state) : rda(learner), z(state.table), tally(tally_of(state)) {
            update_threshold();
        }

        void update_threshold() {
            const double t = tally.n_pos + tally.n_neg;
            rate = static_cast<Real>(t > 0 ? -1 / (rda.gamma * std::sqrt(t)) : 0);
            threshold = static_cast<Real>(rda.lam * t + rda.gamma * rda.rho * std::sqrt(t));
        }

        Real weight(std::int32_t j) const {
            const Real size = std::fabs(z[j]) - threshold;
            return size > 0 ? (z[j] > 0 ? rate : -rate) * size : 0;
        }

        double max_step(double) const { return 1 + 1 / rda.gamma; }  // a logistic slope is at most 1

        void rescale(std::int32_t j, Real factor) { z[j] *= factor; }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            const double t = tally.n_pos + tally.n_neg, c = logistic_slope(s + tally.w0, positive);
            const Real hc = static_cast<Real>(h * c);
            for (std::int64_t p = 0; p < row.k; ++p) z[row.at[p]] += hc * row.x[p];
            // w0 = -z0 / (gamma sqrt(t)), and z0 is read back from it.
            if (rda.intercept != 0) tally.w0 = (tally.w0 * std::sqrt(t - h) - h * c / rda.gamma) / std::sqrt(t);
            update_threshold();
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
