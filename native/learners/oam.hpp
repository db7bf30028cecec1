// OAM: each row is compared with a buffer of rows of the other class. Maths: src/rarestream/learners/oam.py.
#pragma once

#include "../splitmix64.hpp"
#include "../updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Oam {
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
        const std::int64_t capacity;  // rows of each class in the buffer: N
        Real* const w;
        std::int32_t *const lengths, *const indices;  // the buffer: N positives, then N negatives
        Real* const values;
        const std::int64_t stride;        // entries reserved for each row of the buffer
        Real *const dense_x, *const tau;  // memory for one step: the row as a dense vector, otherwise zeros; step sizes

        static bool fits(const Oam& rule, const State<Real>& state) {
            const ExtraArray* extra = state.extra;
            const std::int64_t rows = static_cast<std::int64_t>(2 * rule.N);
            return state.columns == 1 && state.row_stride == 1 && scalars_fit<Scalars>(state) && state.n_extra == 5 &&
                   extra[0].shape[0] == rows && extra[1].shape[0] == rows && extra[2].shape[0] == rows &&
                   extra[1].shape[1] == extra[2].shape[1] && extra[3].shape[0] >= state.first + state.size &&
                   2 * extra[4].shape[0] == rows;
        }

        Updater(const Oam& rule, const State<Real>& state)
            : tally(tally_of(state)), own(scalars_of<Scalars>(state)), gradient(rule.gradient), C(rule.C), N(rule.N),
              seed(static_cast<std::uint64_t>(rule.seed)), capacity(static_cast<std::int64_t>(rule.N)), w(state.table),
              lengths(static_cast<std::int32_t*>(state.extra[0].data)),
              indices(static_cast<std::int32_t*>(state.extra[1].data)), values(static_cast<Real*>(state.extra[2].data)),
              stride(state.extra[1].shape[1]), dense_x(static_cast<Real*>(state.extra[3].data)),
              tau(static_cast<Real*>(state.extra[4].data)) {}

        Real weight(std::int32_t j) const { return w[j]; }

        // N pairs, each of them a step of C_t / 2 along x - z at most.
        double max_step(double s) const {
            const double rows = own.rows_pos > own.rows_neg ? own.rows_pos : own.rows_neg;
            return (1 + own.longest) * (1 + N * C_t(rows)) + std::fabs(s);
        }

        void rescale(std::int32_t j, Real factor) {
            if (factor == 0) return;  // first seen now
            w[j] *= factor;
            for (std::int64_t i = 0; i < 2 * capacity; ++i) {
                const std::int64_t p = find(i, j);
                if (p < lengths[i]) values[i * stride + p] *= factor;
            }
        }

        void step(const ScaledRow<Real>& row, double, bool positive, double h) {
            double &rows = positive ? own.rows_pos : own.rows_neg, others = positive ? own.rows_neg : own.rows_pos;
            rows += 1;
            double s = 0, xx = 0;  // s again: `rescale` may have changed weights since the row was scored
            for (std::int64_t p = 0; p < row.k; ++p) {
                const double x = row.x[p];
                s += w[row.at[p]] * x;
                xx += x * x;
            }
            if (std::sqrt(xx) > own.longest) own.longest = std::sqrt(xx);
            const std::int64_t first = positive ? capacity : 0;
            const std::int64_t count = others < N ? static_cast<std::int64_t>(others) : capacity;
            if (count > 0) compare(row, s, xx, positive ? 1 : -1, h * C_t(others) / 2, first, count);
            store_row(row, rows, positive ? 0 : capacity);
        }

    private:
        double C_t(double others) const { return C * (others > N ? others / N : 1); }

        // The position of coordinate j in row i of the buffer, or the row's length.
        std::int64_t find(std::int64_t i, std::int32_t j) const {
            const std::int32_t* at = indices + i * stride;
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

        // Inner products with row z of the buffer.
        struct Products {
            double wz, xz, zz;
        };
        Products products(std::int64_t i) const {
            const std::int32_t* at = indices + i * stride;
            const Real* z = values + i * stride;
            Products sum{0, 0, 0};
            for (std::int64_t p = 0; p < lengths[i]; ++p) {
                const double v = z[p];
                sum.wz += w[at[p]] * v;
                sum.xz += dense_x[at[p]] * v;
                sum.zz += v * v;
            }
            return sum;
        }

        // w -= step z
        void subtract(std::int64_t i, Real step) const {
            const std::int32_t* at = indices + i * stride;
            const Real* z = values + i * stride;
            for (std::int64_t p = 0; p < lengths[i]; ++p) w[at[p]] -= step * z[p];
        }

        // Learns the pairs with the rows first, first + 1, ... of the buffer. The weights are w + y total x: x is added
        // last, once for all pairs.
        void compare(const ScaledRow<Real>& row, double s, double xx, double y, double max_tau, std::int64_t first,
                     std::int64_t count) const {
            for (std::int64_t p = 0; p < row.k; ++p) dense_x[row.at[p]] = row.x[p];
            double total = 0;
            for (std::int64_t i = 0; i < count; ++i) {
                const Products sum = products(first + i);
                const double l = 1 - (y * (s - sum.wz) - total * sum.xz), squared_distance = xx - 2 * sum.xz + sum.zz;
                tau[i] = 0;
                if (!(l > 0 && squared_distance > 0)) continue;
                tau[i] =
                    static_cast<Real>(gradient != 0 || l >= max_tau * squared_distance ? max_tau : l / squared_distance);
                if (gradient != 0) continue;
                subtract(first + i, static_cast<Real>(y) * tau[i]);
                s += y * tau[i] * (xx - sum.xz);
                total += tau[i];
            }
            if (gradient != 0) {
                for (std::int64_t i = 0; i < count; ++i) {
                    if (tau[i] == 0) continue;
                    subtract(first + i, static_cast<Real>(y) * tau[i]);
                    total += tau[i];
                }
            }
            const Real step = static_cast<Real>(y * total);
            for (std::int64_t p = 0; p < row.k; ++p) {
                w[row.at[p]] += step * row.x[p];
                dense_x[row.at[p]] = 0;
            }
        }

        // Stores the n-th row of its class, if chosen, among those that start with `first`.
        void store_row(const ScaledRow<Real>& row, double n, std::int64_t first) const {
            std::int64_t place = static_cast<std::int64_t>(n) - 1;
            if (place >= capacity) {
                const std::uint64_t t = static_cast<std::uint64_t>(own.rows_pos + own.rows_neg);
                place = static_cast<std::int64_t>(splitmix64(seed, t) % static_cast<std::uint64_t>(n));
            }
            if (place >= capacity) return;
            lengths[first + place] = static_cast<std::int32_t>(row.k);
            for (std::int64_t p = 0; p < row.k; ++p) {
                indices[(first + place) * stride + p] = row.at[p];
                values[(first + place) * stride + p] = row.x[p];
            }
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
