#pragma once

#include "../coordinates.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct DualAveraging {  // maths: src/rarestream/learners/dual_averaging.py
    double logistic, gamma, lam, beta, r;

    template <class Real>
    DualCoordinates<Real> coordinates() const {
        return {gamma, lam, beta, r};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        if (logistic == 0) {  // squared hinge: a row beyond the margin teaches nothing
            const double miss = tally.miss(s, positive), share = tally.share_of_others(positive);
            return positive == (miss < 0) ? 2 * share * miss : 0;
        }
        const double c = sigmoid(s + tally.w0) - (positive ? 1 : 0);
        tally.lean(c, h, gamma, beta);
        return c;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
