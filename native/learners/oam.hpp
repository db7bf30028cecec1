#pragma once

#include "../splitmix64.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Oam {  // maths: src/rarestream/learners/oam.py
    double gradient, C, N, seed;

    struct Scalars {
        double rows_pos, rows_neg;
        double longest;  // |x| of any row so far
    };

    template <class Real>
    struct Updater {
        Tally& tally;
        Scalars& own;
        const double gradient, C, N;
        const std::uint64_t seed;
        const std::int64_t places;  // of each class
        Real* const w;
        std::int32_t *const lengths, *const indices;  // the rows kept: N of the positives, then N of the negatives
        Real* const values;
        const std::int64_t room;      // of a kept row
        Real *const now, *const tau;  // memory for one step: the row spread out, else zeros; and its pairs' steps

        static bool fits(const Oam& rule, const State<Real>& state) {
            const ExtraArray* more = state.extra;
            const std::int64_t rows = static_cast<std::int64_t>(2 * rule.N);
            return state.columns == 1 && state.row_stride == 1 && scalars_fit<Scalars>(state) && state.n_extra == 5 &&
                   more[0].shape[0] == rows && more[1].shape[0] == rows && more[2].shape[0] == rows &&
                   more[1].shape[1] == more[2].shape[1] && more[3].shape[0] >= state.first + state.size &&
                   2 * more[4].shape[0] == rows;
        }

        Updater(const Oam& rule, const State<Real>& state)
            : tally(tally_of(state)), own(scalars_of<Scalars>(state)), gradient(rule.gradient), C(rule.C), N(rule.N),
              seed(static_cast<std::uint64_t>(rule.seed)), places(static_cast<std::int64_t>(rule.N)), w(state.table),
              lengths(static_cast<std::int32_t*>(state.extra[0].data)),
              indices(static_cast<std::int32_t*>(state.extra[1].data)), values(static_cast<Real*>(state.extra[2].data)),
              room(state.extra[1].shape[1]), now(static_cast<Real*>(state.extra[3].data)),
              tau(static_cast<Real*>(state.extra[4].data)) {}

        Real weight(std::int32_t j) const { return w[j]; }

        // N pairs, each of them a step of C_t / 2 along x - z at most.
        double max_step(double s) const {
            const double rows = own.rows_pos > own.rows_neg ? own.rows_pos : own.rows_neg;
            return (1 + own.longest) * (1 + N * weighed(rows)) + std::fabs(s);
        }

        void rescale(std::int32_t j, Real by) {
            if (by == 0) return;  // first seen now
            w[j] *= by;
            for (std::int64_t i = 0; i < 2 * places; ++i) {
                const std::int64_t p = found(i, j);
                if (p < lengths[i]) values[i * room + p] *= by;
            }
        }

        void step(const ScaledRow<Real>& row, double, bool positive, double h) {
            double &rows = positive ? own.rows_pos : own.rows_neg, others = positive ? own.rows_neg : own.rows_pos;
            rows += 1;
            double s = 0, xx = 0;  // s once more: weights may have shrunk since it was scored
            for (std::int64_t p = 0; p < row.k; ++p) {
                const double x = row.x[p];
                s += w[row.at[p]] * x;
                xx += x * x;
            }
            if (std::sqrt(xx) > own.longest) own.longest = std::sqrt(xx);
            const std::int64_t first = positive ? places : 0;
            const std::int64_t count = others < N ? static_cast<std::int64_t>(others) : places;
            if (count > 0) compare(row, s, xx, positive ? 1 : -1, h * weighed(others) / 2, first, count);
            keep(row, rows, positive ? 0 : places);
        }

    private:
        double weighed(double others) const { return C * (others > N ? others / N : 1); }  // C_t

        // Where kept row i has coordinate j, or its length.
        std::int64_t found(std::int64_t i, std::int32_t j) const {
            const std::int32_t* at = indices + i * room;
            std::int64_t low = 0, high = lengths[i];
            while (low < high) {
                const std::int64_t middle = (low + high) / 2;
                if (at[middle] < j)
                    low = middle + 1;
                else
                    high = middle;
            }
            return low < lengths[i] && at[low] == j ? low : lengths[i];
        }

        struct Products {
            double wz, xz, zz;
        };
        Products with(std::int64_t i) const {
            const std::int32_t* at = indices + i * room;
            const Real* z = values + i * room;
            Products sum{0, 0, 0};
            for (std::int64_t p = 0; p < lengths[i]; ++p) {
                const double v = z[p];
                sum.wz += w[at[p]] * v;
                sum.xz += now[at[p]] * v;
                sum.zz += v * v;
            }
            return sum;
        }

        void give(std::int64_t i, Real step) const {
            const std::int32_t* at = indices + i * room;
            const Real* z = values + i * room;
            for (std::int64_t p = 0; p < lengths[i]; ++p) w[at[p]] -= step * z[p];
        }

        // With the kept rows first, first + 1, ... of the other class. The weights are w + y total x: x is added last,
        // once for all pairs.
        void compare(const ScaledRow<Real>& row, double s, double xx, double y, double longest, std::int64_t first,
                     std::int64_t count) const {
            for (std::int64_t p = 0; p < row.k; ++p) now[row.at[p]] = row.x[p];
            double total = 0;
            for (std::int64_t i = 0; i < count; ++i) {
                const Products sum = with(first + i);
                const double l = 1 - (y * (s - sum.wz) - total * sum.xz), squared_distance = xx - 2 * sum.xz + sum.zz;
                tau[i] = 0;
                if (!(l > 0 && squared_distance > 0)) continue;
                tau[i] =
                    static_cast<Real>(gradient != 0 || l >= longest * squared_distance ? longest : l / squared_distance);
                if (gradient != 0) continue;
                give(first + i, static_cast<Real>(y) * tau[i]);
                s += y * tau[i] * (xx - sum.xz);
                total += tau[i];
            }
            if (gradient != 0) {
                for (std::int64_t i = 0; i < count; ++i) {
                    if (tau[i] == 0) continue;
                    give(first + i, static_cast<Real>(y) * tau[i]);
                    total += tau[i];
                }
            }
            const Real step = static_cast<Real>(y * total);
            for (std::int64_t p = 0; p < row.k; ++p) {
                w[row.at[p]] += step * row.x[p];
                now[row.at[p]] = 0;
            }
        }

        // The n-th row of its class, whose places start with `first`.
        void keep(const ScaledRow<Real>& row, double n, std::int64_t first) const {
            std::int64_t place = static_cast<std::int64_t>(n) - 1;
            if (place >= places) {
                const std::uint64_t t = static_cast<std::uint64_t>(own.rows_pos + own.rows_neg);
                place = static_cast<std::int64_t>(splitmix64(seed, t) % static_cast<std::uint64_t>(n));
            }
            if (place >= places) return;
            lengths[first + place] = static_cast<std::int32_t>(row.k);
            for (std::int64_t p = 0; p < row.k; ++p) {
                indices[(first + place) * room + p] = row.at[p];
                values[(first + place) * room + p] = row.x[p];
            }
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
