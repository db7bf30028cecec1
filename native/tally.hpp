// What every learner counts: rows of each class, their mean scores, and an intercept.
#pragma once

#include "losses.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Tally {            // six doubles, owned by NumPy; the order is that of TALLY in learners/state.py
    double n_pos, n_neg;  // rows of each class, counted by importance
    double a, b;          // mean score of positives, of negatives, each scored before it was learned
    double w0, n0;        // intercept and the root of its squared slopes (logistic losses only)

    static Tally read(const double* from) {
        Tally tally;
        std::memcpy(&tally, from, sizeof tally);
        return tally;
    }
    void write(double* to) const { std::memcpy(to, this, sizeof *this); }

    // Rows arrive once: dividing by the count keeps a mean without keeping the scores.
    void count(double s, bool positive, double h) {
        double &n = positive ? n_pos : n_neg, &mean = positive ? a : b;
        n += h;
        mean += h * (s - mean) / n;
    }

    // The intercept is the weight of a feature that is 1 in every row, never shrunk. Without l1, follow the regularised
    // leader is exactly this step, so the weight itself is kept.
    void step_intercept(double c, double h, double gamma, double beta) {
        n0 = std::sqrt(n0 * n0 + h * c * c);
        w0 -= gamma * h * c / (beta + n0);
    }

    double share_of_others(bool positive) const { return (positive ? n_neg : n_pos) / (n_pos + n_neg); }
    double mean_of_others(bool positive) const { return positive ? b : a; }

    // s minus its target: the mean score of the other class plus the margin.
    double margin_error(double s, bool positive) const {
        return rarestream::margin_error(s, mean_of_others(positive), positive ? 1 : -1);
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
