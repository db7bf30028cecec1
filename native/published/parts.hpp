// What several published methods share. The learners use nothing of it, and it uses nothing of theirs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace rarestream::published {

using Vector = std::vector<double>;

struct Row {
    const std::int32_t* index;
    const double* value;
    std::int64_t size;

    template <class F>
    void each(F f) const {
        for (std::int64_t p = 0; p < size; ++p) f(static_cast<std::size_t>(index[p]), value[p]);
    }

    double dot(const Vector& w) const {
        double s = 0;
        each([&](std::size_t j, double xj) { s += w[j] * xj; });
        return s;
    }

    void add_to(Vector& w, double factor) const {
        each([&](std::size_t j, double xj) { w[j] += factor * xj; });
    }
};

struct Shape {
    std::int64_t d, n;  // features, rows in total
};

struct Method {
    virtual ~Method() = default;
    virtual double step(Row x, bool positive) = 0;      // learns the row; returns the score it had before
    virtual void write_weights(double* out) const = 0;  // the model that was evaluated, d numbers
};

// left * sign(x) * right, as it was compiled. The authors' macro wrote sign(x) as (x > 0) - (x < 0) without outer
// parentheses: a factor on its left reaches only the first comparison, and one on its right only the second.
inline double sign_between(double left, double x, double right) {
    return left * (x > 0 ? 1.0 : 0.0) - (x < 0 ? 1.0 : 0.0) * right;
}

// Slope of log(1 + exp(-y s)).
inline double logistic_slope(double y, double s) { return -y / (1 + std::exp(y * s)); }

inline double clipped(double x, double low, double high) { return std::min(std::max(x, low), high); }

// Rows by class and the share of positives, the current row included.
struct Counts {
    double pos = 0, neg = 0, p = 0;

    double rows() const { return pos + neg; }

    void add(bool positive) {
        (positive ? pos : neg) += 1;
        p = ((rows() - 1) * p + (positive ? 1 : 0)) / rows();
    }
};

// The sum of f(j) over j < n in eight lanes: a plain sum in order could not be vectorised.
template <class F>
double sum_of(std::size_t n, F f) {
    double lane[8] = {};
    std::size_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (std::size_t l = 0; l < 8; ++l) lane[l] += f(j + l);
    for (; j < n; ++j) lane[j % 8] += f(j);
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

inline double dot(const Vector& u, const Vector& w) {
    return sum_of(u.size(), [&](std::size_t j) { return u[j] * w[j]; });
}

// Projects w on the l1 ball: soft-thresholding at the t with sum max(|w| - t, 0) = radius, found by halving the
// candidates around random pivots, in expected linear time (Duchi et al., ICML 2008).
class L1Ball {
    Vector sizes_;
    std::minstd_rand random_;

    double threshold(double radius) {
        auto begin = sizes_.begin(), end = sizes_.end();
        double sum = 0, count = 0;  // of the sizes known to be above the threshold: all before `begin`
        while (begin != end) {
            const double pivot = begin[static_cast<std::ptrdiff_t>(random_() % static_cast<std::size_t>(end - begin))];
            const auto middle = std::partition(begin, end, [&](double size) { return size > pivot; });
            double sum_larger = 0;
            for (auto at = begin; at != middle; ++at) sum_larger += *at;
            const double larger = static_cast<double>(middle - begin);
            if (sum + sum_larger - (count + larger) * pivot >= radius) {
                end = middle;
            } else {  // the pivot is above the threshold, and so are its equals
                begin = std::partition(middle, end, [&](double size) { return size == pivot; });
                const double equal = static_cast<double>(begin - middle);
                sum += sum_larger + equal * pivot;
                count += larger + equal;
            }
        }
        return (sum - radius) / count;
    }

public:
    void project(Vector& w, double radius) {
        if (sum_of(w.size(), [&](std::size_t j) { return std::fabs(w[j]); }) <= radius) return;
        sizes_.clear();
        for (const double wj : w)
            if (wj != 0) sizes_.push_back(std::fabs(wj));
        const double t = threshold(radius);
        for (double& wj : w) wj = std::copysign(std::max(std::fabs(wj) - t, 0.0), wj);
    }
};

}  // namespace rarestream::published
