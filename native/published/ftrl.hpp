// FTRL-AUC, lazy and not, and FTRL-Proximal.
#pragma once

#include "parts.hpp"

namespace rarestream::published {

// Each coordinate has z, v, its weight at its last visit, and the square root of v, so that it is computed once.
struct Ftrl {
    struct Slot {
        double w = 0, z = 0, v = 0, root = 0;
    };

    double l1, l2, beta, gamma;
    std::vector<Slot> slots;

    Ftrl(Shape shape, const double* p)
        : l1(p[0]), l2(p[1]), beta(p[2]), gamma(p[3]), slots(static_cast<std::size_t>(shape.d)) {}

    // B1: z - sign(z) l1 became z - 1 for z > l1, and z - l1 for z < -l1.
    void refresh(Slot& at) const {
        if (std::fabs(at.z) <= l1)
            at.w = 0;
        else
            at.w = -(at.z + sign_between(-1, at.z, l1)) / ((beta + at.root) / gamma + l2);
    }

    void add(Slot& at, double g) const {
        const double v = at.v + g * g, root = std::sqrt(v);
        at.z += g - (root - at.root) / gamma * at.w;
        at.v = v;
        at.root = root;
    }

    void write_weights(double* out) const {
        for (const Slot& at : slots) *out++ = at.w;
    }
};

// A row is scored with stale weights, and a coordinate's weight is refreshed before its gradient is added: the
// returned model has not seen the last gradient of any coordinate.
template <bool lazy>
struct FtrlAuc : Method {
    static constexpr int settings = 4;

    Ftrl ftrl;
    Counts counts;
    double a = 0, b = 0;          // mean scores of positives and negatives
    double sum_a = 0, sum_b = 0;  // not lazy: <w, S+> and <w, S->, updated in O(k) where the authors needed O(d)
    struct Sums {
        double pos = 0, neg = 0;
    };
    std::vector<Sums> sums;  // not lazy: S+ and S-

    FtrlAuc(Shape shape, const double* p) : ftrl(shape, p), sums(lazy ? 0 : ftrl.slots.size()) {}

    double step(Row x, bool positive) override {
        counts.add(positive);
        double s = 0;
        x.each([&](std::size_t j, double xj) { s += ftrl.slots[j].w * xj; });
        count(x, positive, s);
        const double c = positive ? 2 * (1 - counts.p) * (s - b - 1) : 2 * counts.p * (s - a + 1);
        x.each([&](std::size_t j, double xj) {
            Ftrl::Slot& at = ftrl.slots[j];
            const double before = at.w;
            ftrl.refresh(at);
            ftrl.add(at, c * xj);
            if constexpr (!lazy) {
                sum_a += (at.w - before) * sums[j].pos;
                sum_b += (at.w - before) * sums[j].neg;
            }
        });
        return s;
    }

    // Not lazy means that the mean of the arriving class is that of the current weights; the other one stays.
    void count(Row x, bool positive, double s) {
        double& mean = positive ? a : b;
        const double rows = positive ? counts.pos : counts.neg;
        if constexpr (lazy) {
            mean += (s - mean) / rows;
        } else {
            x.each([&](std::size_t j, double xj) { (positive ? sums[j].pos : sums[j].neg) += xj; });
            (positive ? sum_a : sum_b) += s;
            mean = (positive ? sum_a : sum_b) / rows;
        }
    }

    void write_weights(double* out) const override { ftrl.write_weights(out); }
};

// Weights are refreshed before the row is scored. The intercept was never used (B7): there is none.
struct FtrlProximal : Method {
    static constexpr int settings = 4;

    Ftrl ftrl;

    FtrlProximal(Shape shape, const double* p) : ftrl(shape, p) {}

    double step(Row x, bool positive) override {
        double s = 0;
        x.each([&](std::size_t j, double xj) {
            ftrl.refresh(ftrl.slots[j]);
            s += ftrl.slots[j].w * xj;
        });
        const double c = logistic_slope(positive ? 1 : -1, s);
        x.each([&](std::size_t j, double xj) { ftrl.add(ftrl.slots[j], c * xj); });
        return s;
    }

    void write_weights(double* out) const override { ftrl.write_weights(out); }
};

}  // namespace rarestream::published
