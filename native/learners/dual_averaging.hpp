#pragma once

#include "../coordinates.hpp"
#include "../ladder.hpp"
#include "../run.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct DualAveraging {  // maths: src/rarestream/learners/dual_averaging.py
    double logistic, gamma, lam, beta, r;

    template <class Real>
    DualCoordinates<Real> coordinates() const {
        return {gamma, lam, beta, r};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        return slope_of_counted(tally, s, positive, h);
    }

    double slope_of_counted(Tally& tally, double s, bool positive, double h) const {
        if (logistic == 0) {  // squared hinge: a row beyond the margin teaches nothing
            const double miss = tally.miss(s, positive), share = tally.share_of_others(positive);
            return positive == (miss < 0) ? 2 * share * miss : 0;
        }
        const double c = sigmoid(s + tally.w0) - (positive ? 1 : 0);
        tally.lean(c, h, gamma, beta);
        return c;
    }
};

// With a budget: the same sums, of which the weights that are worth most are read.
struct DualAveragingBudget {
    DualAveraging rule;
    double budget;

    template <class Real>
    struct Run {
        Tally& tally;
        const DualAveraging rule;
        const Ladder ladder;
        Pair<Real>* const pairs;
        const Real gamma, beta;
        Real least;  // what a weight is worth that lives

        static bool fits(const DualAveragingBudget&, const State<Real>& state) {
            return state.columns == 2 && state.step == 2 && state.numbers * sizeof(double) == sizeof(Tally) &&
                   state.arrays == 1 && state.more[0].shape[0] == Ladder::NUMBERS;
        }

        Run(const DualAveragingBudget& learner, const State<Real>& state)
            : tally(tally_of(state)), rule(learner.rule), ladder(state.more[0].data, learner.budget),
              pairs(state.pairs()), gamma(static_cast<Real>(rule.gamma)), beta(static_cast<Real>(rule.beta)),
              least(ladder.least<Real>()) {}

        RARESTREAM_INLINE Real weight(std::int32_t j) const {
            const Real w = any_weight(pairs[j]);
            return std::fabs(pairs[j].z * w) >= least ? w : Real(0);
        }

        double reach(double s) const { return 2 + std::fabs(s) + std::fabs(tally.a) + std::fabs(tally.b); }

        void shrink(std::int32_t j, Real by) {
            change(j, [by](Pair<Real>& pair) {
                pair.z *= by;
                pair.n *= by;
            });
        }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double c = rule.slope_of_counted(tally, s, positive, h);
            auto coordinates = rule.template coordinates<Real>();
            coordinates.aim(c, h, 1);
            for (std::int64_t p = 0; c != 0 && p < row.k; ++p)
                change(row.at[p], [&](Pair<Real>& pair) RARESTREAM_MELT { coordinates.step(pair, row.x[p]); });
            ladder.settle();  // also when c is 0: coordinates may have shrunk
            least = ladder.least<Real>();
        }

    private:
        RARESTREAM_INLINE Real any_weight(const Pair<Real>& pair) const { return -gamma * pair.z / (beta + pair.n); }

        template <class Change>
        RARESTREAM_INLINE void change(std::int32_t j, Change&& act) {
            Pair<Real> pair = pairs[j];
            const Real before = pair.z * any_weight(pair);
            act(pair);
            ladder.moved(before, pair.z * any_weight(pair));
            pairs[j] = pair;
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
