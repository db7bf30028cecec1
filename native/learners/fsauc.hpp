#pragma once

#include "../l1_ball.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Fsauc {  // maths: src/rarestream/learners/fsauc.py
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
            double eta, width, alpha_width, beta;  // step, bounds on the way from the centre, and the rate of the next eta
            double stage, rows;                    // which, and how many rows of it were learned
            double n, thetas, a_sum, b_sum;        // sums over the stage, by importance: of 1, theta, a and b
            double theta, sizes, living;           // of the l1 ball
            double near, far, along;               // |w - centre|^2 of nonzero and of zero weights; <sign(w), centre>
        };
        // Sizes are |w| + theta: beyond this many times the mean |w|, theta would cost |w| too many digits.
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
            count();
        }

        void count() { per_n = now.n > 0 ? 1 / now.n : 0; }

        static double iterate(Real u, double theta) { return u > 0 ? u - theta : u < 0 ? u + theta : 0; }

        // The part of a coordinate's sum of w over the stage that its u represents.
        double part(Real u, double thetas) const { return u > 0 ? now.n * u - thetas : u < 0 ? now.n * u + thetas : 0; }

        Real weight(std::int32_t j) const {
            const Coordinate& at = table[j];
            return now.n > 0 ? static_cast<Real>((at.past + part(at.u, now.thetas)) * per_n) : at.centre;
        }

        double max_step(double s) const { return (1 + now.n) * (1 + fsauc.r) + now.eta * (1 + std::fabs(s) + 4 * fsauc.r); }

        // A coordinate's share of near, far and along: subtracted (by -1) before it changes, added (by 1) after.
        RARESTREAM_ALWAYS_INLINE void weigh(const Coordinate& at, double by) {
            const double centre = at.centre;
            if (at.u == 0) {
                now.far += by * centre * centre;
            } else {
                const double away = iterate(at.u, now.theta) - centre;
                now.near += by * away * away;
                now.along += at.u > 0 ? by * centre : -by * centre;
            }
        }

        RARESTREAM_ALWAYS_INLINE void put(std::int32_t j, double w) {
            const Real size = static_cast<Real>(std::fabs(w) + now.theta);
            const bool lives = size > now.theta && std::fabs(w) > TINY;
            table[j].u = lives ? (w > 0 ? size : -size) : 0;
            ball.put(j, lives ? size : 0);
        }

        void rescale(std::int32_t j, Real by) {
            Coordinate& at = table[j];
            const double past = at.past + part(at.u, now.thetas);
            weigh(at, -1);
            put(j, by * iterate(at.u, now.theta));
            at.past = static_cast<Real>(by * past - part(at.u, now.thetas));
            at.centre *= by;
            weigh(at, 1);
            for (Real& sum : at.sum) sum *= by;
        }

        // Sets theta and its sum to 0. `settle` must follow for every coordinate, to move what they represented into it.
        void begin() { now.theta = now.thetas = now.sizes = now.living = now.near = now.along = 0; }

        void settle(std::int32_t j, double w, double past) {
            Coordinate& at = table[j];
            ball.place[j] = 0;
            put(j, w);
            at.past = static_cast<Real>(past - part(at.u, 0));
            weigh(at, 1);
        }

        void rebase() {
            const std::int64_t living = static_cast<std::int64_t>(now.living);
            const double theta = now.theta, thetas = now.thetas;
            begin();
            for (std::int64_t p = 0; p < living; ++p) {
                const std::int32_t j = ball.at[p];
                const Real u = table[j].u;
                settle(j, iterate(u, theta), table[j].past + part(u, thetas));
            }
        }

        // Draws (w, a, b) towards the centre.
        void draw(double by) {
            const double theta = now.theta, thetas = now.thetas;
            begin();
            now.far = 0;
            for (std::int32_t j = 0; j < slots; ++j) {
                const Coordinate at = table[j];
                if (at.u == 0 && at.centre == 0) continue;
                settle(j, at.centre + by * (iterate(at.u, theta) - at.centre), at.past + part(at.u, thetas));
            }
            now.a = now.a_centre + by * (now.a - now.a_centre);
            now.b = now.b_centre + by * (now.b - now.b_centre);
        }

        void move(const ScaledRow<Real>& row, double by) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                Coordinate& at = table[row.at[p]];
                row.scratch[p] = static_cast<Real>(at.past + part(at.u, now.thetas));
                weigh(at, -1);
                put(row.at[p], iterate(at.u, now.theta) + by * row.x[p]);
                weigh(at, 1);
            }
            const double theta = now.theta;
            const auto look = [&](std::int32_t j) { __builtin_prefetch(table + j, 1); };
            ball.project(fsauc.r, look, [&](std::int32_t j) {
                Coordinate& at = table[j];
                weigh(at, -1);
                at.past = static_cast<Real>(at.past + part(at.u, now.thetas));
                at.u = 0;
                weigh(at, 1);
            });
            const double more = now.theta - theta, excess = now.sizes - now.living * theta;
            now.near += more * (now.living * more - 2 * (excess - now.along));
            if (now.living == 0 || !(now.living * now.theta <= MAXIMUM * fsauc.r)) rebase();
            // Last, and from what it was before the row: a weight that the row's own threshold makes zero has no part in
            // the sum.
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
            mean = bounded(mean + eta * others * (s - mean), r);
            now.alpha = bounded(now.alpha + eta * up, 2 * r);
            const double a = now.a - now.a_centre, b = now.b - now.b_centre;
            const double away = now.near + now.far + a * a + b * b;
            if (away > now.width * now.width) draw(now.width / std::sqrt(away));
            now.alpha = now.alpha_centre + bounded(now.alpha - now.alpha_centre, now.alpha_width);
            now.n += h;
            now.thetas += h * now.theta;
            now.a_sum += h * now.a;
            now.b_sum += h * now.b;
            if (++now.rows == fsauc.stage_rows && now.stage < fsauc.stages) next_stage();
            count();
        }

        // Starts again from the mean of the stage, with shorter steps and tighter bounds.
        void next_stage() {
            count();
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
            begin();
            now.n = now.a_sum = now.b_sum = now.far = now.rows = 0;
            for (std::int32_t j = 0; j < slots; ++j)
                if (table[j].u != 0 || table[j].centre != 0) settle(j, table[j].centre, 0);
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

        static double bounded(double x, double most) { return x > most ? most : x < -most ? -most : x; }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
