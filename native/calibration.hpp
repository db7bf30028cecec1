// Calibration: what turns a score into a probability. Log odds = slope x + intercept, where x is the score divided by the
// root mean square of all scores, fitted online by Newton's method to the scores that rows had before they were learned.
//
// Old rows fade: after T rows, row t counts (t / T)^2, because the scores of a model that has just begun say little about
// those it gives later. The mean square fades likewise, so that a slope does not depend on the units of scores, and those
// of the first rows, which may be tiny, do no harm.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "calibration_numbers.hpp"
#include "portable_math.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

class Calibration {
    static constexpr double FIRST = 30;         // rows that fading begins with, so that the first ones do not fade at once
    static constexpr double PRIOR = 0.1;        // second derivatives before the first row: they shorten the first steps
    static constexpr double LARGEST = 1e60;     // of scores: larger ones count as this
    static constexpr double FARTHEST = 30;      // of x
    static constexpr std::int64_t ALL = 8192;   // after so many rows, of the larger class only
    static constexpr std::int64_t SHARE = 8;    // one in so many is used, for as many
    static constexpr std::int64_t ALONE = 256;  // each of so many rows, the first, makes a step,
    static constexpr double EIGHT = 2048;       // then every eight until so many, and then every
    static constexpr double MANY = 64;          // so many: a step takes as long as counting dozens of rows
    CalibrationNumbers c_;
    double* const numbers_;

public:
    explicit Calibration(double* numbers) : numbers_(numbers) { std::memcpy(&c_, numbers, sizeof c_); }

    // Labels above 0 are positive; rows of importance 0 are ignored.
    void add(const std::int8_t* labels, const double* scores, const double* importances, std::size_t n) {
        int waiting = static_cast<int>(c_.waiting);
        std::int64_t negatives = static_cast<std::int64_t>(c_.negatives),
                     positives = static_cast<std::int64_t>(c_.positives);
        for (std::size_t i = 0; i < n; ++i) {
            double h = importances ? importances[i] : 1;
            if (!(h > 0)) continue;
            const bool positive = labels[i] > 0;
            const std::int64_t own = positive ? ++positives : ++negatives;
            const std::int64_t all = negatives + positives;
            if (all > ALL && 2 * own > all) {  // of the larger class
                if (own % SHARE) continue;
                h *= SHARE;
            }
            c_.scores[waiting] = clipped(scores[i], LARGEST);
            c_.importances[waiting++] = positive ? h : -h;
            if (waiting == LANES || all <= ALONE) {
                use_waiting();
                waiting = 0;
            }
        }
        c_.positives = static_cast<double>(positives);
        c_.negatives = static_cast<double>(negatives);
        c_.waiting = waiting;
        std::memcpy(numbers_, &c_, sizeof c_);
    }

private:
    using D = DoubleRegister;

    // Adds the waiting rows to the sums. Places without a row have importance 0.
    void use_waiting() {
        const F64 scores = F64::load(c_.scores), signed_h = F64::load(c_.importances);
        F64 h, of_positives, squares;
        for (int i = 0; i < F64::PARTS; ++i) {
            const D zero = broadcast(0.0), s = scores.part[i], own = signed_h.part[i];
            h.part[i] = own < zero ? -own : own;
            of_positives.part[i] = own > zero ? own : zero;
            squares.part[i] = h.part[i] * (s * s);
        }
        const double weight = sum(h), share = (c_.all + FIRST) / (c_.all + FIRST + weight), fade = share * share;
        const auto add = [&](double& faded, double more) RARESTREAM_INLINE_LAMBDA { faded = faded * fade + more; };
        c_.all += weight;
        add(c_.weight, weight);
        add(c_.positive_weight, sum(of_positives));
        add(c_.squares, sum(squares));
        if (c_.all <= EIGHT) c_.unit = unit();

        F64 slope_error, one_error, slope_slope, slope_one, one_one;
        for (int i = 0; i < F64::PARTS; ++i) {
            const D far = broadcast(FARTHEST), half = broadcast(0.5);
            const D given = scores.part[i] * broadcast(c_.unit), below = given > far ? far : given;
            const D x = below < -far ? -far : below;
            const D odds = broadcast(c_.slope) * x + broadcast(c_.intercept), p = sigmoid(odds);
            const D error = signed_h.part[i] > 0 ? p - 1.0 : p;
            // On the wrong side the second derivative may be tiny, and the step would be far too long; the bound is that
            // of a parabola that is nowhere below the loss.
            const D apart = (p < half ? half - p : p - half), curve = p * (1.0 - p);
            const D bound = apart / (odds < 0 ? -odds : odds);
            const D wrong = error < 0 ? -error : error;
            const D bent = h.part[i] * (wrong > half ? (bound > curve ? bound : curve) : curve);
            slope_error.part[i] = h.part[i] * error * x;
            one_error.part[i] = h.part[i] * error;
            slope_slope.part[i] = bent * (x * x);
            slope_one.part[i] = bent * x;
            one_one.part[i] = bent;
        }
        add(c_.slope_slope, sum(slope_slope));
        add(c_.slope_one, sum(slope_one));
        add(c_.one_one, sum(one_one));
        c_.slope_error += sum(slope_error);
        c_.one_error += sum(one_error);
        c_.unused += 1;
        for (int l = 0; l < LANES; ++l) c_.scores[l] = c_.importances[l] = 0;
        if (c_.all <= EIGHT || c_.unused * LANES >= MANY) step();
    }

    double unit() const { return c_.squares > 0 ? 1 / std::sqrt(c_.squares / c_.weight) : 0; }

    // A step of Newton's method.
    void step() {
        const double a = c_.slope_slope + PRIOR, b = c_.slope_one, d = c_.one_one + PRIOR, det = a * d - b * b;
        c_.slope -= (d * c_.slope_error - b * c_.one_error) / det;
        c_.intercept -= (a * c_.one_error - b * c_.slope_error) / det;
        c_.slope_error = c_.one_error = c_.unused = 0;
        c_.unit = unit();
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
