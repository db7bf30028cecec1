// FTRL-AUC, with lazy and with exact class means. Maths: src/rarestream/learners/ftrl_auc.py.
#pragma once

#include "../half_life.hpp"
#include "../update_rules.hpp"
#include "../updater.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct FtrlAuc {
    double gamma, lam, l2, beta;

    template <class Real>
    FtrlRule<Real> rule() const {
        return {gamma, lam, l2, beta};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        return slope_of_counted(tally, s, positive, h);
    }

    double slope_of_counted(const Tally& tally, double s, bool positive, double) const {
        return pairwise_slope(tally.share_of_others(positive), tally.margin_error(s, positive));
    }

    FtrlAuc in_units(const DecayedUnits& units) const {
        return {units.gamma(gamma), units.lam(lam), 0, units.beta(beta + gamma * l2)};
    }
};

using FtrlAucHalfLife = WithHalfLife<FtrlAuc>;

// means="exact": a coordinate also holds the sums of x over positives and over negatives, and the inner products of the
// weights with them are updated as weights and sums change, so both class means are current at a cost of O(k).
struct FtrlAucExact {
    double gamma, lam, l2, beta;

    template <class Real>
    struct Updater {
        struct Coordinate {
            Real z, n, sum[2];  // of negatives, of positives
        };
        struct Scalars {
            double dot[2];  // <w, sum>
        };
        const FtrlRule<Real> rule;
        Coordinate* const table;
        Scalars& scalars;
        Tally& tally;

        static bool fits(const FtrlAucExact&, const State<Real>& state) {
            return state.columns == 4 && state.row_stride == 4 && scalars_fit<Scalars>(state);
        }

        Updater(const FtrlAucExact& learner, const State<Real>& state)
            : rule(learner.gamma, learner.lam, learner.l2, learner.beta), table(reinterpret_cast<Coordinate*>(state.table)),
              scalars(scalars_of<Scalars>(state)), tally(tally_of(state)) {}

        Real weight(const Coordinate& at) const { return rule.weight(at.z, at.n); }
        Real weight(std::int32_t j) const { return weight(table[j]); }

        double mean(bool positive) const {
            const double n = positive ? tally.n_pos : tally.n_neg;
            return n > 0 ? scalars.dot[positive] / n : 0;
        }

        double max_step(double s) const { return 2 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false)); }

        void rescale(std::int32_t j, Real factor) {
            Coordinate& at = table[j];
            const Coordinate before = at;
            at = {factor * at.z, factor * at.n, {factor * at.sum[0], factor * at.sum[1]}};
            for (int c = 0; c < 2; ++c)
                scalars.dot[c] += double(weight(at)) * at.sum[c] - double(weight(before)) * before.sum[c];
        }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                const Real before = at.sum[positive];
                at.sum[positive] += static_cast<Real>(h) * row.x[p];
                scalars.dot[positive] += double(weight(at)) * (double(at.sum[positive]) - before);
            }
            const double error = s - mean(!positive) - (positive ? 1 : -1);
            const double c = pairwise_slope(tally.share_of_others(positive), error);
            FtrlRule<Real> row_rule = rule;
            row_rule.set_slope(c, h, 1);
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                const Real w = weight(at);
                row_rule.step(at.z, at.n, w, row.x[p]);
                const double moved = double(weight(at)) - w;
                for (int k = 0; k < 2; ++k) scalars.dot[k] += moved * at.sum[k];
            }
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
