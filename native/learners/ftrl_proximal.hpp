#pragma once

#include "../coordinates.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct FtrlProximal {  // maths: src/rarestream/learners/ftrl_proximal.py
    double gamma, lam, l2, beta, intercept;

    template <class Real>
    FtrlCoordinates<Real> coordinates() const {
        return {gamma, lam, l2, beta};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        const double c = sigmoid(s + tally.w0) - (positive ? 1 : 0);
        if (intercept != 0) tally.lean(c, h, gamma, beta);
        return c;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
