#pragma once

#include "../deaths.hpp"
#include "../means.hpp"
#include "../run.hpp"
#include "../sums.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct SpamSettings {  // maths: src/rarestream/learners/spam.py
    double xi, l1, l2;

    // The length of a row's step.
    double eta(const Tally& tally, double h) const { return h * xi / std::sqrt(tally.n_pos + tally.n_neg); }

    // What l2 leaves of a weight in such a step.
    double left(double eta) const {
        const double left = 1 / (1 + eta * l2);
        return left > 1e-200 ? left : 1e-200;
    }

    // The slope of the loss along x, which a row of either gradient has.
    static double slope(const Tally& tally, double s, bool positive, double mean_of_others) {
        return 2 * tally.share_of_others(positive) * (s - mean_of_others - (positive ? 1 : -1));
    }

    // No step moves w by more along x, or along a mean, of length 1.
    double reach(double s, double b, double a) const {
        return 5 * (1 + xi) * (1 + std::fabs(s) + std::fabs(b) + std::fabs(a));
    }
};

struct Spam : SpamSettings {  // the sparse gradient
    struct Numbers {
        double sigma;         // w = sigma u; 0 in a new state, which means 1
        double u_neg, u_pos;  // <u, S-> and <u, S+>
        double level;         // T: how far every u has shrunk
        double q_neg, q_pos;  // <sign u, S-> and <sign u, S+>: what the above lose when T grows by one
        double living;        // how many u are not zero, where l1 > 0
        double bound;         // T is set back to 0 beyond it
    };

    template <class Real>
    struct Run {
        struct Coordinate {
            Real death;     // sign(u) (T + |u|): the level at which u becomes zero; u is zero where |death| <= T
            Real neg, pos;  // S- and S+
        };
        static constexpr double LEAST = 1e-12;                            // sigma
        static constexpr double MOST = sizeof(Real) == 4 ? 1e35 : 1e300;  // T: beyond any u

        const Spam& spam;
        Tally& tally;
        Numbers& all;
        Coordinate* const table;
        const std::int64_t size;
        Deaths<Real> deaths;

        static bool fits(const Spam& learner, const State<Real>& state) {
            return state.columns == 3 && state.step == 3 && state.apart == 1 && numbers_fit<Numbers>(state) &&
                   (learner.l1 > 0 ? Deaths<Real>::fits(state) : state.arrays == 0);
        }

        Run(const Spam& learner, const State<Real>& state)
            : spam(learner), tally(tally_of(state)), all(numbers_of<Numbers>(state)),
              table(reinterpret_cast<Coordinate*>(state.table)), size(state.size), deaths(state, all.living) {}

        Real weight(std::int32_t j) const { return static_cast<Real>(sigma() * u(table[j])); }

        double reach(double s) const { return spam.reach(s, mean(false), mean(true)); }

        void shrink(std::int32_t j, Real by) {
            const Coordinate& at = table[j];
            put(j, by * u(at), by * at.neg, by * at.pos, all.level);
        }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double eta = spam.eta(tally, h), c = spam.slope(tally, s, positive, mean(!positive));
            const double move = eta * c / sigma(), sunk = all.level + eta * spam.l1 / sigma();
            const double level = sunk < MOST ? sunk : MOST;
            const Chance chance(tally);
            for (std::int64_t p = 0; p < row.k; ++p) {
                const std::int32_t j = row.at[p];
                const Coordinate& at = table[j];
                const double x = row.x[p];
                const Real total = rounded<Real>((positive ? at.pos : at.neg) + h * x, chance.of(j));
                put(j, u(at) - move * x, positive ? at.neg : total, positive ? total : at.pos, level);
            }
            if (spam.l1 > 0) sink(level);
            all.sigma = sigma() * spam.left(eta);
            if (all.level > all.bound || all.sigma < LEAST) set_back();
        }

    private:
        static double sign(double v) { return (v > 0) - (v < 0); }

        double sigma() const { return all.sigma == 0 ? 1 : all.sigma; }

        double u(const Coordinate& at) const {
            const double death = at.death, left = std::fabs(death) - all.level;
            return std::copysign(left > 0 ? left : 0, death);  // without a branch: signs cannot be foreseen
        }

        // The mean score of a class under the weights as they are now.
        double mean(bool positive) const {
            const double n = positive ? tally.n_pos : tally.n_neg;
            return n > 0 ? sigma() * (positive ? all.u_pos : all.u_neg) / n : 0;
        }

        // Gives a coordinate its u, of which nothing is left if it dies by `level`, and its class sums.
        void put(std::int32_t j, double u_j, Real neg, Real pos, double level) {
            Coordinate& at = table[j];
            const double before = u(at);
            const Real death = static_cast<Real>(all.level + std::fabs(u_j));
            const bool lives = std::fabs(u_j) > level - all.level && death > level;
            // u as it is kept, after rounding: the products are of the numbers that stand in the table.
            const double after = lives ? std::copysign(death - all.level, u_j) : 0;
            all.u_neg += after * neg - before * at.neg;
            all.u_pos += after * pos - before * at.pos;
            const Coordinate was = at;
            at = {lives ? static_cast<Real>(std::copysign(static_cast<double>(death), u_j)) : Real(0), neg, pos};
            if (spam.l1 == 0) return;
            all.q_neg += sign(after) * neg - sign(before) * was.neg;
            all.q_pos += sign(after) * pos - sign(before) * was.pos;
            if (lives)
                deaths.put(j, death);
            else
                deaths.drop(j);
        }

        // Every u shrinks until T is `level`.
        void sink(double level) {
            while (deaths.due(level)) {
                const std::int32_t j = deaths.next();
                put(j, 0, table[j].neg, table[j].pos, level);
            }
            all.u_neg -= (level - all.level) * all.q_neg;
            all.u_pos -= (level - all.level) * all.q_pos;
            all.level = level;
        }

        // The same weights with sigma = 1 and T = 0; what is kept of all coordinates is summed afresh.
        void set_back() {
            Numbers fresh{};
            double sum = 0;
            const auto renew = [&](std::int32_t j) {
                Coordinate& at = table[j];
                at.death = weight(j);
                fresh.u_neg += static_cast<double>(at.death) * at.neg;
                fresh.u_pos += static_cast<double>(at.death) * at.pos;
                fresh.q_neg += sign(at.death) * at.neg;
                fresh.q_pos += sign(at.death) * at.pos;
                sum += std::fabs(at.death);
                return std::fabs(at.death);
            };
            if (spam.l1 > 0)
                deaths.renew(renew);
            else
                for (std::int32_t j = 0; j < size; ++j) renew(j);
            fresh.sigma = 1;
            fresh.living = all.living;
            fresh.bound = all.living > 0 ? sum / all.living : 0;  // the mean |u|: a larger T would cost it digits
            all = fresh;
        }
    };
};

// The complete gradient.
template <class Real, class Weights>
struct SpamFullRun : AlongMeans<Real, Weights> {
    using Base = AlongMeans<Real, Weights>;
    using Base::mean, Base::rows, Base::tally, Base::weights;
    const SpamSettings spam;

    SpamFullRun(const SpamSettings& settings, const State<Real>& state) : Base(state), spam(settings) {}

    double reach(double s) const { return this->reach_of(spam.reach(s, mean(false), mean(true))); }

    // Returns the length of the step, which the penalty takes too.
    double descend(const Sample<Real>& row, double s, bool positive, double h) {
        weights.add(row, h, positive, Chance(tally));
        if (rows(!positive) == 0) return 0;  // p is 0 or 1, and the gradient 0
        const double eta = spam.eta(tally, h), p = tally.n_pos / (tally.n_pos + tally.n_neg);
        const double own = mean(positive), others = mean(!positive), share = 2 * tally.share_of_others(positive);
        const double v = 2 * p * (1 - p) * (mean(false) - mean(true));
        weights.move(row, -eta * spam.slope(tally, s, positive, others));
        weights.along(positive, -eta * share * own / rows(positive));
        weights.along(!positive, eta * share * s / rows(!positive));
        weights.along(false, eta * v / rows(false));
        weights.along(true, -eta * v / rows(true));
        return eta;
    }
};

struct SpamFull : SpamSettings {
    template <class Real>
    struct Run : SpamFullRun<Real, Span<Real, 2>> {
        static bool fits(const SpamFull&, const State<Real>& state) { return Run::suits(state); }

        Run(const SpamFull& learner, const State<Real>& state) : SpamFullRun<Real, Span<Real, 2>>(learner, state) {}

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double eta = this->descend(row, s, positive, h);
            this->weights.scale(this->spam.left(eta));
            this->weights.settle();
        }
    };
};

struct SpamFullL1 : SpamSettings {
    template <class Real>
    struct Run : SpamFullRun<Real, Dense<Real>> {
        static bool fits(const SpamFullL1&, const State<Real>& state) { return Run::suits(state); }

        Run(const SpamFullL1& learner, const State<Real>& state) : SpamFullRun<Real, Dense<Real>>(learner, state) {}

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            const double eta = this->descend(row, s, positive, h);
            if (eta > 0) this->weights.shrink_all(eta * this->spam.l1, this->spam.left(eta));
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
