// SOLAM and FSAUC: stochastic descent on (w, a, b) and ascent on alpha of the saddle-point form of AUC, O(d) per row.
#pragma once

#include "parts.hpp"

namespace rarestream::published {

struct Saddle {
    Vector w;
    double a, b, alpha;

    void step(Row x, bool positive, double p, double s, double rate) {
        const double c = rate * (positive ? 1 - p : p), y = positive ? 1 : -1;
        double& mean = positive ? a : b;
        const double miss = s - mean, pull = rate * p * (1 - p) * alpha;
        x.add_to(w, -c * (miss - y * (1 + alpha)));
        mean += c * miss;
        alpha -= y * c * s + pull;
    }
};

// B8: a and b were clipped from above only. The model is the mean of the iterates, weighted by their step sizes, the
// newest left out; the online score is that of the model, while the step uses the score of the newest iterate.
struct Solam : Method {
    static constexpr int settings = 2;

    double xi, r;
    Counts counts;
    Saddle at;
    Vector sum;
    double steps = 0;  // the sum of the step sizes

    Solam(Shape shape, const double* p)
        : xi(p[0]), r(p[1]),
          at{Vector(static_cast<std::size_t>(shape.d), r / std::sqrt(static_cast<double>(shape.d))), r, r, 2 * r},
          sum(at.w.size()) {}

    double step(Row x, bool positive) override {
        counts.add(positive);
        const double rate = xi / std::sqrt(counts.rows()), online = steps > 0 ? x.dot(sum) / steps : 0;
        const double s = x.dot(at.w);
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += rate * at.w[j];
        steps += rate;
        at.step(x, positive, counts.p, s, 2 * rate);
        const double norm = std::sqrt(dot(at.w, at.w));
        if (norm > r)
            for (double& wj : at.w) wj *= r / norm;
        at.a = std::min(at.a, r);
        at.b = std::min(at.b, r);
        at.alpha = clipped(at.alpha, -2 * r, 2 * r);
        return online;
    }

    void write_weights(double* out) const override {
        for (const double sj : sum) *out++ = steps > 0 ? sj / steps : sj;
    }
};

// m stages of n0 rows each, and one more for the rows left over: n must be known. Each stage starts from the mean of
// the one before, and the model is the mean of the last, however short.
struct Fsauc : Method {
    static constexpr int settings = 2;

    double r, eta;
    std::int64_t n0, rows = 0;  // of a stage; so far in this one
    double root_l = std::sqrt(2 * std::log(12 / 0.1));
    double radius, alpha_radius, beta = 9;  // radii of the balls around the start: of (w, a, b), of alpha
    Counts counts;
    Saddle at, start, sum;  // sum: of the stage's iterates
    Vector sum_pos, sum_neg;
    L1Ball ball;

    static std::int64_t stages(std::int64_t n) {
        const double rows = static_cast<double>(n);
        return n < 2 ? 0 : static_cast<std::int64_t>(std::floor(0.5 * std::log2(2 * rows / std::log2(rows)))) - 1;
    }

    Fsauc(Shape shape, const double* p)
        : r(p[0]), eta(p[1]), n0(shape.n / stages(shape.n)), radius(2 * std::sqrt(3.0) * r),
          alpha_radius(2 * std::sqrt(2.0) * radius), at{Vector(static_cast<std::size_t>(shape.d)), 0, 0, 0}, start(at),
          sum(at), sum_pos(at.w.size()), sum_neg(at.w.size()) {}

    double step(Row x, bool positive) override {
        counts.add(positive);
        x.add_to(positive ? sum_pos : sum_neg, 1);
        const double s = x.dot(at.w);
        at.step(x, positive, counts.p, s, eta);
        ball.project(at.w, r);
        at.a = clipped(at.a, -r, r);
        at.b = clipped(at.b, -r, r);
        at.alpha = clipped(clipped(at.alpha, -2 * r, 2 * r), start.alpha - alpha_radius, start.alpha + alpha_radius);
        project_around_start();
        for (std::size_t j = 0; j < at.w.size(); ++j) sum.w[j] += at.w[j];
        sum.a += at.a;
        sum.b += at.b;
        if (++rows == n0) end_stage();
        return s;
    }

    void project_around_start() {
        const double squares = sum_of(at.w.size(), [&](std::size_t j) {
            const double gap = at.w[j] - start.w[j];
            return gap * gap;
        });
        const double distance =
            std::sqrt(squares + (at.a - start.a) * (at.a - start.a) + (at.b - start.b) * (at.b - start.b));
        if (distance <= radius) return;
        const double back = radius / distance;
        for (std::size_t j = 0; j < at.w.size(); ++j) at.w[j] = start.w[j] + (at.w[j] - start.w[j]) * back;
        at.a = start.a + (at.a - start.a) * back;
        at.b = start.b + (at.b - start.b) * back;
    }

    void end_stage() {
        const double stage = static_cast<double>(n0), q = std::min(counts.p, 1 - counts.p), k = 2 + root_l;
        radius /= 2;
        const double known = q * stage - std::sqrt(stage) * root_l, share = q - root_l / std::sqrt(stage);
        alpha_radius = known > 0 ? 2 * std::sqrt(2.0) * radius + 12 * std::sqrt(2.0) * k * r / std::sqrt(known) : 1e7;
        const double next_beta = share > 0 ? 9 + 288 * k * k / share : 1e7;
        eta = std::min(std::sqrt(next_beta / beta) * eta / 2, eta);
        beta = next_beta;
        const double mean_pos = counts.pos > 0 ? 1 / counts.pos : 0, mean_neg = counts.neg > 0 ? 1 / counts.neg : 0;
        for (double& wj : sum.w) wj /= stage;
        start = {sum.w, sum.a / stage, sum.b / stage, dot(sum.w, sum_neg) * mean_neg - dot(sum.w, sum_pos) * mean_pos};
        at = start;
        sum = {Vector(at.w.size()), 0, 0, 0};
        rows = 0;
    }

    void write_weights(double* out) const override {
        for (std::size_t j = 0; j < at.w.size(); ++j) out[j] = rows > 0 ? sum.w[j] / static_cast<double>(rows) : start.w[j];
    }
};

}  // namespace rarestream::published
