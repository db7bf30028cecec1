// FTRL-Proximal on the logistic loss. Maths: src/rarestream/learners/ftrl_proximal.py.
#pragma once

#include "../half_life.hpp"
#include "../update_rules.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct FtrlProximal {
    double gamma, lam, l2, beta, intercept;

    template <class Real>
    FtrlRule<Real> rule() const {
        return {gamma, lam, l2, beta};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        return slope_of_counted(tally, s, positive, h);
    }

    double slope_of_counted(Tally& tally, double s, bool positive, double h) const {
        const double c = logistic_slope(s + tally.w0, positive);
        if (intercept != 0) tally.step_intercept(c, h, gamma, beta);
        return c;
    }

    FtrlProximal in_units(const DecayedUnits& units) const {
        return {units.gamma(gamma), units.lam(lam), 0, units.beta(beta + gamma * l2), intercept};
    }
};

using FtrlProximalHalfLife = WithHalfLife<FtrlProximal>;

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
