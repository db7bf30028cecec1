#pragma once

#include "../coordinates.hpp"
#include "../tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct FtrlAuc {  // maths: src/rarestream/learners/ftrl_auc.py
    double gamma, lam, l2, beta;

    template <class Real>
    FtrlCoordinates<Real> coordinates() const {
        return {gamma, lam, l2, beta};
    }

    double slope(Tally& tally, double s, bool positive, double h) const {
        tally.count(s, positive, h);
        return 2 * tally.share_of_others(positive) * tally.miss(s, positive);
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
