// The numbers of a calibration (calibration.hpp), in the order of the array that holds them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rarestream {

struct CalibrationNumbers {  // all are zero before the first row
    double slope, intercept;
    double unit;                                // 1 / root mean square of scores
    double all;                                 // importances of all rows, which do not fade
    double positives, negatives;                // numbers of rows
    double weight, positive_weight, squares;    // faded sums: of importances, of those of positives, of squared scores
    double slope_slope, slope_one, one_one;     // faded sums of the second derivatives of the loss
    double slope_error, one_error, unused;      // first derivatives since the last step, and how often they were added to
    double waiting, scores[8], importances[8];  // rows that no step has used yet; importances of negatives are negative
};
constexpr std::size_t CALIBRATION_NUMBERS = sizeof(CalibrationNumbers) / sizeof(double);

// Adds rows to a calibration. Labels above 0 are positive; rows of importance 0 are ignored.
using Calibrate = void (*)(double* numbers, const std::int8_t* labels, const double* scores, const double* importances,
                           std::size_t n);

}  // namespace rarestream
