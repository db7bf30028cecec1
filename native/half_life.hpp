// Learners with a half-life: z and v = n^2 of every coordinate halve in `half_life` rows. Maths:
// src/rarestream/learners/dual_averaging.py.
//
// A row still changes nothing but its own coordinates. At time t, the number of rows so far, the state holds z' = z / s and
// n' = n / sqrt(s) with s = 2^(-(t - base) / half_life), which stay as they are while time passes. In these units each rule
// is the ordinary one with other settings:
//
//     w = -gamma soft_threshold(z, lambda) / (beta + n)
//       = -(gamma sqrt(s)) soft_threshold(z', lambda / s) / (beta / sqrt(s) + n'),
//
// and z' and v' grow by 1 / s of what z and v do, as by a row of importance h / s. The proximal term keeps its form:
// (m - n) w / gamma = s (m' - n') w / (gamma sqrt(s)). `base` is the latest multiple of 16 half-lives; when time passes the
// next one, all z' are multiplied by 2^-16 and all n' by 2^-8, which is exact.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "portable_math.hpp"
#include "tally.hpp"
#include "update_rules.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

constexpr double PERIOD = 16;             // half-lives between two multiples of the base
constexpr double LARGEST_PER_ROOT = 256;  // 2^(PERIOD / 2): 1 / sqrt(s) is at most this
constexpr double LOG_2 = 0.69314718055994530942;
template <class Real>
constexpr Real SMALLEST_NORMAL = sizeof(Real) == 4 ? Real(0x1p-126) : Real(0x1p-1022);

// The number of whole periods before time t. The table is in units of that period.
inline double period_of(double t, double half_life) { return std::floor(t / (PERIOD * half_life)); }

// The units of the state at time t, and settings in them.
struct DecayedUnits {
    double root, per_root, per_s;  // sqrt(s), 1 / sqrt(s), 1 / s

    DecayedUnits(double t, double half_life) : DecayedUnits(exponential(log_per_root(t, half_life))) {}
    explicit DecayedUnits(double per_root_) : root(1 / per_root_), per_root(per_root_), per_s(per_root_ * per_root_) {}

    static double log_per_root(double t, double half_life) {
        const double periods = t / (PERIOD * half_life);
        return (periods - std::floor(periods)) * (PERIOD / 2 * LOG_2);
    }

    // q: the power of weights.
    double gamma(double gamma, double q = 0) const { return gamma * (root * power(root, q)); }
    double lam(double lam) const { return lam * per_s; }
    double beta(double beta) const { return beta * per_root; }
};

// By what z' and n' are multiplied after so many periods; 0 below the range of Real.
template <class Real>
Real decay_factor(double periods, double halvings_per_period) {
    const double factor = periods < 128 ? std::ldexp(1.0, static_cast<int>(-halvings_per_period * periods)) : 0;
    return factor < SMALLEST_NORMAL<Real> ? Real(0) : static_cast<Real>(factor);
}
template <class Real>
Real z_factor(double periods) {
    return decay_factor<Real>(periods, PERIOD);
}
template <class Real>
Real n_factor(double periods) {
    return decay_factor<Real>(periods, PERIOD / 2);
}

// Multiplies all numbers of a table by factors of its columns, each 1 or less; eight numbers that are all zero are not
// written to, so that untouched memory stays so. What would no longer be a normal number becomes 0: others are slow.
// `columns` is a multiple of eight.
template <class Real>
void multiply_columns(Real* table, std::int64_t count, const Real* factors, int columns) {
    using V = Vector<Real>;
    int column = 0;
    const auto multiply = [&](Real* numbers) {
        std::uint64_t words[LANES * sizeof(Real) / 8], any = 0;
        std::memcpy(words, numbers, sizeof words);
        for (const std::uint64_t word : words) any |= word;
        if (any == 0) return;
        const V factor = load(factors + column), smallest = V::all(SMALLEST_NORMAL<Real>) / factor;
        V x = load(numbers);
        for (int i = 0; i < V::PARTS; ++i) {
            const auto size = x.part[i] < 0 ? -x.part[i] : x.part[i];
            const auto lost = factor.part[i] < 1 ? smallest.part[i] : typename V::Register{};
            x.part[i] = size < lost ? typename V::Register{} : x.part[i];
        }
        store(numbers, x * factor);
    };
    std::int64_t first = 0;
    for (; first + LANES <= count; first += LANES) {
        multiply(table + first);
        column = column + LANES < columns ? column + LANES : 0;
    }
    if (first == count) return;
    Real last[LANES] = {};
    std::memcpy(last, table + first, static_cast<std::size_t>(count - first) * sizeof(Real));
    multiply(last);
    std::memcpy(table + first, last, static_cast<std::size_t>(count - first) * sizeof(Real));
}

// The share of a row of importance h in the mean score of its class, which has n rows of `all`, this one included: the mean
// is over at most about the latest half_life / log 2 rows of all.
inline double share_in_mean(double h, double n, double all, double half_life) {
    const double excess = LOG_2 * all / half_life, share = h / n * (excess > 1 ? excess : 1);
    return share < 1 ? share : 1;
}

// By what the root n0 of the intercept's squares is multiplied before a row of importance h.
inline double intercept_decay(double h, double half_life) { return exponential(-h * (LOG_2 / 2) / half_life); }

// The rule of a learner, in the units of each row.
template <class Learner, class Real>
struct DecayingRule : decltype(Learner{}.template rule<Real>()) {
    using Base = decltype(Learner{}.template rule<Real>());
    static constexpr double STORED_SIZE = LARGEST_PER_ROOT;

    Learner learner;
    double half_life;
    double period = -1, per_s = 1;

    DecayingRule(const Learner& learner_, double half_life_)
        : Base(learner_.template rule<Real>()), learner(learner_), half_life(half_life_) {}

    RARESTREAM_ALWAYS_INLINE void begin_row(const Tally& tally) {
        const DecayedUnits units(tally.n_pos + tally.n_neg, half_life);
        static_cast<Base&>(*this) = learner.in_units(units).template rule<Real>();
        Base::begin_row(tally);
        per_s = units.per_s;
    }

    RARESTREAM_ALWAYS_INLINE void set_slope(double c, double h, double u) { Base::set_slope(c, h * per_s, u); }

    // Brings the pairs to the units of the period that time is in.
    RARESTREAM_ALWAYS_INLINE void update_units(const Tally& tally, Pair<Real>* pairs, std::int64_t size) {
        const double now = period_of(tally.n_pos + tally.n_neg, half_life), passed = now - period;
        if (period >= 0 && passed > 0) {
            constexpr int COLUMNS = 2 * pairs_of<Base>(0);
            const Real pair[2] = {z_factor<Real>(passed), n_factor<Real>(passed)};
            Real factors[LANES];  // counts stay as they are
            for (int l = 0; l < LANES; ++l) factors[l] = l % COLUMNS < 2 ? pair[l % COLUMNS] : Real(1);
            multiply_columns(&pairs->z, COLUMNS * size, factors, LANES);
        }
        period = now;
    }
};

// A learner with `rule`, `slope_of_counted`, and `in_units`, itself in the units of a row.
template <class Learner>
struct WithHalfLife {
    Learner learner;
    double half_life;

    template <class Real>
    DecayingRule<Learner, Real> rule() const {
        return {learner, half_life};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        double &n = positive ? tally.n_pos : tally.n_neg, &mean = positive ? tally.a : tally.b;
        n += h;
        mean += share_in_mean(h, n, tally.n_pos + tally.n_neg, half_life) * (s - mean);
        if (tally.n0 > 0) tally.n0 *= intercept_decay(h, half_life);
        return learner.slope_of_counted(tally, s, positive, h);
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
