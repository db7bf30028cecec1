#pragma once

#include "../deaths.hpp"
#include "../run.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Spam {  // the sparse gradient; maths: src/rarestream/learners/spam.py
    double xi, l1, l2;

    struct Numbers {
        double sigma;         // w = sigma u
        double level;         // T: how far every u has shrunk
        double living;        // how many u are not zero, where l1 > 0
        double bound;         // T is set back to 0 beyond it
        double u_pos, u_neg;  // <u, S+> and <u, S->
        double q_pos, q_neg;  // <sign u, S+> and <sign u, S->: what those lose when T grows by one
    };

    template <class Real>
    struct Run {
        struct Coordinate {
            Real death;     // sign(u) (T + |u|): the level at which u becomes zero; 0, or |death| <= T: it is
            Real pos, neg;  // S+ and S-
        };
        static constexpr double LEAST = 1e-12;                            // sigma
        static constexpr double MOST = sizeof(Real) == 4 ? 1e35 : 1e300;  // T: beyond any u

        const Spam of;
        Tally& tally;
        Numbers& all;
        Coordinate* const table;
        const std::int64_t size;
        Deaths<Real> deaths;

        static bool fits(const Spam& of, const State<Real>& state) {
            return state.columns == 3 && state.step == 3 && state.apart == 1 && numbers_fit<Numbers>(state) &&
                   (of.l1 > 0 ? Deaths<Real>::fits(state) : state.arrays == 0);
        }
        Run(const Spam& spam, const State<Real>& state)
            : of(spam), tally(tally_of(state)), all(numbers_of<Numbers>(state)),
              table(reinterpret_cast<Coordinate*>(state.table)), size(state.size), deaths(state, all.living) {}

        Real weight(std::int32_t j) const { return static_cast<Real>(all.sigma * value(table[j])); }

        double reach(double s) const {
            return (1 + of.xi) * 2 * (1 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false)));
        }

        void shrink(std::int32_t j, Real by) {
            const Coordinate& at = table[j];
            put(j, by * value(at), by * at.pos, by * at.neg, all.level);
        }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            double eta = of.xi * (h / std::sqrt(tally.n_pos + tally.n_neg));
            if (!(eta < 1e250)) eta = 1e250;  // of an empty row: others are refused before
            const double c = 2 * tally.share_of_others(positive) * (s - mean(!positive) - (positive ? 1 : -1));
            const double move = eta * c / all.sigma, shrunk = all.level + eta * of.l1 / all.sigma;
            const double level = shrunk < MOST ? shrunk : MOST;
            for (std::int64_t p = 0; p < row.k; ++p) {
                const Coordinate& at = table[row.at[p]];
                const double x = row.x[p];
                put(row.at[p], value(at) - move * x, static_cast<Real>(at.pos + (positive ? h * x : 0)),
                    static_cast<Real>(at.neg + (positive ? 0 : h * x)), level);
            }
            if (of.l1 > 0) sink(level);
            all.sigma /= 1 + eta * of.l2;
            if (all.level > all.bound || all.sigma < LEAST) set_back();
        }

    private:
        static double sign(double v) { return (v > 0) - (v < 0); }

        double value(const Coordinate& at) const {
            const double left = std::fabs(at.death) - all.level;
            return left > 0 ? (at.death > 0 ? left : -left) : 0;
        }

        // The mean score of a class under the weights as they are.
        double mean(bool positive) const {
            const double n = positive ? tally.n_pos : tally.n_neg;
            return n > 0 ? all.sigma * (positive ? all.u_pos : all.u_neg) / n : 0;
        }

        // Gives a coordinate the value u and its class sums. One that would be dead at `level` is so at once.
        void put(std::int32_t j, double u, Real pos, Real neg, double level) {
            Coordinate& at = table[j];
            const double before = value(at);
            const Real death = static_cast<Real>(all.level + std::fabs(u));
            const bool lives = death > level;
            // As it is kept after rounding: the products must be those of the numbers that are there.
            const double after = lives ? (u > 0 ? death - all.level : all.level - death) : 0;
            all.u_pos += after * pos - before * at.pos;
            all.u_neg += after * neg - before * at.neg;
            all.q_pos += sign(after) * pos - sign(before) * at.pos;
            all.q_neg += sign(after) * neg - sign(before) * at.neg;
            at = {lives ? (u > 0 ? death : -death) : Real(0), pos, neg};
            if (of.l1 == 0) return;
            if (lives) deaths.put(j, death);
            else deaths.drop(j);
        }

        // Every u shrinks until T is `level`.
        void sink(double level) {
            while (deaths.due(level)) {
                const std::int32_t j = deaths.next();
                deaths.drop(j);
                Coordinate& at = table[j];
                const double last = value(at);
                all.u_pos -= last * at.pos;
                all.u_neg -= last * at.neg;
                all.q_pos -= sign(last) * at.pos;
                all.q_neg -= sign(last) * at.neg;
                at.death = 0;
            }
            all.u_pos -= (level - all.level) * all.q_pos;
            all.u_neg -= (level - all.level) * all.q_neg;
            all.level = level;
        }

        // The same weights with sigma = 1 and T = 0, and what is kept of all coordinates summed afresh.
        void set_back() {
            Numbers fresh{1, 0, all.living, 0, 0, 0, 0, 0};
            double sum = 0;
            const auto renew = [&](std::int32_t j) {
                Coordinate& at = table[j];
                at.death = weight(j);
                fresh.u_pos += static_cast<double>(at.death) * at.pos;
                fresh.u_neg += static_cast<double>(at.death) * at.neg;
                fresh.q_pos += sign(at.death) * at.pos;
                fresh.q_neg += sign(at.death) * at.neg;
                sum += std::fabs(at.death);
                return std::fabs(at.death);
            };
            if (of.l1 > 0) {
                deaths.renew(renew);
                fresh.living = all.living;
                fresh.bound = all.living > 0 ? sum / all.living : 0;  // the mean |u|: T must not drown the typical weight
            } else {
                for (std::int32_t j = 0; j < size; ++j) renew(j);
            }
            all = fresh;
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
