// Weights of which every row changes all coordinates, in O(k): learners that step along class means change every
// coordinate, but only in a few directions that are sums of rows.
//
//     w = sigma (u + M alpha)
//
// A coordinate j holds u_j and M_j1 .. M_jm. sigma, alpha (m), q = M'u (m) and G = M'M (m x m) are numbers, so that
//
//     M'w = sigma (q + G alpha)
//
// needs no pass over the coordinates. A row costs O(k m + m^2). It adds x r' to M, and changes u so that w stays the same.
// It adds to w a multiple of x (in u), adds a multiple of a column of M (in alpha), and multiplies w (in sigma). q and G
// are updated by the differences of the numbers as stored, after rounding, so they remain the products of what is in the
// table.
//
// u and M alpha may be much larger than w, their sum: so u is stored in two parts, in float32 of 48 bits together.
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

// N zeros to sum into: in registers if N is known at compile time, else (N = 0) in memory of the caller.
template <int N>
struct Zeros {
    double at[N] = {};
    Zeros(double*, int) {}
    RARESTREAM_ALWAYS_INLINE operator double*() { return at; }
};
template <>
struct Zeros<0> {
    double* const at;
    Zeros(double* memory, int n) : at(memory) {
        for (int c = 0; c < n; ++c) at[c] = 0;
    }
    RARESTREAM_ALWAYS_INLINE operator double*() const { return at; }
};

// Columns: m, or 0 when only known at run time.
template <class Real, int Columns>
class LowRankWeights {
    static constexpr double MAX_PARTS = 1e5, MIN_SIGMA = 1e-9;  // parts of M alpha, where scores are about 1

    struct Coordinate {
        Real high, low;  // of u
        Real M[1];       // and those that follow

        double u() const { return double(high) + double(low); }
        double set_u(double u) {  // returns by how much u changed, after rounding
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
    // The number of scalars in the state: sigma, alpha, q, G, in this order.
    static constexpr std::int64_t n_scalars(int m = Columns) { return 1 + 2 * m + m * m; }

    static bool fits(const State<Real>& state, int m = Columns) {
        return state.columns == 2 + m && state.row_stride == 2 + m && state.column_stride == 1;
    }

    LowRankWeights(const State<Real>& state, double* scalars, int m = Columns)
        : table_(state.table), size_(state.size), m_(m), sigma_(scalars), alpha_(scalars + 1), q_(alpha_ + m),
          gram_(q_ + m), work_(Columns ? 0 : 4 * m) {}

    Real weight(std::int32_t j) const {
        const Coordinate& c = at(j);
        return static_cast<Real>(sigma() * (c.u() + dot(c.M, alpha_, m())));
    }

    // <M_c, w> and <M_c, M_c>.
    double product(int c) const { return sigma() * (q_[c] + dot(gram_ + c * m(), alpha_, m())); }
    double square(int c) const { return gram_[c * m() + c] > 0 ? gram_[c * m() + c] : 0; }

    // An upper bound on the change of a coordinate's u or M by an x of length 1, with a margin for their squares and sums.
    double max_step() const {
        double length = 1;
        for (int c = 0; c < m(); ++c) length += std::fabs(alpha_[c]);
        return 1000 * length;
    }

    // M_c += h x; w stays.
    void add(const ScaledRow<Real>& row, double h, int c, const RoundingBits& rounding) {
        grow<1>(row, &h, c, 1, rounding);
    }

    // M += x r' in the n columns from `first` on; w stays. G ignores their rounding.
    void add(const ScaledRow<Real>& row, const double* r, int first, int n, const RoundingBits& rounding) {
        grow<0>(row, r, first, n, rounding);
    }

    // w += c x
    void move(const ScaledRow<Real>& row, double c) {
        c /= sigma();
        Zeros<Columns> products(work_, m());
        for (std::int64_t p = 0; p < row.k; ++p) {
            Coordinate& of = at(row.at[p]);
            const double moved = of.set_u(of.u() + c * row.x[p]);
            add_to(products, moved, of.M, m());
        }
        add_to(q_, 1, &products[0], m());
    }

    // w += f M_c
    void move_along(int c, double f) { alpha_[c] += f / sigma(); }

    // w *= f, however small: sigma must not become 0, which means a new state.
    void scale(double f) { *sigma_ = (f > 1e-200 ? f : 1e-200) * sigma(); }

    // Scale::max: multiplies w_j and M_j.
    void rescale(std::int32_t j, Real factor) {
        Coordinate& of = at(j);
        if (never_seen(of)) return;
        const auto add_products = [&](double sign) {
            for (int a = 0; a < m(); ++a) {
                q_[a] += sign * of.M[a] * of.u();
                for (int b = 0; b < m(); ++b) gram_[a * m() + b] += sign * of.M[a] * of.M[b];
            }
        };
        add_products(-1);
        of.set_u(of.u() * factor);
        for (int c = 0; c < m(); ++c) of.M[c] *= factor;
        add_products(1);
    }

    // Where the parts of w have become too large: writes w into u, so that alpha = 0 and sigma = 1. A pass over all
    // coordinates, at most once in MAX_PARTS rows that each move w by 1.
    void rebase_if_needed() {
        double parts = 0;
        for (int c = 0; c < m(); ++c) parts += std::fabs(alpha_[c]) * std::sqrt(square(c));
        if (sigma() >= MIN_SIGMA && sigma() * parts <= MAX_PARTS) return;
        for (int c = 0; c < m(); ++c) q_[c] = 0;
        for (std::int64_t j = 0; j < size_; ++j) {
            Coordinate& of = at(j);
            of.set_u(sigma() * (of.u() + dot(of.M, alpha_, m())));
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
        Zeros<N> added(work_, n), of_added(work_ + m(), n);                         // to a coordinate's M; <added, u>
        Zeros<Columns> of_moved(work_ + 2 * m(), m()), of_e(work_ + 3 * m(), m());  // <change of u, M>; <e, M>
        const double per_r = 1 / r[0];
        double ee = 0;
        for (std::int64_t p = 0; p < row.k; ++p) {
            Coordinate& of = at(row.at[p]);
            const double x = row.x[p], u = of.u();
            const std::uint64_t random = rounding.bits(row.at[p]);
            for (int c = 0; c < n; ++c) {
                Real& cell = of.M[first + c];
                const double before = cell;
                cell = stochastic_round<Real>(before + x * r[c], random);
                added[c] = cell - before;
                of_added[c] += added[c] * u;
            }
            const double moved = of.set_u(u - dot(&added[0], alpha_ + first, n)), e = N == 1 ? added[0] * per_r : x;
            add_to(of_moved, moved, of.M, m());
            add_to(of_e, e, of.M, m());
            ee += e * e;
        }
        add_to(q_ + first, 1, &of_added[0], n);
        add_to(q_, 1, &of_moved[0], m());
        // M has grown by e r', so G has grown by r (e'M) + (M'e) r' - r (e'e) r', with the new M.
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
