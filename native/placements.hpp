// AUC from placements, where rows have importances: the placement of a row is the share of the other class that its score
// is on the right side of, where a tie counts 1/2; the AUC is the mean placement of either class.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "compensated_sum.hpp"
#include "score_sort.hpp"

namespace rarestream {

// The AUC, where a tie counts 1/2, and the variance of each class's placements.
struct PlacementStats {
    double auc = 0, spread_pos = 0, spread_neg = 0;
};

// Calls act(p, q, pos_below, neg_below) at every distinct score, ascending: p and q are the weights at it.
template <class Act>
void sweep(const std::vector<Point>& pos, const std::vector<Point>& neg, Act act) {
    CompensatedSum pos_below, neg_below;
    for (std::size_t i = 0, j = 0; i < pos.size() || j < neg.size();) {
        const double score =
            j == neg.size() || (i < pos.size() && pos[i].score < neg[j].score) ? pos[i].score : neg[j].score;
        double p = 0, q = 0;
        for (; i < pos.size() && pos[i].score == score; ++i) p += pos[i].weight;
        for (; j < neg.size() && neg[j].score == score; ++j) q += neg[j].weight;
        act(p, q, pos_below.total(), neg_below.total());
        pos_below.add(p);
        neg_below.add(q);
    }
}

// Both sets ascend and neither is empty.
inline PlacementStats placement_stats(const std::vector<Point>& pos, const std::vector<Point>& neg) {
    CompensatedSum wins, all_pos, all_neg;
    sweep(pos, neg, [&](double p, double q, double, double neg_below) {
        wins.add(p * (neg_below + q / 2));
        all_pos.add(p);
        all_neg.add(q);
    });
    PlacementStats out;
    const double whole_pos = all_pos.total(), whole_neg = all_neg.total();
    out.auc = std::min(1.0, wins.total() / (whole_pos * whole_neg));  // rounding must not give more than 1
    CompensatedSum spread_pos, spread_neg;  // a second sweep: a difference of squares would lose digits
    sweep(pos, neg, [&](double p, double q, double pos_below, double neg_below) {
        const double at_pos = (neg_below + q / 2) / whole_neg - out.auc;
        const double at_neg = 1 - (pos_below + p / 2) / whole_pos - out.auc;
        spread_pos.add(p * at_pos * at_pos);
        spread_neg.add(q * at_neg * at_neg);
    });
    out.spread_pos = spread_pos.total() / whole_pos;
    out.spread_neg = spread_neg.total() / whole_neg;
    return out;
}

// A power of two that keeps products of huge or tiny weights within range, and is 1 for all others.
inline double range_factor(double weight) {
    const int power = std::ilogb(weight);
    return std::abs(power) < 200 ? 1.0 : std::ldexp(1.0, std::max(-1000, std::min(1000, -power)));
}

// The rows of each class with an importance above 0, ascending, their weights scaled to a moderate range. An AUC is a mean
// over pairs, so each class may have a factor of its own; where weights of both are added (`together`), both have the same.
struct ClassPoints {
    std::vector<Point> pos, neg;

    template <class Score>
    ClassPoints(const std::int8_t* labels, const Score* scores, const double* importances, std::size_t n,
                bool together = false) {
        for (std::size_t i = 0; i < n; ++i) {
            const double weight = importances ? importances[i] : 1.0;
            if (weight > 0) (labels[i] > 0 ? pos : neg).push_back({static_cast<double>(scores[i]), weight});
        }
        double largest[2] = {0, 0};
        std::vector<Point> scratch;
        for (const int c : {0, 1}) {
            std::vector<Point>& points = c ? pos : neg;
            radix_sort(points, scratch, [](const Point& p) { return key_of(p.score); });
            for (const Point& p : points) largest[c] = std::max(largest[c], p.weight);
        }
        if (together) largest[0] = largest[1] = std::max(largest[0], largest[1]);
        for (const int c : {0, 1}) {
            const double scale = largest[c] > 0 ? range_factor(largest[c]) : 1.0;
            if (scale == 1.0) continue;
            for (Point& p : c ? pos : neg) p.weight *= scale;
        }
    }
};

// Writes the placement of every row where all count alike: what `placements` gives, with keys of 32 bits and whole numbers.
inline void plain_placements(const std::int8_t* labels, const float* scores, std::size_t n, double* out) {
    constexpr int digit = 11, passes = 3;
    constexpr std::uint32_t mask = (1u << digit) - 1;
    std::vector<std::uint64_t> rows(n), scratch(n);  // the key, the number of the row, and whether it is positive
    std::vector<std::uint32_t> counts(static_cast<std::size_t>(passes) << digit, 0);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t key = key_of(scores[i]);
        rows[i] = std::uint64_t{key} << 32 | i << 1 | (labels[i] > 0);
        for (int pass = 0; pass < passes; ++pass) ++counts[(pass << digit) + ((key >> (pass * digit)) & mask)];
    }
    for (int pass = 0; pass < passes; ++pass) {
        std::uint32_t* const count = counts.data() + (pass << digit);
        std::uint32_t start = 0;
        for (std::uint32_t d = 0; d <= mask; ++d) {
            const std::uint32_t size = count[d];
            count[d] = start;
            start += size;
        }
        const int shift = 32 + pass * digit;
        for (const std::uint64_t row : rows) scratch[count[(row >> shift) & mask]++] = row;
        rows.swap(scratch);
    }
    std::size_t all[2] = {0, 0}, below[2] = {0, 0};  // of the negatives, of the positives
    for (std::size_t i = 0; i < n; ++i) ++all[labels[i] > 0];
    const double totals[2] = {static_cast<double>(all[0]), static_cast<double>(all[1])};
    for (std::size_t start = 0, end = 0; start < n; start = end) {
        std::size_t here[2] = {0, 0};
        for (; end < n && rows[end] >> 32 == rows[start] >> 32; ++end) ++here[rows[end] & 1];
        for (std::size_t i = start; i < end; ++i) {
            const bool positive = rows[i] & 1;
            const double found = static_cast<double>(below[!positive]) + static_cast<double>(here[!positive]) / 2;
            const double share = found / totals[!positive];
            out[(rows[i] & 0xffffffff) >> 1] = positive ? share : 1 - share;
        }
        for (const int c : {0, 1}) below[c] += here[c];
    }
}

// Writes the placement of every row. Both classes must have rows.
template <class Score>
void placements(const std::int8_t* labels, const Score* scores, const double* importances, std::size_t n, double* out) {
    if constexpr (std::is_same_v<Score, float>)
        if (!importances && n < std::size_t{1} << 31) return plain_placements(labels, scores, n, out);
    struct Row {
        std::uint64_t key;
        std::size_t row;
    };
    std::vector<Row> rows(n), scratch;
    for (std::size_t i = 0; i < n; ++i) rows[i] = {key_of(static_cast<double>(scores[i])), i};
    radix_sort(rows, scratch, [](const Row& r) { return r.key; });
    double largest[2] = {0, 0};
    for (std::size_t i = 0; i < n; ++i) {
        double& maximum = largest[labels[i] > 0];
        maximum = std::max(maximum, importances ? importances[i] : 1.0);
    }
    const double scale[2] = {range_factor(largest[0]), range_factor(largest[1])};
    CompensatedSum below[2];  // of the negatives, of the positives
    for (std::size_t start = 0, end = 0; start < n; start = end) {
        CompensatedSum here[2];
        for (; end < n && rows[end].key == rows[start].key; ++end)
            here[labels[rows[end].row] > 0].add(importances ? importances[rows[end].row] * scale[labels[rows[end].row] > 0]
                                                            : 1.0);
        for (std::size_t i = start; i < end; ++i) {
            const int other = labels[rows[i].row] <= 0;
            out[rows[i].row] = below[other].total() + here[other].total() / 2;
        }
        for (const int c : {0, 1}) below[c].add(here[c].total());
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = labels[i] > 0 ? out[i] / below[0].total() : 1 - out[i] / below[1].total();
}

// The standard errors of the differences between the AUCs of scorers on the same rows, after DeLong: the variance of such a
// difference is that of the mean difference of the two scorers' placements. The rows of the positives come first.
class PlacementGaps {
    struct Class {
        std::size_t first = 0, rows = 0;
        std::vector<double> shares;  // of the class's importance; empty where rows have none
        double count = 0;            // effective number of rows
    };
    Class classes_[2];
    std::vector<double> gaps_;  // of the rows of a class

    // In four partial sums, always in this order.
    template <class Term>
    static double sum(std::size_t n, Term&& term) {
        double part[4] = {0, 0, 0, 0};
        std::size_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (std::size_t l = 0; l < 4; ++l) part[l] += term(i + l);
        for (; i < n; ++i) part[0] += term(i);
        return (part[0] + part[1]) + (part[2] + part[3]);
    }

    // The variance of the mean of the gaps, which are those of this class.
    double variance(const Class& mine) {
        if (!(mine.count > 1)) return std::numeric_limits<double>::infinity();
        const std::size_t n = mine.rows;
        const double* const gaps = gaps_.data();
        const auto weighted = [&](auto&& value) {
            return mine.shares.empty() ? sum(n, value) / static_cast<double>(n)
                                       : sum(n, [&](std::size_t i) { return value(i) * mine.shares[i]; });
        };
        const double mean = weighted([=](std::size_t i) { return gaps[i]; });
        return weighted([=](std::size_t i) { return (gaps[i] - mean) * (gaps[i] - mean); }) / (mine.count - 1);
    }

public:
    PlacementGaps(std::size_t positives, const double* importances, std::size_t n) {
        classes_[0] = {positives, n - positives, {}, static_cast<double>(n - positives)};
        classes_[1] = {0, positives, {}, static_cast<double>(positives)};
        gaps_.resize(std::max(positives, n - positives));
        for (Class& one : classes_) {
            if (!importances || !one.rows) continue;
            const double* const mine = importances + one.first;
            const double largest = *std::max_element(mine, mine + one.rows);
            one.shares.assign(mine, mine + one.rows);
            for (double& share : one.shares) share /= largest;  // else sums may overflow
            const double total = sum(one.rows, [&](std::size_t i) { return one.shares[i]; });
            for (double& share : one.shares) share /= total;
            one.count = 1 / sum(one.rows, [&](std::size_t i) { return one.shares[i] * one.shares[i]; });
        }
    }

    // Infinite if a class has one row; 0 if the two rank alike, however few the rows.
    double error(const double* placed, const double* other) {
        double total = 0;
        bool differ = false;
        for (const Class& one : classes_) {
            for (std::size_t i = 0; i < one.rows; ++i) {
                gaps_[i] = placed[one.first + i] - other[one.first + i];
                differ |= gaps_[i] != 0;
            }
            total += variance(one);
        }
        return differ ? std::sqrt(total) : 0.0;
    }
};

}  // namespace rarestream
