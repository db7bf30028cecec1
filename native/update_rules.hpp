// How a coordinate's pair {z, n = sqrt(v)} gives its weight, and how a row's slope changes it.
//
// u x is the row after scaling, c the slope of the loss at its score and h its importance: the row counts as h rows that
// are learned at one score.
#pragma once

#include "evidence.hpp"
#include "portable_math.hpp"
#include "simd.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// w = -gamma soft_threshold(z, lambda) / (beta + n), of a vector of coordinates.
template <class V>
RARESTREAM_ALWAYS_INLINE V weight_of(const V& z, const V& n, typename V::Real gamma, typename V::Real lam,
                                     typename V::Real beta) {
    return (-gamma) * (lam > 0 ? soft_threshold(z, lam) : z) / (beta + n);
}

// The same of one coordinate.
template <class Real>
RARESTREAM_ALWAYS_INLINE Real weight_of(Real z, Real n, Real gamma, Real lam, Real beta) {
    const Real size = std::fabs(z) - lam;
    return size > 0 ? (z > 0 ? -gamma : gamma) * size / (beta + n) : 0;
}

// The step of dual averaging, for one coordinate, for a vector of coordinates, and for lanes: z grows by z_slope x, v by
// v_slope x^2.
template <class V, class Slope>
RARESTREAM_ALWAYS_INLINE void dual_averaging_step(V& z, V& n, const Slope& z_slope, const Slope& v_slope, const V& x) {
    z = z + z_slope * x;
    n = square_root(n * n + v_slope * (x * x));
}

// Follow the regularised leader, proximal: z is the sum of gradients minus sigma w, and v that of squared gradients.
// `weight` and `step` are for one coordinate (Number is Real) and for a vector of them.
//
// Lanes have this step in another form (lanes/step.hpp): dual_averaging_step, then (m - n) w / gamma. The two are not
// shared because v grows here by (h g) g and there by (h c^2 u^2) x^2, which rounds differently: sharing one form would
// change the last bits of every FTRL model, or of every race with FTRL in it.
// test_every_lane_learns_what_a_model_of_its_learner_does (tests/engines/test_lanes.py) compares the two.
template <class Real>
struct FtrlRule {
    Real gamma, per_gamma, lam, beta;  // beta includes gamma l2
    Real cu = 0, hcu = 0;

    FtrlRule(double gamma_, double lam_, double l2, double beta_)
        : gamma(static_cast<Real>(gamma_)), per_gamma(static_cast<Real>(1 / gamma_)), lam(static_cast<Real>(lam_)),
          beta(static_cast<Real>(beta_ + gamma_ * l2)) {}

    RARESTREAM_ALWAYS_INLINE void begin_row(const Tally&) {}  // weights do not depend on the number of rows

    template <class Number>
    RARESTREAM_ALWAYS_INLINE Number weight(const Number& z, const Number& n) const {
        return weight_of(z, n, gamma, lam, beta);
    }

    RARESTREAM_ALWAYS_INLINE void set_slope(double c, double h, double u) {
        cu = static_cast<Real>(c * u);
        hcu = static_cast<Real>(c * (h * u));
    }

    template <class Number>
    RARESTREAM_ALWAYS_INLINE void step(Number& z, Number& n, const Number& w, const Number& x) const {
        const Number g = cu * x, hg = hcu * x, m = square_root(n * n + hg * g);
        z = z + (hg - (m - n) * (per_gamma * w));
        n = m;
    }
};

// Dual averaging: z is the sum of gradients, and v grows with |c|^r x^2.
template <class Real>
struct DualAveragingRule {
    using V = Vector<Real>;
    Real gamma, lam, beta;
    double r;
    Real z_slope = 0, v_slope = 0;

    DualAveragingRule(double gamma_, double lam_, double beta_, double r_)
        : gamma(static_cast<Real>(gamma_)), lam(static_cast<Real>(lam_)), beta(static_cast<Real>(beta_)), r(r_) {}

    RARESTREAM_ALWAYS_INLINE void begin_row(const Tally&) {}  // weights do not depend on the number of rows
    RARESTREAM_ALWAYS_INLINE V weight(const V& z, const V& n) const { return weight_of(z, n, gamma, lam, beta); }
    RARESTREAM_ALWAYS_INLINE Real weight(const Pair<Real>& pair) const {  // without l1
        return -gamma * pair.z / (beta + pair.n);
    }

    RARESTREAM_ALWAYS_INLINE void set_slope(double c, double h, double u) {
        z_slope = static_cast<Real>(c * (h * u));
        v_slope = power(static_cast<Real>(c), r) * static_cast<Real>(h * (u * u));
    }

    RARESTREAM_ALWAYS_INLINE void step(V& z, V& n, const V&, const V& x) const {
        dual_averaging_step(z, n, z_slope, v_slope, x);
    }
    RARESTREAM_ALWAYS_INLINE void step(Pair<Real>& pair, Real x) const {
        dual_averaging_step(pair.z, pair.n, z_slope, v_slope, x);
    }
};

// |x|^q of every number of a vector.
template <class V>
RARESTREAM_ALWAYS_INLINE V size_power(const V& x, double q) {
    if (q == 0.0) return V::all(1);
    V size;
    for (int i = 0; i < V::PARTS; ++i) size.part[i] = x.part[i] < 0 ? -x.part[i] : x.part[i];
    if (q == 1.0) return size;
    if (q == 0.5) return square_root(size);
    typename V::Real powers[LANES];
    size.store(powers);
    for (typename V::Real& one : powers) one = power(one, q);
    return V::load(powers);
}

// Dual averaging whose weights are a power of the mean gradient, with a share of the proximal term:
//
//     g = soft_threshold(z, lambda) / (beta + n),    w = -gamma g |g|^q
//
// and z grows by kappa (m - n) g more, where m is the new n. With q = 0 and kappa = 0 it is DualAveragingRule but for the
// last bits.
template <class Real>
struct PowerRule : DualAveragingRule<Real> {
    using V = Vector<Real>;
    using Plain = DualAveragingRule<Real>;
    static constexpr bool SQUARES_STEPS = true;
    double q;
    Real kappa;

    PowerRule(const Plain& plain, double q_, double kappa_) : Plain(plain), q(q_), kappa(static_cast<Real>(kappa_)) {}

    RARESTREAM_ALWAYS_INLINE V mean_gradient(const V& z, const V& n) const {
        return (this->lam > 0 ? soft_threshold(z, this->lam) : z) / (this->beta + n);
    }

    RARESTREAM_ALWAYS_INLINE V weight(const V& z, const V& n) const {
        const V g = mean_gradient(z, n);
        return (-this->gamma) * (g * size_power(g, q));
    }
    RARESTREAM_ALWAYS_INLINE Real weight(const Pair<Real>& pair) const {  // without l1
        const Real g = pair.z / (this->beta + pair.n);
        return -this->gamma * (g * power(g, q));
    }

    RARESTREAM_ALWAYS_INLINE void step(V& z, V& n, const V& w, const V& x) const {
        const V g = mean_gradient(z, n), before = n;
        Plain::step(z, n, w, x);
        z = z + (n - before) * (kappa * g);
    }
    RARESTREAM_ALWAYS_INLINE void step(Pair<Real>& pair, Real x) const {
        const Real g = pair.z / (this->beta + pair.n), before = pair.n;
        Plain::step(pair, x);
        pair.z = pair.z + (pair.n - before) * (kappa * g);
    }
};

// The same with weights that are multiplied by evidence^p. A coordinate is two pairs: {z, n}, and how many positives and
// negatives have the feature.
template <class Real>
struct EvidenceRule : PowerRule<Real> {
    using V = Vector<Real>;
    static constexpr int PAIRS = 2;
    double p;
    Evidence<Real> evidence;

    EvidenceRule(const PowerRule<Real>& power, double p_) : PowerRule<Real>(power), p(p_) {}

    RARESTREAM_ALWAYS_INLINE void begin_row(const Tally& tally) { evidence = {tally.n_pos, tally.n_neg}; }
    RARESTREAM_ALWAYS_INLINE V factor(const V& positives, const V& negatives) const {
        return size_power(evidence.of(positives, negatives), p);
    }
};

// The number of pairs of a coordinate: {z, n}, and what the rule has besides.
template <class Rule>
constexpr auto pairs_of(int) -> decltype(Rule::PAIRS) {
    return Rule::PAIRS;
}
template <class Rule>
constexpr int pairs_of(...) {
    return 1;
}

// The weights of eight coordinates, from all their pairs; z and n are kept.
template <class Real, class Rule>
RARESTREAM_ALWAYS_INLINE Vector<Real> gather_weights(const Rule& rule, const Pair<Real>* pairs, const std::int32_t* at,
                                                     Vector<Real>& z, Vector<Real>& n) {
    constexpr int PAIRS = pairs_of<Rule>(0);
    gather<PAIRS>(pairs, at, z, n);
    if constexpr (PAIRS == 1) {
        return rule.weight(z, n);
    } else {
        Vector<Real> positives, negatives;
        gather<PAIRS>(pairs + 1, at, positives, negatives);
        return rule.weight(z, n) * rule.factor(positives, negatives);
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
