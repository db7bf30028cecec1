// Weights that a row moves everywhere, in O(k): methods that step along class means change every coordinate, but only
// in a few directions that are sums of rows.
//
//     w = sigma (u + M alpha)
//
// A coordinate j holds u_j and M_j1 .. M_jm. sigma, alpha (m), q = M'u (m) and G = M'M (m x m) are numbers, so that
//
//     M'w = sigma (q + G alpha)
//
// needs no pass over the coordinates. A row costs O(k m + m^2): it adds x r' to M while w stays (u gives way), moves w
// by a multiple of x (in u), by a multiple of a column of M (in alpha), by a factor (in sigma). q and G take the
// differences of the numbers as stored, after rounding, so they remain the products of what is in the table.
//
// u and M alpha grow while w, their sum, does not: so u is kept in two parts, of 48 bits together in float32.
//
// Where a penalty changes every weight in every row: dense_weights.hpp, with the same methods.
#pragma once

#include <cstdint>

#include "simd.hpp"
#include "updater.hpp"
#include "stochastic_rounding.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
RARESTREAM_ALWAYS_INLINE F64 wide(const Real* p) {
    if constexpr (sizeof(Real) == 4)
        return widened<double>(load(p));
    else
        return load(p);
}

// <a, b> in double, in the order of eight lanes.
template <class Real>
RARESTREAM_ALWAYS_INLINE double dot(const Real* a, const double* b, int n) {
    double total = 0;
    int c = 0;
    if (n >= LANES) {
        F64 lanes = F64::all(0);
        for (; c + LANES <= n; c += LANES) lanes = lanes + wide(a + c) * load(b + c);
        total = sum(lanes);
    }
    for (; c < n; ++c) total += a[c] * b[c];
    return total;
}

// to += f a
template <class Real>
RARESTREAM_ALWAYS_INLINE void add_to(double* to, double f, const Real* a, int n) {
    int c = 0;
    for (; c + LANES <= n; c += LANES) store(to + c, load(to + c) + F64::all(f) * wide(a + c));
    for (; c < n; ++c) to[c] += f * a[c];
}

// Memory that an Updater owns.
template <class Number>
class Workspace {
    Number* const data_;

public:
    explicit Workspace(std::int64_t size) : data_(new Number[static_cast<std::size_t>(size)]) {}
    ~Workspace() { delete[] data_; }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    operator Number*() const { return data_; }
};

// N zeros to sum into: in registers if N is known, else (0) in memory of the caller.
template <int N>
struct Zeros {
    double at[N] = {};
    Zeros(double*, int) {}
    RARESTREAM_ALWAYS_INLINE operator double*() { return at; }
};
template <>
struct Zeros<0> {
    double* const at;
    Zeros(double* room, int n) : at(room) {
        for (int c = 0; c < n; ++c) at[c] = 0;
    }
    RARESTREAM_ALWAYS_INLINE operator double*() const { return at; }
};

// Columns: m, or 0 when only known at run time.
template <class Real, int Columns>
class LowRankWeights {
    static constexpr double FAR = 1e5, SMALL = 1e-9;  // of the parts of M alpha, where scores are about 1; of sigma

    struct Coordinate {
        Real high, low;  // of u
        Real M[1];       // and those that follow

        double u() const { return double(high) + double(low); }
        double take(double u) {  // returns by how much u really moved
            const double before = this->u();
            high = static_cast<Real>(u);
            low = static_cast<Real>(u - high);
            return this->u() - before;
        }
    };

    Real* const table_;
    const std::int64_t size_;
    const int m_;
    double *const sigma_, *const alpha_, *const q_, *const gram_;
    const Workspace<double> work_;

    int m() const { return Columns ? Columns : m_; }
    Coordinate& at(std::int64_t j) const { return *reinterpret_cast<Coordinate*>(table_ + j * (2 + m())); }
    double sigma() const { return *sigma_ == 0 ? 1 : *sigma_; }  // a new state is all zeros

public:
    // How many numbers it keeps: sigma, alpha, q, G, in this order.
    static constexpr std::int64_t n_scalars(int m = Columns) { return 1 + 2 * m + m * m; }

    static bool fits(const State<Real>& state, int m = Columns) {
        return state.columns == 2 + m && state.row_stride == 2 + m && state.column_stride == 1;
    }

    LowRankWeights(const State<Real>& state, double* numbers, int m = Columns)
        : table_(state.table), size_(state.size), m_(m), sigma_(numbers), alpha_(numbers + 1), q_(alpha_ + m),
          gram_(q_ + m), work_(Columns ? 0 : 4 * m) {}

    Real weight(std::int32_t j) const {
        const Coordinate& c = at(j);
        return static_cast<Real>(sigma() * (c.u() + dot(c.M, alpha_, m())));
    }

    // <M_c, w> and <M_c, M_c>.
    double product(int c) const { return sigma() * (q_[c] + dot(gram_ + c * m(), alpha_, m())); }
    double square(int c) const { return gram_[c * m() + c] > 0 ? gram_[c * m() + c] : 0; }

    // No coordinate's u or M grows by more when x of length 1 is added; with a margin for their squares and sums.
    double max_step() const {
        double far = 1;
        for (int c = 0; c < m(); ++c) far += std::fabs(alpha_[c]);
        return 1000 * far;
    }

    // M_c += h x; w stays.
    void add(const ScaledRow<Real>& row, double h, int c, const RoundingBits& rounding) {
        grow<1>(row, &h, c, 1, rounding);
    }

    // M += x r' in the n columns from `first` on; w stays. G knows nothing of their rounding.
    void add(const ScaledRow<Real>& row, const double* r, int first, int n, const RoundingBits& rounding) {
        grow<0>(row, r, first, n, rounding);
    }

    // w += c x
    void move(const ScaledRow<Real>& row, double c) {
        c /= sigma();
        Zeros<Columns> products(work_, m());
        for (std::int64_t p = 0; p < row.k; ++p) {
            Coordinate& of = at(row.at[p]);
            const double moved = of.take(of.u() + c * row.x[p]);
            add_to(products, moved, of.M, m());
        }
        add_to(q_, 1, &products[0], m());
    }

    // w += by M_c
    void move_along(int c, double by) { alpha_[c] += by / sigma(); }

    // w *= f, which may be as small as can be: a sigma of 0 would be that of a new state.
    void scale(double f) { *sigma_ = (f > 1e-200 ? f : 1e-200) * sigma(); }

    // Scale::max: w_j and M_j times `by`.
    void rescale(std::int32_t j, Real by) {
        Coordinate& of = at(j);
        if (never_seen(of)) return;
        const auto count = [&](double sign) {
            for (int a = 0; a < m(); ++a) {
                q_[a] += sign * of.M[a] * of.u();
                for (int b = 0; b < m(); ++b) gram_[a * m() + b] += sign * of.M[a] * of.M[b];
            }
        };
        count(-1);
        of.take(of.u() * by);
        for (int c = 0; c < m(); ++c) of.M[c] *= by;
        count(1);
    }

    // When numbers have run far: writes w into u, so that alpha = 0 and sigma = 1. A pass over all coordinates, once in
    // FAR rows that move w by 1.
    void settle() {
        double parts = 0;
        for (int c = 0; c < m(); ++c) parts += std::fabs(alpha_[c]) * std::sqrt(square(c));
        if (sigma() >= SMALL && sigma() * parts <= FAR) return;
        for (int c = 0; c < m(); ++c) q_[c] = 0;
        for (std::int64_t j = 0; j < size_; ++j) {
            Coordinate& of = at(j);
            of.take(sigma() * (of.u() + dot(of.M, alpha_, m())));
            for (int c = 0; c < m(); ++c) q_[c] += of.u() * of.M[c];
        }
        for (int c = 0; c < m(); ++c) alpha_[c] = 0;
        *sigma_ = 1;
    }

private:
    bool never_seen(const Coordinate& of) const {
        for (int c = 0; c < m(); ++c)
            if (of.M[c] != 0) return false;
        return of.high == 0;
    }

    template <int N>
    void grow(const ScaledRow<Real>& row, const double* r, int first, int n, const RoundingBits& rounding) {
        if (N) n = N;
        Zeros<N> added(work_, n), of_added(work_ + m(), n);                      // to a coordinate's M; <added, u>
        Zeros<Columns> given(work_ + 2 * m(), m()), of_e(work_ + 3 * m(), m());  // <what u gave, M>; <e, M>
        const double per_r = 1 / r[0];
        double ee = 0;
        for (std::int64_t p = 0; p < row.k; ++p) {
            Coordinate& of = at(row.at[p]);
            const double x = row.x[p], u = of.u();
            const std::uint64_t coin = rounding.bits(row.at[p]);
            for (int c = 0; c < n; ++c) {
                Real& cell = of.M[first + c];
                const double before = cell;
                cell = stochastic_round<Real>(before + x * r[c], coin);
                added[c] = cell - before;
                of_added[c] += added[c] * u;
            }
            const double gave = of.take(u - dot(&added[0], alpha_ + first, n)), e = N == 1 ? added[0] * per_r : x;
            add_to(given, gave, of.M, m());
            add_to(of_e, e, of.M, m());
            ee += e * e;
        }
        add_to(q_ + first, 1, &of_added[0], n);
        add_to(q_, 1, &given[0], m());
        // M is what it was, and e r': so G grew by r (e'M) + (M'e) r' - r (e'e) r' of the new M.
        for (int b = 0; b < m(); ++b) add_to(gram_ + b * m() + first, of_e[b], r, n);
        for (int c = 0; c < n; ++c) {
            double* const of_c = gram_ + (first + c) * m();
            add_to(of_c, r[c], &of_e[0], m());
            add_to(of_c + first, -r[c] * ee, r, n);
        }
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
