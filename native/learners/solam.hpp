#pragma once

#include "../run.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Solam {  // maths: src/rarestream/learners/solam.py
    double xi, r, d;  // d: features of the start

    template <class Real>
    struct Run {
        struct Coordinate {
            Real u, past;
        };
        struct Numbers {
            double a, b, alpha;
            double sigma, kappa;            // w = sigma u + kappa [j < d]
            double uu, u_start;             // <u, u>, and the sum of u over the features of the start
            double gammas, sigmas, kappas;  // sums of gamma, gamma sigma and gamma kappa
        };
        // The least sigma: |u| <= r / sigma, so the mean has lost as many digits of u as sigma has shrunk.
        static constexpr double LEAST = 1.0 / 256;
        static constexpr double TINY = sizeof(Real) == 4 ? 1e-37 : 1e-300;

        const Solam& solam;
        Coordinate* const table;
        const std::int64_t size, started;  // coordinates; how many of them are features of the start
        Numbers& now;
        Tally& tally;
        double per_gammas;

        static bool fits(const Solam&, const State<Real>& state) {
            return state.columns == 2 && state.step == 2 && numbers_fit<Numbers>(state);
        }

        Run(const Solam& learner, const State<Real>& state)
            : solam(learner), table(reinterpret_cast<Coordinate*>(state.table)), size(state.size),
              started(static_cast<std::int64_t>(learner.d) - state.first), now(numbers_of<Numbers>(state)),
              tally(tally_of(state)) {
            count();
        }

        void count() { per_gammas = now.gammas > 0 ? 1 / now.gammas : 0; }

        Real weight(std::int32_t j) const {
            const double sum = now.sigmas * table[j].u - table[j].past + (j < started ? now.kappas : 0);
            return static_cast<Real>(sum * per_gammas);
        }

        double rate(double t) const { return t > 0 ? solam.xi / std::sqrt(t) : 0; }

        double reach(double s) const {
            const double slope = 2 * (1 + std::fabs(s) + 3 * solam.r);
            return (1 + now.gammas) * (1 + solam.r) + slope * rate(tally.n_pos + tally.n_neg);
        }

        // u of a coordinate becomes what it is now; the sums over u follow.
        RARESTREAM_INLINE void put(Coordinate& at, std::int64_t j, Real u) {
            const double moved = double(u) - at.u;
            now.uu += moved * (double(u) + at.u);
            if (j < started) now.u_start += moved;
            at.u = u;
        }

        void shrink(std::int32_t j, Real by) {
            put(table[j], j, by * table[j].u);
            table[j].past *= by;
        }

        double norm() const {
            const auto& n = now;
            const double ww = n.sigma * n.sigma * n.uu + n.kappa * (2 * n.sigma * n.u_start + n.kappa * solam.d);
            return ww > 0 ? std::sqrt(ww) : 0;
        }

        // The same weights and the same mean with another sigma.
        void rescale(double sigma) {
            const double by = now.sigma / sigma;
            double uu[LANES] = {}, start[LANES] = {};
            for (std::int64_t j = 0; j < size; ++j) {
                Coordinate& at = table[j];
                if (at.u == 0) continue;
                at.past = static_cast<Real>(at.past - now.sigmas * at.u);
                at.u = static_cast<Real>(by * at.u);
                if (std::fabs(at.u) < Real(TINY)) at.u = 0;
                uu[j % LANES] += double(at.u) * at.u;
                if (j < started) start[j % LANES] += at.u;
            }
            now.uu = sum(load(uu));
            now.u_start = sum(load(start));
            now.sigma = sigma;
            now.sigmas = 0;
        }

        void step(const Sample<Real>& row, double, bool positive, double h) {
            double ux = 0, start = 0;
            for (std::int64_t p = 0; p < row.k; ++p) {
                ux += double(table[row.at[p]].u) * row.x[p];
                if (row.at[p] < started) start += row.x[p];
            }
            const double s = now.sigma * ux + now.kappa * start, t = tally.n_pos + tally.n_neg;
            const double others = tally.share_of_others(positive), gamma = h * rate(t);
            double& mean = positive ? now.a : now.b;
            const double c = 2 * others * (s - mean - (positive ? 1 + now.alpha : -1 - now.alpha));
            const double up = 2 * others * ((positive ? -s : s) - (1 - others) * now.alpha);
            now.gammas += gamma;
            now.sigmas += gamma * now.sigma;
            now.kappas += gamma * now.kappa;
            count();
            // Ahead of a step that may leave sigma too small, so that u never holds more than the radius.
            const double longest = norm() + std::fabs(gamma * c) * std::sqrt(row.xx);
            if (now.sigma * solam.r < LEAST * longest) rescale(longest > solam.r ? longest / solam.r : 1);
            const double by = -gamma * c / now.sigma;
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                const double before = at.u;
                put(at, row.at[p], static_cast<Real>(before + by * row.x[p]));
                at.past = static_cast<Real>(at.past + now.sigmas * (at.u - before));
            }
            const double length = norm();
            if (length > solam.r) {
                now.sigma *= solam.r / length;
                now.kappa *= solam.r / length;
            }
            mean = bounded(mean + gamma * 2 * others * (s - mean), solam.r);
            now.alpha = bounded(now.alpha + gamma * up, 2 * solam.r);
        }

        static double bounded(double x, double most) { return x > most ? most : x < -most ? -most : x; }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
