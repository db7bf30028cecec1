// Dual averaging on the AUC or the logistic loss, without and with powers of weights, evidence, and a budget of them.
// Maths: src/rarestream/learners/dual_averaging.py.
#pragma once

#include "../half_life.hpp"
#include "../losses.hpp"
#include "../magnitude_histogram.hpp"
#include "../update_rules.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct DualAveraging {
    static constexpr bool HINGE = true;
    double logistic, gamma, lam, beta, r;

    template <class Real>
    DualAveragingRule<Real> rule() const {
        return {gamma, lam, beta, r};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        return slope_of_counted(tally, s, positive, h);
    }

    double slope_of_counted(Tally& tally, double s, bool positive, double h) const {
        if (logistic == 0) {  // squared hinge: beyond the margin the slope is 0
            const double error = tally.margin_error(s, positive), share = tally.share_of_others(positive);
            return positive == (error < 0) ? pairwise_slope(share, error) : 0;
        }
        const double c = logistic_slope(s + tally.w0, positive);
        tally.step_intercept(c, h, gamma, beta);
        return c;
    }

    // The same slope without a branch on the score.
    RARESTREAM_ALWAYS_INLINE double slope_without_branch(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        if (logistic == 0) {
            const double error = tally.margin_error(s, positive), share = tally.share_of_others(positive);
            const double y = positive ? 1 : -1, missing = y * error;
            return pairwise_slope(share, y * (missing < 0 ? missing : 0.0));
        }
        return slope_of_counted(tally, s, positive, h);
    }

    DualAveraging in_units(const DecayedUnits& units) const {
        return {logistic, units.gamma(gamma), units.lam(lam), units.beta(beta), r};
    }
};

struct DualAveragingPower : DualAveraging {
    double q, kappa;

    template <class Real>
    PowerRule<Real> rule() const {
        return {DualAveraging::rule<Real>(), q, kappa};
    }

    DualAveragingPower in_units(const DecayedUnits& units) const {
        return {{logistic, units.gamma(gamma, q), units.lam(lam), units.beta(beta), r}, q, kappa};
    }
};

struct DualAveragingEvidence : DualAveragingPower {
    double p;

    template <class Real>
    EvidenceRule<Real> rule() const {
        return {DualAveragingPower::rule<Real>(), p};
    }

    DualAveragingEvidence in_units(const DecayedUnits& units) const { return {DualAveragingPower::in_units(units), p}; }
};

// With a budget: the same sums, but only the weights with the largest |z w| are not zero.
template <class Learner>
struct WithBudget {
    Learner learner;
    double budget;

    template <class Real>
    struct Updater {
        Tally& tally;
        const Learner learner;
        const decltype(learner.template rule<Real>()) rule;
        static constexpr bool SQUARES_STEPS = squares_steps<decltype(learner.template rule<Real>())>(0);
        const MagnitudeHistogram histogram;
        Pair<Real>* const pairs;
        Real smallest_kept;  // the smallest |z w| of a weight that is kept

        static bool fits(const WithBudget&, const State<Real>& state) {
            return state.columns == 2 && state.row_stride == 2 && state.n_scalars * sizeof(double) == sizeof(Tally) &&
                   state.n_extra == 1 && state.extra[0].shape[0] == MagnitudeHistogram::COUNTS;
        }

        Updater(const WithBudget& settings, const State<Real>& state)
            : tally(tally_of(state)), learner(settings.learner), rule(learner.template rule<Real>()),
              histogram(state.extra[0].data, settings.budget), pairs(state.pairs()),
              smallest_kept(histogram.smallest_kept<Real>()) {}

        RARESTREAM_ALWAYS_INLINE Real weight(std::int32_t j) const {
            const Real w = rule.weight(pairs[j]);
            return std::fabs(pairs[j].z * w) >= smallest_kept ? w : Real(0);
        }

        double max_step(double s) const { return 2 + std::fabs(s) + std::fabs(tally.a) + std::fabs(tally.b); }

        void rescale(std::int32_t j, Real factor) {
            update(j, [factor](Pair<Real>& pair) {
                pair.z *= factor;
                pair.n *= factor;
            });
        }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            const double c = learner.slope_of_counted(tally, s, positive, h);
            auto row_rule = rule;
            row_rule.set_slope(c, h, 1);
            for (std::int64_t p = 0; c != 0 && p < row.k; ++p)
                update(row.at[p], [&](Pair<Real>& pair) RARESTREAM_INLINE_LAMBDA { row_rule.step(pair, row.x[p]); });
            histogram.update_threshold();  // also when c is 0: coordinates may have been rescaled
            smallest_kept = histogram.smallest_kept<Real>();
        }

    private:
        template <class Change>
        RARESTREAM_ALWAYS_INLINE void update(std::int32_t j, Change&& change) {
            Pair<Real> pair = pairs[j];
            const Real before = pair.z * rule.weight(pair);
            change(pair);
            histogram.move(before, pair.z * rule.weight(pair));
            pairs[j] = pair;
        }
    };
};

using DualAveragingBudget = WithBudget<DualAveraging>;
using DualAveragingPowerBudget = WithBudget<DualAveragingPower>;
using DualAveragingEvidenceHalfLife = WithHalfLife<DualAveragingEvidence>;
using DualAveragingHalfLife = WithHalfLife<DualAveraging>;
using DualAveragingPowerHalfLife = WithHalfLife<DualAveragingPower>;

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
