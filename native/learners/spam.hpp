// SPAM: proximal steps, with the sparse and with the full gradient. Maths: src/rarestream/learners/spam.py.
#pragma once

#include "../zeroing_heap.hpp"
#include "../class_means.hpp"
#include "../updater.hpp"
#include "../stochastic_rounding.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct SpamSettings {
    double xi, l1, l2;

    // The length of a row's step.
    double eta(const Tally& tally, double h) const { return h * xi / std::sqrt(tally.n_pos + tally.n_neg); }

    // The factor by which l2 shrinks every weight in such a step.
    double shrinkage(double eta) const {
        const double factor = 1 / (1 + eta * l2);
        return factor > 1e-200 ? factor : 1e-200;
    }

    // The slope of the loss along x, the same for both gradients.
    static double slope(const Tally& tally, double s, bool positive, double mean_of_others) {
        return 2 * tally.share_of_others(positive) * (s - mean_of_others - (positive ? 1 : -1));
    }

    // An upper bound on the factor of x, and of each class mean, in a step.
    double max_step(double s, double b, double a) const {
        return 5 * (1 + xi) * (1 + std::fabs(s) + std::fabs(b) + std::fabs(a));
    }
};

struct Spam : SpamSettings {  // the sparse gradient
    struct Scalars {
        double sigma;         // w = sigma u; 0 in a new state, which means 1
        double u_neg, u_pos;  // <u, S-> and <u, S+>
        double level;         // T: by how much every |u| has shrunk in total
        double q_neg, q_pos;  // <sign u, S-> and <sign u, S+>: u_neg and u_pos decrease by these when T grows by 1
        double living;        // number of u that are not zero, where l1 > 0
        double bound;         // T is reset to 0 beyond it
    };

    template <class Real>
    struct Updater {
        struct Coordinate {
            Real zero_level;  // sign(u) (T + |u|): u becomes zero when T reaches it
            Real neg, pos;    // S- and S+
        };
        static constexpr double MINIMUM = 1e-12;                             // sigma
        static constexpr double MAXIMUM = sizeof(Real) == 4 ? 1e35 : 1e300;  // T: beyond any u

        const Spam& spam;
        Tally& tally;
        Scalars& all;
        Coordinate* const table;
        const std::int64_t size;
        ZeroingHeap<Real> zeroing;

        static bool fits(const Spam& learner, const State<Real>& state) {
            return state.columns == 3 && state.row_stride == 3 && state.column_stride == 1 && scalars_fit<Scalars>(state) &&
                   (learner.l1 > 0 ? ZeroingHeap<Real>::fits(state) : state.n_extra == 0);
        }

        Updater(const Spam& learner, const State<Real>& state)
            : spam(learner), tally(tally_of(state)), all(scalars_of<Scalars>(state)),
              table(reinterpret_cast<Coordinate*>(state.table)), size(state.size), zeroing(state, all.living) {}

        Real weight(std::int32_t j) const { return static_cast<Real>(sigma() * u(table[j])); }

        double max_step(double s) const { return spam.max_step(s, mean(false), mean(true)); }

        void rescale(std::int32_t j, Real factor) {
            const Coordinate& at = table[j];
            set(j, factor * u(at), factor * at.neg, factor * at.pos, all.level);
        }

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            const double eta = spam.eta(tally, h), c = spam.slope(tally, s, positive, mean(!positive));
            const double move = eta * c / sigma(), wanted = all.level + eta * spam.l1 / sigma();
            const double level = wanted < MAXIMUM ? wanted : MAXIMUM;
            const RoundingBits rounding(tally);
            for (std::int64_t p = 0; p < row.k; ++p) {
                const std::int32_t j = row.at[p];
                const Coordinate& at = table[j];
                const double x = row.x[p];
                const Real total = stochastic_round<Real>((positive ? at.pos : at.neg) + h * x, rounding.bits(j));
                set(j, u(at) - move * x, positive ? at.neg : total, positive ? total : at.pos, level);
            }
            if (spam.l1 > 0) shrink_to(level);
            all.sigma = sigma() * spam.shrinkage(eta);
            if (all.level > all.bound || all.sigma < MINIMUM) reset_level();
        }

    private:
        static double sign(double v) { return (v > 0) - (v < 0); }

        double sigma() const { return all.sigma == 0 ? 1 : all.sigma; }

        double u(const Coordinate& at) const {
            const double zero_level = at.zero_level, size = std::fabs(zero_level) - all.level;
            return std::copysign(size > 0 ? size : 0, zero_level);  // without a branch: signs cannot be predicted
        }

        // The mean score of a class under the weights as they are now.
        double mean(bool positive) const {
            const double n = positive ? tally.n_pos : tally.n_neg;
            return n > 0 ? sigma() * (positive ? all.u_pos : all.u_neg) / n : 0;
        }

        // Sets u of a coordinate, or 0 if it would be zero once T is `level`, and its class sums.
        void set(std::int32_t j, double u_j, Real neg, Real pos, double level) {
            Coordinate& at = table[j];
            const double before = u(at);
            const Real zero_level = static_cast<Real>(all.level + std::fabs(u_j));
            const bool nonzero = std::fabs(u_j) > level - all.level && zero_level > level;
            // u as stored, after rounding: the products are those of the numbers in the table.
            const double after = nonzero ? std::copysign(zero_level - all.level, u_j) : 0;
            all.u_neg += after * neg - before * at.neg;
            all.u_pos += after * pos - before * at.pos;
            const Coordinate was = at;
            at = {nonzero ? static_cast<Real>(std::copysign(static_cast<double>(zero_level), u_j)) : Real(0), neg, pos};
            if (spam.l1 == 0) return;
            all.q_neg += sign(after) * neg - sign(before) * was.neg;
            all.q_pos += sign(after) * pos - sign(before) * was.pos;
            if (nonzero)
                zeroing.set(j, zero_level);
            else
                zeroing.remove(j);
        }

        // Shrinks every u until T is `level`.
        void shrink_to(double level) {
            while (zeroing.zero_at(level)) {
                const std::int32_t j = zeroing.first();
                set(j, 0, table[j].neg, table[j].pos, level);
            }
            all.u_neg -= (level - all.level) * all.q_neg;
            all.u_pos -= (level - all.level) * all.q_pos;
            all.level = level;
        }

        // The same weights with sigma = 1 and T = 0; the sums over all coordinates are computed again.
        void reset_level() {
            Scalars fresh{};
            double sum = 0;
            const auto reset = [&](std::int32_t j) {
                Coordinate& at = table[j];
                at.zero_level = weight(j);
                fresh.u_neg += static_cast<double>(at.zero_level) * at.neg;
                fresh.u_pos += static_cast<double>(at.zero_level) * at.pos;
                fresh.q_neg += sign(at.zero_level) * at.neg;
                fresh.q_pos += sign(at.zero_level) * at.pos;
                sum += std::fabs(at.zero_level);
                return std::fabs(at.zero_level);
            };
            if (spam.l1 > 0)
                zeroing.set_all(reset);
            else
                for (std::int32_t j = 0; j < size; ++j) reset(j);
            fresh.sigma = 1;
            fresh.living = all.living;
            fresh.bound =
                all.living > 0 ? sum / all.living : 0;  // the mean |u|: with a larger T, T + |u| would lose digits of u
            all = fresh;
        }
    };
};

// The full gradient; the penalties follow.
template <class Real, class Weights>
struct SpamFullGradient : ClassMeansUpdater<Real, Weights> {
    using Base = ClassMeansUpdater<Real, Weights>;
    using Base::mean, Base::rows, Base::tally, Base::weights;
    const SpamSettings spam;

    SpamFullGradient(const SpamSettings& settings, const State<Real>& state) : Base(state), spam(settings) {}

    double max_step(double s) const { return this->max_step_of(spam.max_step(s, mean(false), mean(true))); }

    // Returns the length of the step, which the proximal step has too.
    double descend(const ScaledRow<Real>& row, double s, bool positive, double h) {
        weights.add(row, h, positive, RoundingBits(tally));
        if (rows(!positive) == 0) return 0;  // p is 0 or 1, and the gradient 0
        const double eta = spam.eta(tally, h), p = tally.n_pos / (tally.n_pos + tally.n_neg);
        const double own = mean(positive), others = mean(!positive), share = 2 * tally.share_of_others(positive);
        const double v = 2 * p * (1 - p) * (mean(false) - mean(true));
        weights.move(row, -eta * spam.slope(tally, s, positive, others));
        weights.move_along(positive, -eta * share * own / rows(positive));
        weights.move_along(!positive, eta * share * s / rows(!positive));
        weights.move_along(false, eta * v / rows(false));
        weights.move_along(true, -eta * v / rows(true));
        return eta;
    }
};

struct SpamFull : SpamSettings {
    template <class Real>
    struct Updater : SpamFullGradient<Real, LowRankWeights<Real, 2>> {
        static bool fits(const SpamFull&, const State<Real>& state) { return Updater::state_fits(state); }

        Updater(const SpamFull& learner, const State<Real>& state)
            : SpamFullGradient<Real, LowRankWeights<Real, 2>>(learner, state) {}

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            const double eta = this->descend(row, s, positive, h);
            this->weights.scale(this->spam.shrinkage(eta));
            this->weights.rebase_if_needed();
        }
    };
};

struct SpamFullL1 : SpamSettings {
    template <class Real>
    struct Updater : SpamFullGradient<Real, DenseWeights<Real>> {
        static bool fits(const SpamFullL1&, const State<Real>& state) { return Updater::state_fits(state); }

        Updater(const SpamFullL1& learner, const State<Real>& state)
            : SpamFullGradient<Real, DenseWeights<Real>>(learner, state) {}

        void step(const ScaledRow<Real>& row, double s, bool positive, double h) {
            const double eta = this->descend(row, s, positive, h);
            if (eta > 0) this->weights.proximal_step(eta * this->spam.l1, this->spam.shrinkage(eta));
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
