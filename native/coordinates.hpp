// How a coordinate's pair {z, n = sqrt(v)} gives its weight, and how a row's slope moves it.
// x times u is the row after scaling, c the slope of the loss at its score, h its importance (h rows learned at one
// score).
#pragma once

#include "lanes.hpp"
#include "reals.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// w = -gamma soft(z, lambda) / (beta + n)
template <class V>
RARESTREAM_INLINE V weight_of(const V& z, const V& n, typename V::Real gamma, typename V::Real lam,
                              typename V::Real beta) {
    return (-gamma) * (lam > 0 ? soft(z, lam) : z) / (beta + n);
}

// Follow the regularised leader, proximal: z holds gradients less sigma w, and v squared gradients.
template <class Real>
struct FtrlCoordinates {
    using V = Lanes<Real>;
    Real gamma, per_gamma, lam, beta;  // beta has gamma l2 in it
    Real cu = 0, hcu = 0;

    FtrlCoordinates(double gamma_, double lam_, double l2, double beta_)
        : gamma(static_cast<Real>(gamma_)), per_gamma(static_cast<Real>(1 / gamma_)), lam(static_cast<Real>(lam_)),
          beta(static_cast<Real>(beta_ + gamma_ * l2)) {}

    RARESTREAM_INLINE void now(const Tally&) {}  // weights do not depend on how many rows there were
    RARESTREAM_INLINE V weight(const V& z, const V& n) const { return weight_of(z, n, gamma, lam, beta); }

    RARESTREAM_INLINE void aim(double c, double h, double u) {
        cu = static_cast<Real>(c * u);
        hcu = static_cast<Real>(c * (h * u));
    }

    RARESTREAM_INLINE void step(V& z, V& n, const V& w, const V& x) const {
        const V g = cu * x, hg = hcu * x, m = root(n * n + hg * g);
        z = z + (hg - (m - n) * (per_gamma * w));
        n = m;
    }
};

// Dual averaging: z holds plain gradients, and v grows with |c|^r x^2.
template <class Real>
struct DualCoordinates {
    using V = Lanes<Real>;
    Real gamma, lam, beta;
    double r;
    Real hcu = 0, q = 0;

    DualCoordinates(double gamma_, double lam_, double beta_, double r_)
        : gamma(static_cast<Real>(gamma_)), lam(static_cast<Real>(lam_)), beta(static_cast<Real>(beta_)), r(r_) {}

    RARESTREAM_INLINE void now(const Tally&) {}  // weights do not depend on how many rows there were
    RARESTREAM_INLINE V weight(const V& z, const V& n) const { return weight_of(z, n, gamma, lam, beta); }

    RARESTREAM_INLINE void aim(double c, double h, double u) {
        hcu = static_cast<Real>(c * (h * u));
        q = power(static_cast<Real>(c), r) * static_cast<Real>(h * (u * u));
    }

    RARESTREAM_INLINE void step(V& z, V& n, const V&, const V& x) const {
        z = z + hcu * x;
        n = root(n * n + q * (x * x));
    }
    RARESTREAM_INLINE void step(Pair<Real>& pair, Real x) const {
        pair.z += hcu * x;
        pair.n = std::sqrt(pair.n * pair.n + q * (x * x));
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
