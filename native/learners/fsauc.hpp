// FSAUC: stages of primal-dual steps in an l1 ball. Maths: src/rarestream/learners/fsauc.py.
#pragma once

#include "../l1_ball.hpp"
#include "../portable_math.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Fsauc {
    double r, stages, stage_rows;

    template <class Real>
    struct Updater {
        struct Coordinate {
            Real u;       // of the l1 ball: w = sign(u) (|u| - theta)
            Real past;    // sum of w over the stage: past + sign(u) (n |u| - thetas)
            Real centre;  // w at the start of the stage
            Real sum[2];  // of x, over negatives and over positives
        };
        struct Scalars {
            double a, b, alpha;
            double a_centre, b_centre, alpha_centre;  // at the start of the stage
            double eta, width, alpha_width,
                beta;                        // step size, bounds on the distance from the centre, rate of the next eta
            double stage, rows;              // the current stage, and the rows of it learned so far
            double n, thetas, a_sum, b_sum;  // sums over the stage, by importance: of 1, theta, a and b
            double theta, sizes, living;     // of the l1 ball
            double near, far, along;         // |w - centre|^2 of nonzero and of zero weights; <sign(w), centre>
        };
        // Sizes are |w| + theta: with a theta of more than this many times the mean |w|, they lose too many digits of |w|.
        static constexpr double MAXIMUM = 32;
        static constexpr double TINY = sizeof(Real) == 4 ? 1e-37 : 1e-300;

        const Fsauc& fsauc;
        Coordinate* const table;
        const std::int64_t slots;
        Scalars& now;
        Tally& tally;
        L1Ball<Real> ball;
        double per_n;

        static bool fits(const Fsauc&, const State<Real>& state) {
            return state.columns == 5 && state.row_stride == 5 && scalars_fit<Scalars>(state) && state.n_extra == 3;
        }

        Updater(const Fsauc& learner, const State<Real>& state)
            : fsauc(learner), table(reinterpret_cast<Coordinate*>(state.table)), slots(state.size),
              now(scalars_of<Scalars>(state)), tally(tally_of(state)), ball{static_cast<std::int32_t*>(state.extra[0].data),
                                                                            static_cast<Real*>(state.extra[1].data),
                                                                            static_cast<std::int32_t*>(state.extra[2].data),
                                                                            now.theta,
                                                                            now.sizes,
                                                                            now.living} {
            update_per_n();
        }

        void update_per_n() { per_n = now.n > 0 ? 1 / now.n : 0; }

        static double iterate(Real u, double theta) { return u > 0 ? u - theta : u < 0 ? u + theta : 0; }

        // The part of a coordinate's sum of w over the stage that its u represents.
        double part(Real u, double thetas) const { return u > 0 ? now.n * u - thetas : u < 0 ? now.n * u + thetas : 0; }

        Real weight(std::int32_t j) const {
            const Coordinate& at = table[j];
            return now.n > 0 ? static_cast<Real>((at.past + part(at.u, now.thetas)) * per_n) : at.centre;
        }

        double max_step(double s) const { return (1 + now.n) * (1 + fsauc.r) + now.eta * (1 + std::fabs(s) + 4 * fsauc.r); }

        // Adds a coordinate's share of near, far and along: with sign -1 before it changes, with sign 1 after.
        RARESTREAM_ALWAYS_INLINE void add_distance(const Coordinate& at, double sign) {
            const double centre = at.centre;
            if (at.u == 0) {
                now.far += sign * centre * centre;
            } else {
                const double away = iterate(at.u, now.theta) - centre;
                now.near += sign * away * away;
                now.along += at.u > 0 ? sign * centre : -sign * centre;
            }
        }

        RARESTREAM_ALWAYS_INLINE void set_weight(std::int32_t j, double w) {
            const Real size = static_cast<Real>(std::fabs(w) + now.theta);
            const bool nonzero = size > now.theta && std::fabs(w) > TINY;
            table[j].u = nonzero ? (w > 0 ? size : -size) : 0;
            ball.set(j, nonzero ? size : 0);
        }

        void rescale(std::int32_t j, Real factor) {
            Coordinate& at = table[j];
            const double past = at.past + part(at.u, now.thetas);
            add_distance(at, -1);
            set_weight(j, factor * iterate(at.u, now.theta));
            at.past = static_cast<Real>(factor * past - part(at.u, now.thetas));
            at.centre *= factor;
            add_distance(at, 1);
            for (Real& sum : at.sum) sum *= factor;
        }

        // Sets theta and its sum to 0. `restore` must follow for every coordinate, with the values it had before.
        void clear_theta() { now.theta = now.thetas = now.sizes = now.living = now.near = now.along = 0; }

        void restore(std::int32_t j, double w, double past) {
            Coordinate& at = table[j];
            ball.place[j] = 0;
            set_weight(j, w);
            at.past = static_cast<Real>(past - part(at.u, 0));
            add_distance(at, 1);
        }

        // The same weights with theta = 0.
        void rebase() {
            const std::int64_t living = static_cast<std::int64_t>(now.living);
            const double theta = now.theta, thetas = now.thetas;
            clear_theta();
            for (std::int64_t p = 0; p < living; ++p) {
                const std::int32_t j = ball.at[p];
                const Real u = table[j].u;
                restore(j, iterate(u, theta), table[j].past + part(u, thetas));
            }
        }

        // Moves (w, a, b) towards the centre: the distance is multiplied by `factor`.
        void pull_to_centre(double factor) {
            const double theta = now.theta, thetas = now.thetas;
            clear_theta();
            now.far = 0;
            for (std::int32_t j = 0; j < slots; ++j) {
                const Coordinate at = table[j];
                if (at.u == 0 && at.centre == 0) continue;
                restore(j, at.centre + factor * (iterate(at.u, theta) - at.centre), at.past + part(at.u, thetas));
            }
            now.a = now.a_centre + factor * (now.a - now.a_centre);
            now.b = now.b_centre + factor * (now.b - now.b_centre);
        }

        // w += c x, projected on the ball.
        void move(const ScaledRow<Real>& row, double c) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                row.scratch[p] = static_cast<Real>(at.past + part(at.u, now.thetas));
                add_distance(at, -1);
                set_weight(row.at[p], iterate(at.u, now.theta) + c * row.x[p]);
                add_distance(at, 1);
            }
            const double theta = now.theta;
            const auto prefetch = [&](std::int32_t j) { __builtin_prefetch(table + j, 1); };
            ball.project(fsauc.r, prefetch, [&](std::int32_t j) {
                Coordinate& at = table[j];
                add_distance(at, -1);
                at.past = static_cast<Real>(at.past + part(at.u, now.thetas));
                at.u = 0;
                add_distance(at, 1);
            });
            const double raised = now.theta - theta, excess = now.sizes - now.living * theta;
            now.near += raised * (now.living * raised - 2 * (excess - now.along));
            if (now.living == 0 || !(now.living * now.theta <= MAXIMUM * fsauc.r)) rebase();
            // Last, and from the sum before the row: a weight that the row's own threshold makes zero adds nothing to it.
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                at.past = static_cast<Real>(row.scratch[p] - part(at.u, now.thetas));
            }
        }

        void step(const ScaledRow<Real>& row, double, bool positive, double h) {
            double s = 0;
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                __builtin_prefetch(ball.place + row.at[p], 1);
                s += iterate(at.u, now.theta) * row.x[p];
                at.sum[positive] += static_cast<Real>(h) * row.x[p];
            }
            const double others = tally.share_of_others(positive), eta = h * now.eta, r = fsauc.r;
            double& mean = positive ? now.a : now.b;
            const double c = others * (s - mean - (positive ? 1 + now.alpha : -1 - now.alpha));
            const double up = others * ((positive ? -s : s) - (1 - others) * now.alpha);
            if (c != 0) move(row, -eta * c);
            mean = clipped(mean + eta * others * (s - mean), r);
            now.alpha = clipped(now.alpha + eta * up, 2 * r);
            const double a = now.a - now.a_centre, b = now.b - now.b_centre;
            const double away = now.near + now.far + a * a + b * b;
            if (away > now.width * now.width) pull_to_centre(now.width / std::sqrt(away));
            now.alpha = now.alpha_centre + clipped(now.alpha - now.alpha_centre, now.alpha_width);
            now.n += h;
            now.thetas += h * now.theta;
            now.a_sum += h * now.a;
            now.b_sum += h * now.b;
            if (++now.rows == fsauc.stage_rows && now.stage < fsauc.stages) next_stage();
            update_per_n();
        }

        // Starts again from the mean of the stage, with shorter steps and tighter bounds.
        void next_stage() {
            update_per_n();
            const double n_neg = tally.n_neg > 0 ? tally.n_neg : 1, n_pos = tally.n_pos > 0 ? tally.n_pos : 1;
            double apart = 0;  // of the class means of x, along the weights
            for (std::int32_t j = 0; j < slots; ++j) {
                Coordinate& at = table[j];
                if (at.u == 0 && at.past == 0 && at.centre == 0) continue;
                at.centre = weight(j);
                apart += at.centre * (at.sum[0] / n_neg - at.sum[1] / n_pos);
            }
            now.a = now.a_centre = now.a_sum * per_n;
            now.b = now.b_centre = now.b_sum * per_n;
            now.alpha = now.alpha_centre = apart;
            clear_theta();
            now.n = now.a_sum = now.b_sum = now.far = now.rows = 0;
            for (std::int32_t j = 0; j < slots; ++j)
                if (table[j].u != 0 || table[j].centre != 0) restore(j, table[j].centre, 0);
            ++now.stage;

            const double p = tally.n_pos / (tally.n_pos + tally.n_neg), q = p < 1 - p ? p : 1 - p;
            const double n0 = fsauc.stage_rows, L = 4.787491742782046;  // log(12 / 0.1)
            const double few = q * n0 - std::sqrt(2 * n0 * L), rare = q - std::sqrt(2 * L / n0);
            const double k = 2 + std::sqrt(2 * L), beta = rare > 0 ? 9 + 288 * k * k / rare : 1e7;
            now.width /= 2;
            now.alpha_width =
                few > 0 ? 2 * std::sqrt(2.0) * now.width + 12 * std::sqrt(2.0) * k * fsauc.r / std::sqrt(few) : 1e7;
            const double slower = std::sqrt(beta / now.beta) / 2;
            if (slower < 1) now.eta *= slower;
            now.beta = beta;
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
