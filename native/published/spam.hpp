// SPAM and SPAUC: a proximal step along x and the class means, O(d) per row.
#pragma once

#include "parts.hpp"

namespace rarestream::published {

// Weights, class sums, and the class means a, b of the scores, of which only the arriving class's is refreshed.
struct Proximal : Method {
    Counts counts;
    Vector w, sum_pos, sum_neg;
    double a = 0, b = 0;

    explicit Proximal(Shape shape) : w(static_cast<std::size_t>(shape.d)), sum_pos(w.size()), sum_neg(w.size()) {}

    // Returns the score of the row.
    double count(Row x, bool positive) {
        const double s = x.dot(w);
        Vector& sum = positive ? sum_pos : sum_neg;
        x.add_to(sum, 1);
        counts.add(positive);
        (positive ? a : b) = dot(w, sum) / (positive ? counts.pos : counts.neg);
        return s;
    }

    // w <- shrunk(w - eta (cx x + cp xbar+ + cn xbar-))
    template <class Shrunk>
    void move(Row x, double eta, double cx, double cp, double cn, Shrunk shrunk) {
        x.add_to(w, -eta * cx);
        const double fp = counts.pos > 0 ? eta * cp / counts.pos : 0, fn = counts.neg > 0 ? eta * cn / counts.neg : 0;
        double* u = w.data();
        const double *pos = sum_pos.data(), *neg = sum_neg.data();
        const std::size_t d = w.size();
        for (std::size_t j = 0; j < d; ++j) u[j] = shrunk(u[j] - (fp * pos[j] + fn * neg[j]));
    }

    void write_weights(double* out) const override { std::copy(w.begin(), w.end(), out); }
};

inline double excess(double u, double threshold) { return std::max(0.0, std::fabs(u) - threshold); }

// B9: the term 2 p (1 - p) (b - a) (xbar+ - xbar-) of the paper's gradient is missing.
struct Spam : Proximal {
    static constexpr int settings = 3;

    double xi, l1, l2;

    Spam(Shape shape, const double* p) : Proximal(shape), xi(p[0]), l1(p[1]), l2(p[2]) {}

    double step(Row x, bool positive) override {
        const double s = count(x, positive), p = counts.p, eta = xi / std::sqrt(counts.rows());
        const double c = positive ? 2 * (1 - p) : 2 * p;
        const double cx = positive ? c * (s - 1 - b) : c * (s + 1 - a);
        const double cp = c * (positive ? a : -s), cn = c * (positive ? -s : b);
        const double shrink = 1 / (1 + eta * l2), t = eta * l1;
        if (l1 <= 0 && l2 > 0)
            move(x, eta, cx, cp, cn, [=](double u) { return u * shrink; });
        else  // B2: positive weights escape the l2 shrinkage
            move(x, eta, cx, cp, cn, [=](double u) { return sign_between(1, u, shrink) * excess(u, t); });
        return s;
    }
};

struct Spauc : Proximal {
    static constexpr int settings = 2;

    double mu, l1;

    Spauc(Shape shape, const double* p) : Proximal(shape), mu(p[0]), l1(p[1]) {}

    double step(Row x, bool positive) override {
        const double s = count(x, positive), p = counts.p, eta = 2 / (mu * (counts.rows() - 1) + 1);
        const double c = positive ? 2 * (1 - p) : 2 * p, miss = s - (positive ? a : b);
        const double apart = 2 * p * (1 - p) * (1 + b - a), t = eta * l1;
        const double cp = -apart - (positive ? c * miss : 0), cn = apart - (positive ? 0 : c * miss);
        move(x, eta, c * miss, cp, cn, [=](double u) { return std::copysign(excess(u, t), u); });
        return s;
    }
};

}  // namespace rarestream::published
