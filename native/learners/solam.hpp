// SOLAM: primal-dual steps in an l2 ball, and the mean of the iterates. Maths: src/rarestream/learners/solam.py.
#pragma once

#include "../portable_math.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Solam {
    double xi, r, d;  // d: features known at the start, whose first weight is kappa

    template <class Real>
    struct Updater {
        struct Coordinate {
            Real u, past;
            Real epoch;  // in which they were written
        };
        struct Epoch {
            double scale, sum;  // since its end: the factor of u, and the sum of gamma sigma that `past` lacks
        };
        struct Scalars {
            double a, b, alpha;
            double sigma, kappa;            // w = sigma u + kappa [j < d]
            double uu, u_start;             // <u, u>, and the sum of u over the features of the start
            double gammas, sigmas, kappas;  // sums of gamma, of gamma sigma over the epoch, of gamma kappa
            double epoch;
        };
        // The smallest sigma of an epoch: |u| <= r / sigma, so the mean loses as many digits of u as sigma has shrunk.
        static constexpr double MINIMUM = 1.0 / 256;
        static constexpr double TINY = sizeof(Real) == 4 ? 1e-37 : 1e-300;
        static constexpr int EPOCHS = 256;

        const Solam& solam;
        Coordinate* const table;
        const std::int64_t size, started;  // coordinates; how many of them are features of the start
        Epoch* const epochs;
        Scalars& now;
        Tally& tally;
        double per_gammas;

        static bool fits(const Solam&, const State<Real>& state) {
            return state.columns == 3 && state.row_stride == 3 && scalars_fit<Scalars>(state) && state.n_extra == 1 &&
                   state.extra[0].shape[0] == EPOCHS && state.extra[0].shape[1] == 2;
        }

        Updater(const Solam& learner, const State<Real>& state)
            : solam(learner), table(reinterpret_cast<Coordinate*>(state.table)), size(state.size),
              started(static_cast<std::int64_t>(learner.d) - state.first), epochs(static_cast<Epoch*>(state.extra[0].data)),
              now(scalars_of<Scalars>(state)), tally(tally_of(state)) {
            update_per_gammas();
        }

        void update_per_gammas() { per_gammas = now.gammas > 0 ? 1 / now.gammas : 0; }

        Real weight(std::int32_t j) const {
            const Coordinate& at = table[j];
            const Epoch& since = epochs[static_cast<int>(at.epoch)];
            const double sum = (now.sigmas * since.scale + since.sum) * at.u - at.past + (j < started ? now.kappas : 0);
            return static_cast<Real>(sum * per_gammas);
        }

        double rate(double t) const { return t > 0 ? solam.xi / std::sqrt(t) : 0; }

        double max_step(double s) const {
            const double slope = 2 * (1 + std::fabs(s) + 3 * solam.r);
            return (1 + now.gammas) * (1 + solam.r) + slope * rate(tally.n_pos + tally.n_neg);
        }

        // Changes u of a coordinate from `before` to `to`, and the sums over u with it.
        RARESTREAM_ALWAYS_INLINE void set(std::int64_t j, double before, Real to) {
            const double moved = to - before;
            now.uu += moved * (to + before);
            if (j < started) now.u_start += moved;
            table[j].u = to;
        }

        // Converts a coordinate to this epoch. If it is of this epoch already, nothing changes: a branch would cost more.
        RARESTREAM_ALWAYS_INLINE void to_this_epoch(std::int64_t j) {
            Coordinate& at = table[j];
            const Epoch& since = epochs[static_cast<int>(at.epoch)];
            const double u = since.scale * at.u;
            at.past = static_cast<Real>(at.past - since.sum * at.u);
            at.epoch = static_cast<Real>(now.epoch);
            set(j, u, std::fabs(u) < TINY ? 0 : static_cast<Real>(u));
        }
        void to_this_epoch(const ScaledRow<Real>& row) {
            for (std::int64_t p = 0; p < row.k; ++p) to_this_epoch(row.at[p]);
        }

        void rescale(std::int32_t j, Real factor) {
            to_this_epoch(j);
            set(j, table[j].u, factor * table[j].u);
            table[j].past *= factor;
        }

        double norm() const {
            const auto& n = now;
            const double ww = n.sigma * n.sigma * n.uu + n.kappa * (2 * n.sigma * n.u_start + n.kappa * solam.d);
            return ww > 0 ? std::sqrt(ww) : 0;
        }

        // Starts a new epoch: the same weights and the same mean with another sigma. After the last epoch, all coordinates
        // are converted to the first.
        void begin_epoch(double sigma) {
            const double factor = now.sigma / sigma;
            int e = static_cast<int>(now.epoch);
            for (int i = 0; i <= e; ++i) {
                epochs[i].sum += now.sigmas * epochs[i].scale;
                epochs[i].scale *= factor;
                if (epochs[i].scale < 1e-300) epochs[i].scale = 0;
            }
            now.uu *= factor * factor;
            now.u_start *= factor;
            now.sigma = sigma;
            now.sigmas = 0;
            now.epoch = ++e;
            if (e == EPOCHS) {
                now.epoch = e = 0;
                for (std::int64_t j = 0; j < size; ++j)
                    if (table[j].u != 0 || table[j].epoch != 0) to_this_epoch(j);  // untouched memory stays untouched
            }
            epochs[e] = {1, 0};
        }

        void step(const ScaledRow<Real>& row, double, bool positive, double h) {
            double ux = 0, start = 0;
            to_this_epoch(row);
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
            update_per_gammas();
            // Before a step that may leave sigma too small, so that |u| never exceeds the radius.
            const double longest = norm() + std::fabs(gamma * c) * std::sqrt(row.xx);
            if (now.sigma * solam.r < MINIMUM * longest) {
                begin_epoch(longest > solam.r ? longest / solam.r : 1);
                to_this_epoch(row);
            }
            const double step = -gamma * c / now.sigma;
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                const double before = at.u;
                set(row.at[p], before, static_cast<Real>(before + step * row.x[p]));
                at.past = static_cast<Real>(at.past + now.sigmas * (at.u - before));
            }
            const double length = norm();
            if (length > solam.r) {
                now.sigma *= solam.r / length;
                now.kappa *= solam.r / length;
            }
            mean = clipped(mean + gamma * 2 * others * (s - mean), solam.r);
            now.alpha = clipped(now.alpha + gamma * up, 2 * solam.r);
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
