// The slopes of the losses, for one score (double) and for the scores of several lanes (DoubleRegister).
#pragma once

#include "portable_math.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A score minus its target, the mean score of the other class plus the margin: y is the label, 1 or -1.
template <class Number>
RARESTREAM_ALWAYS_INLINE Number margin_error(const Number& s, const Number& mean_of_others, double y) {
    return s - (mean_of_others + y);
}

// The pairwise square loss. `share` is the share of the other class among all rows, 0 while only one class was seen.
template <class Number>
RARESTREAM_ALWAYS_INLINE Number pairwise_slope(double share, const Number& error) {
    return 2 * share * error;
}

// The logistic loss.
template <class Number>
RARESTREAM_ALWAYS_INLINE Number logistic_slope(const Number& s, bool positive) {
    return sigmoid(s) - (positive ? 1.0 : 0.0);
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
