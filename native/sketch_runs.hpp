// Sorted runs of a RankSketch, and how many sorted scores are reduced to one run: every group of neighbours is replaced by
// one of them. A threshold lies within at most one group, so its rank changes by less than the weight of that group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compensated_sum.hpp"
#include "score_sort.hpp"

namespace rarestream {

constexpr std::size_t SKETCH_RUN_SIZE = 8192;  // points of a run

struct SketchRun {
    std::vector<double> scores;   // ascending
    std::vector<double> weights;  // empty: all points of the level weigh the same
};

// By how much, in importance, the rank of a threshold may be too low and too high.
struct RankError {
    double too_low = 0, too_high = 0;
};

// Reduces SKETCH_RUN_SIZE groups of `group` scores, each of weight `unit`, to the score at `middle` of every group.
inline SketchRun thin(const double* scores, std::size_t group, std::size_t middle, double unit, RankError& error) {
    SketchRun run;
    run.scores.resize(SKETCH_RUN_SIZE);
    std::size_t below = 0, above = 0;  // the most neighbours of a chosen score that lie strictly on one side of it
    for (std::size_t g = 0; g < SKETCH_RUN_SIZE; ++g, scores += group) {
        const double chosen = run.scores[g] = scores[middle];
        while (below < middle && scores[below] < chosen) ++below;
        while (above < group - 1 - middle && scores[group - 1 - above] > chosen) ++above;
    }
    error.too_low += static_cast<double>(below) * unit;
    error.too_high += static_cast<double>(above) * unit;
    return run;
}

// Where the group that begins at `start` ends: it weighs at most `limit`, or is a single point.
inline std::size_t group_end(const std::vector<Point>& points, std::size_t start, double limit) {
    double weight = points[start].weight;
    std::size_t end = start + 1;
    while (end < points.size() && weight + points[end].weight <= limit) weight += points[end++].weight;
    return end;
}

inline std::size_t count_groups(const std::vector<Point>& points, double limit) {
    std::size_t count = 0;
    for (std::size_t start = 0; start < points.size(); start = group_end(points, start, limit)) ++count;
    return count;
}

// The same for points of unequal weight: groups of at most twice the mean weight, each replaced by its weighted median.
inline SketchRun thin_weighted(std::vector<Point>& points, RankError& error) {
    std::size_t n = 0;
    CompensatedSum total;
    for (const Point& point : points) {  // equal scores become one point, without an error
        total.add(point.weight);
        if (n && points[n - 1].score == point.score)
            points[n - 1].weight += point.weight;
        else
            points[n++] = point;
    }
    points.resize(n);
    double limit = total.total() / SKETCH_RUN_SIZE * (1 + 1e-12);
    // This ends by twice the mean weight: any two adjacent groups together exceed the limit.
    while (count_groups(points, limit) > SKETCH_RUN_SIZE) limit *= 1.125;

    SketchRun run;
    double below = 0, above = 0;
    for (std::size_t start = 0; start < n;) {
        const std::size_t end = group_end(points, start, limit);
        double whole = 0;
        for (std::size_t i = start; i < end; ++i) whole += points[i].weight;
        std::size_t middle = start;
        double under = 0;
        while (middle + 1 < end && under + points[middle].weight < whole / 2) under += points[middle++].weight;
        below = std::max(below, under);
        if (middle + 1 < end) above = std::max(above, whole - under - points[middle].weight);
        run.scores.push_back(points[middle].score);
        run.weights.push_back(whole);
        start = end;
    }
    error.too_low += below;
    error.too_high += above;
    return run;
}

}  // namespace rarestream
