// The slopes of the losses, for one score (double) and for the scores of several lanes (DoubleRegister). What a slope
// depends on besides is one number for all lanes, or one for each.
#pragma once

#include "portable_math.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A score minus its target, the mean score of the other class plus the margin: y is the label, 1 or -1.
template <class Number, class Label>
RARESTREAM_ALWAYS_INLINE Number margin_error(const Number& s, const Number& mean_of_others, const Label& y) {
    return s - (mean_of_others + y);
}

// The pairwise square loss. `share` is the share of the other class among all rows, 0 while only one class was seen.
template <class Share, class Number>
RARESTREAM_ALWAYS_INLINE Number pairwise_slope(const Share& share, const Number& error) {
    return 2 * share * error;
}

// The logistic loss. `target` is 1 for a positive row, 0 for a negative one.
template <class Number, class Target>
RARESTREAM_ALWAYS_INLINE Number logistic_slope(const Number& s, const Target& target) {
    return sigmoid(s) - target;
}
template <class Number>
RARESTREAM_ALWAYS_INLINE Number logistic_slope(const Number& s, bool positive) {
    return logistic_slope(s, positive ? 1.0 : 0.0);
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
