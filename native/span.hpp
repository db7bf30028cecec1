// Weights that a row moves everywhere, in O(k): methods that step along class means change every coordinate, but only in a
// few directions that are sums of rows.
//
//     w = sigma (u + M alpha)
//
// A coordinate j holds u_j and M_j1 .. M_jm. sigma, alpha (m), q = M' u (m) and G = M' M (m x m) are numbers, so that
//
//     M' w = sigma (q + G alpha)
//
// needs no pass over the coordinates. A row costs O(k m + m^2): it adds x r' to M while w stays (u gives way), moves w by a
// multiple of x (in u), by M beta (in alpha), by a factor (in sigma). q and G take the differences of the numbers as stored,
// after rounding, so they remain the products of what stands in the table.
//
// `fold` writes w into u: alpha = 0, sigma = 1. It passes over all coordinates; `settle` does it when u and M alpha have
// grown so far apart from w that their difference loses digits. The same pass is a dense proximal step: soft(w, threshold) *
// factor, for methods whose penalty has to look at every weight in every row.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "run.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// <a, b> in double, in the order of eight lanes.
template <class Real>
RARESTREAM_INLINE double dot(const Real* a, const double* b, int n) {
    double lanes[LANES] = {}, rest = 0;
    int c = 0;
    for (; c + LANES <= n; c += LANES)
        for (int l = 0; l < LANES; ++l) lanes[l] += a[c + l] * b[c + l];
    for (; c < n; ++c) rest += a[c] * b[c];
    return n < LANES ? rest : sum(load(lanes)) + rest;
}

// Zeros to work with, for the life of a Run.
class Workspace {
    double* const data_;

public:
    explicit Workspace(std::int64_t size) : data_(new double[static_cast<std::size_t>(size)]()) {}
    ~Workspace() { delete[] data_; }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    operator double*() const { return data_; }
};

// Columns: m, or 0 when only known at run time. The table's first column is u, the next m are M: side by side for steps in
// O(k), or (m known) one after the other for a fold in every row.
template <class Real, int Columns>
class Span {
    static constexpr double FAR = 4096;  // of |M alpha|, where scores are about 1: float32 still keeps three decimals
    static constexpr double SMALL = 1e-9;

    Real* const table_;
    const std::int64_t size_, step_, apart_;
    const int m_;
    double *const sigma_, *const alpha_, *const q_, *const gram_;
    const Workspace work_;

    int m() const { return Columns ? Columns : m_; }
    std::int64_t apart() const { return Columns ? apart_ : 1; }
    Real* at(std::int32_t j) const { return table_ + j * step_; }
    double sigma() const { return *sigma_ == 0 ? 1 : *sigma_; }  // a new state is all zeros

    // A coordinate's row of M: where it stands if side by side, else copied to `room`.
    const Real* row_of(const Real* u, Real* room) const {
        if (apart() == 1) return u + 1;
        for (int c = 0; c < m(); ++c) room[c] = u[(1 + c) * apart()];
        return room;
    }

public:
    // How many numbers it keeps: sigma, alpha, q, G, in this order.
    static constexpr std::int64_t numbers(int m) { return 1 + 2 * m + m * m; }

    static bool fits(const State<Real>& state, int m) {
        return state.columns == 1 + m && (state.apart == 1 || (Columns && state.step == 1));
    }

    Span(const State<Real>& state, double* numbers, int m)
        : table_(state.table), size_(state.size), step_(state.step), apart_(state.apart), m_(m), sigma_(numbers),
          alpha_(numbers + 1), q_(alpha_ + m), gram_(q_ + m), work_(2 * m) {}

    double u(std::int32_t j) const { return *at(j); }

    Real weight(std::int32_t j) const {
        Real room[Columns + 1];
        const Real* u = at(j);
        return static_cast<Real>(sigma() * (*u + dot(row_of(u, room), alpha_, m())));
    }

    // <M_c, w> and <M_c, M_c>.
    double product(int c) const { return sigma() * (q_[c] + dot(gram_ + c * m(), alpha_, m())); }
    double square(int c) const { return gram_[c * m() + c]; }

    // M += x r' in the n columns from `first` on; w stays. G is exact for one column; for more it takes the rounding of
    // the first for that of all.
    void add(const Sample<Real>& row, const double* r, int first, int n) {
        double *const added = work_, *const products = added + m();  // to this coordinate's M; of e and M
        double ee = 0;
        for (int b = 0; b < m(); ++b) products[b] = 0;
        for (std::int64_t p = 0; p < row.k; ++p) {
            Real *const u = at(row.at[p]), *const M = u + apart(), *const grows = M + first * apart();
            const double x = row.x[p], before = *u;
            for (int c = 0; c < n; ++c) {
                Real& cell = grows[c * apart()];
                const double old = cell;
                cell = static_cast<Real>(old + x * r[c]);
                added[c] = cell - old;
                q_[first + c] += added[c] * before;
            }
            *u = static_cast<Real>(before - dot(added, alpha_ + first, n));
            const double gave = *u - before, e = added[0] / r[0];
            for (int b = 0; b < m(); ++b) {
                q_[b] += gave * M[b * apart()];
                products[b] += e * M[b * apart()];
            }
            ee += e * e;
        }
        // G was (M - e r')' (M - e r') of the M that is now.
        for (int c = 0; c < n; ++c) products[first + c] -= ee * r[c] / 2;
        for (int c = 0; c < n; ++c)
            for (int b = 0; b < m(); ++b) {
                gram_[(first + c) * m() + b] += r[c] * products[b];
                gram_[b * m() + first + c] += r[c] * products[b];
            }
    }

    // w += c x
    void move(const Sample<Real>& row, double c) {
        c /= sigma();
        for (std::int64_t p = 0; p < row.k; ++p) {
            Real *const u = at(row.at[p]), *const M = u + apart();
            const double before = *u;
            *u = static_cast<Real>(before + c * row.x[p]);
            const double moved = *u - before;
            for (int b = 0; b < m(); ++b) q_[b] += moved * M[b * apart()];
        }
    }

    // w += by M_c
    void along(int c, double by) { alpha_[c] += by / sigma(); }

    // w *= f
    void scale(double f) { *sigma_ = f * sigma(); }

    // Scale::max: w_j and M_j times `by`.
    void shrink(std::int32_t j, Real by) {
        Real *const u = at(j), *const M = u + apart();
        const auto count = [&](double sign) {
            for (int a = 0; a < m(); ++a) {
                const double Ma = sign * M[a * apart()];
                q_[a] += Ma * *u;
                for (int b = 0; b < m(); ++b) gram_[a * m() + b] += Ma * M[b * apart()];
            }
        };
        count(-1);
        for (int c = -1; c < m(); ++c) M[c * apart()] *= by;
        count(1);
    }

    // w <- soft(w, threshold) * factor, all of it in u.
    void fold(double threshold = 0, double factor = 1) {
        const Real lam = static_cast<Real>(threshold), f = static_cast<Real>(factor);
        for (int c = 0; c < m(); ++c) q_[c] = 0;
        if (apart() == 1) {
            for (std::int64_t j = 0; j < size_; ++j) {
                Real *const u = table_ + j * step_, *const M = u + 1;
                *u = soft(weight(static_cast<std::int32_t>(j)), lam) * f;
                for (int c = 0; c < m(); ++c) q_[c] += double(*u) * M[c];
            }
        } else {
            fold_columns(lam, f);
        }
        *sigma_ = 1;
        for (int c = 0; c < m(); ++c) alpha_[c] = 0;
    }

    void settle() {
        double squares = 0;
        for (int c = 0; c < m(); ++c) squares += alpha_[c] * dot(gram_ + c * m(), alpha_, m());
        if (sigma() < SMALL || sigma() * sigma() * squares > FAR * FAR) fold();
    }

private:
    static Real soft(Real w, Real lam) { return w > lam ? w - lam : w < -lam ? w + lam : 0; }

    // One pass that reads every column and writes w once. Products are summed in Real over short runs, which start at
    // fixed coordinates: room to spare, being zeros, changes no bit.
    void fold_columns(Real lam, Real factor) {
        using V = Lanes<Real>;
        constexpr std::int64_t RUN = 64 * LANES;
        const Real scale = static_cast<Real>(sigma());
        Real by[Columns + 1];
        for (int c = 0; c < Columns; ++c) by[c] = static_cast<Real>(sigma() * alpha_[c]);
        const auto folded = [&](const V& u, const V* M) RARESTREAM_MELT {
            V w = scale * u;
            for (int c = 0; c < Columns; ++c) w = w + by[c] * M[c];
            return factor * rarestream::soft(w, lam);
        };
        for (std::int64_t start = 0; start < size_; start += RUN) {
            const std::int64_t stop = start + RUN < size_ ? start + RUN : size_;
            V M[Columns + 1], products[Columns + 1];
            for (int c = 0; c < Columns; ++c) products[c] = V::all(0);
            std::int64_t j = start;
            for (; j + LANES <= stop; j += LANES) {
                for (int c = 0; c < Columns; ++c) M[c] = load(table_ + (1 + c) * apart_ + j);
                const V w = folded(load(table_ + j), M);
                store(table_ + j, w);
                for (int c = 0; c < Columns; ++c) products[c] = products[c] + w * M[c];
            }
            if (j < stop) {
                Real lanes[LANES] = {};
                const auto some = [&](const Real* from) {
                    for (std::int64_t l = 0; j + l < stop; ++l) lanes[l] = from[j + l];
                    return load(lanes);
                };
                for (int c = 0; c < Columns; ++c) M[c] = some(table_ + (1 + c) * apart_);
                const V w = folded(some(table_), M);
                store(lanes, w);
                for (std::int64_t l = 0; j + l < stop; ++l) table_[j + l] = lanes[l];
                for (int c = 0; c < Columns; ++c) products[c] = products[c] + w * M[c];
            }
            for (int c = 0; c < Columns; ++c) q_[c] += sum(products[c]);
        }
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
