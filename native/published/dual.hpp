// RDA-l1 and AdaGrad: weights computed from the mean gradient of the logistic loss.
#pragma once

#include "parts.hpp"

namespace rarestream::published {

// B5: the gradient buffer was never cleared, so a coordinate that is not in the row adds its last gradient once more.
// Its sum then grows linearly between visits, and is computed when needed: O(k) per row, where the authors needed O(d).
struct Stale {
    double sum = 0, last = 0, v = 0;
    double since = 0;  // the row of the last visit

    double mean(double t) const { return (sum + last * (t - since)) / t; }

    void add(double g, double t) {
        sum += last * (t - 1 - since) + g;
        last = g;
        since = t;
        v += g * g;
    }
};

// `Rule` has the settings, weight(at, t) and intercept(at, t).
template <class Rule>
struct DualAveraged : Method {
    static constexpr int settings = 3;

    Rule rule;
    double t = 0;
    std::vector<Stale> slots;
    Stale intercept;

    DualAveraged(Shape shape, const double* p) : rule{p[0], p[1], p[2]}, slots(static_cast<std::size_t>(shape.d)) {}

    // The intercept takes part in the slope but not in the score.
    double step(Row x, bool positive) override {
        double s = 0, w0 = 0;
        if (t > 0) {
            x.each([&](std::size_t j, double xj) { s += rule.weight(slots[j], t) * xj; });
            w0 = rule.intercept(intercept, t);
        }
        const double c = logistic_slope(positive ? 1 : -1, s + w0);
        t += 1;
        x.each([&](std::size_t j, double xj) { slots[j].add(c * xj, t); });
        intercept.add(c, t);
        return s;
    }

    void write_weights(double* out) const override {
        for (const Stale& at : slots) *out++ = t > 0 ? rule.weight(at, t) : 0.0;
    }
};

struct RdaRule {
    double lambda, gamma, rho;

    // B3: for g < 0, g - 1 in place of g + threshold.
    double weight(const Stale& at, double t) const {
        const double g = at.mean(t), threshold = lambda + gamma * rho / std::sqrt(t);
        return std::fabs(g) <= threshold ? 0.0 : -std::sqrt(t) / gamma * (g + sign_between(-threshold, g, 1));
    }

    double intercept(const Stale& at, double t) const { return -std::sqrt(t) / gamma * at.mean(t); }
};

struct AdaGradRule {
    double lambda, eta, epsilon;

    // B4: for g < 0 the rate is lost.
    double weight(const Stale& at, double t) const { return shrunk(at, t, lambda); }
    double intercept(const Stale& at, double t) const { return shrunk(at, t, 0); }

    double shrunk(const Stale& at, double t, double threshold) const {
        const double g = at.mean(t), rate = eta * t / (epsilon + std::sqrt(at.v));
        return -sign_between(rate, g, 1) * std::max(0.0, std::fabs(g) - threshold);
    }
};

}  // namespace rarestream::published
