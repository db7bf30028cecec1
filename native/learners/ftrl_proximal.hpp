// FTRL-Proximal on the logistic loss. Maths: src/rarestream/learners/ftrl_proximal.py.
#pragma once

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
        const double c = logistic_slope(s + tally.w0, positive);
        if (intercept != 0) tally.step_intercept(c, h, gamma, beta);
        return c;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
