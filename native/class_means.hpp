// The part that learners share whose step goes along the row and along the mean rows of both classes (SPAM with the full
// gradient, SPAUC): weights with the class sums, as LowRankWeights in O(k) or DenseWeights where every weight is
// thresholded.
#pragma once

#include "dense_weights.hpp"
#include "updater.hpp"
#include "low_rank_weights.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real, class Weights>
struct ClassMeansUpdater {
    struct Scalars {
        double all[Weights::n_scalars()];
    };

    Tally& tally;
    Weights weights;  // with the sums of x over negatives (0) and positives (1)

    static bool state_fits(const State<Real>& state) { return Weights::fits(state) && scalars_fit<Scalars>(state); }

    explicit ClassMeansUpdater(const State<Real>& state)
        : tally(tally_of(state)), weights(state, scalars_of<Scalars>(state).all) {}

    double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
    double mean(bool positive) const { return rows(positive) > 0 ? weights.product(positive) / rows(positive) : 0; }

    Real weight(std::int32_t j) const { return weights.weight(j); }
    void rescale(std::int32_t j, Real factor) { weights.rescale(j, factor); }

    // An upper bound on the length of a step whose factor of x, and of each class mean, is at most `step`: w moves along x,
    // directly and through the mean of its class, and along both means.
    double max_step_of(double step) const {
        double distance = 2;
        for (int c = 0; c < 2; ++c)
            if (rows(c) > 0) distance += std::sqrt(weights.square(c)) / rows(c);
        return weights.max_step() + step * distance;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
