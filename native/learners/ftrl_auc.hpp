#pragma once

#include "../update_rules.hpp"
#include "../updater.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct FtrlAuc {  // maths: src/rarestream/learners/ftrl_auc.py
    double gamma, lam, l2, beta;

    template <class Real>
    FtrlRule<Real> rule() const {
        return {gamma, lam, l2, beta};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        return pairwise_slope(tally.share_of_others(positive), tally.margin_error(s, positive));
    }
};

// means="exact": a coordinate also holds the sums of x over positives and over negatives, and the inner products of the
// weights with them are kept up as weights and sums change, so both class means are current at no more than O(k).
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
        const Real gamma, per_gamma, lam, beta;
        Coordinate* const table;
        Scalars& numbers;
        Tally& tally;

        static bool fits(const FtrlAucExact&, const State<Real>& state) {
            return state.columns == 4 && state.row_stride == 4 && scalars_fit<Scalars>(state);
        }

        Updater(const FtrlAucExact& learner, const State<Real>& state)
            : gamma(static_cast<Real>(learner.gamma)), per_gamma(static_cast<Real>(1 / learner.gamma)),
              lam(static_cast<Real>(learner.lam)), beta(static_cast<Real>(learner.beta + learner.gamma * learner.l2)),
              table(reinterpret_cast<Coordinate*>(state.table)), numbers(scalars_of<Scalars>(state)),
              tally(tally_of(state)) {}

        Real weight(const Coordinate& at) const {
            const Real size = std::fabs(at.z) - lam;
            return size > 0 ? (at.z > 0 ? -gamma : gamma) * size / (beta + at.n) : 0;
        }
        Real weight(std::int32_t j) const { return weight(table[j]); }

        double mean(bool positive) const {
            const double n = positive ? tally.n_pos : tally.n_neg;
            return n > 0 ? numbers.dot[positive] / n : 0;
        }

        double max_step(double s) const { return 2 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false)); }

        void rescale(std::int32_t j, Real by) {
            Coordinate& at = table[j];
            const Coordinate before = at;
            at = {by * at.z, by * at.n, {by * at.sum[0], by * at.sum[1]}};
            for (int c = 0; c < 2; ++c)
                numbers.dot[c] += double(weight(at)) * at.sum[c] - double(weight(before)) * before.sum[c];
        }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                const Real before = at.sum[positive];
                at.sum[positive] += static_cast<Real>(h) * row.x[p];
                numbers.dot[positive] += double(weight(at)) * (double(at.sum[positive]) - before);
            }
            const double c = 2 * tally.share_of_others(positive) * (s - mean(!positive) - (positive ? 1 : -1));
            const Real slope = static_cast<Real>(c), slopes = static_cast<Real>(c * h);
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                const Real w = weight(at), g = slope * row.x[p], hg = slopes * row.x[p];
                const Real root = std::sqrt(at.n * at.n + hg * g);
                at.z += hg - (root - at.n) * (per_gamma * w);
                at.n = root;
                const double moved = double(weight(at)) - w;
                for (int k = 0; k < 2; ++k) numbers.dot[k] += moved * at.sum[k];
            }
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
