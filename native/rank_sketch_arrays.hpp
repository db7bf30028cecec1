// A RankSketch as plain arrays, as model files and pickles keep it, and back.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "rank_sketch.hpp"

namespace rarestream {

struct SketchArrays {
    std::vector<double> scores, weights;
    std::vector<std::int64_t> runs;    // (level, points, has weights) of every run; level 0 is the buffer, and first
    std::vector<std::int64_t> counts;  // rows of importance 1, other rows, parity of the collapses of each level
    std::vector<double> sums;          // importance of the other rows, its squares, too_low, too_high
};

inline SketchArrays RankSketch::to_arrays() const {
    SketchArrays out;
    const auto write = [&](std::int64_t level, const double* scores, const double* weights, std::size_t n) {
        out.runs.insert(out.runs.end(), {level, static_cast<std::int64_t>(n), weights != nullptr});
        out.scores.insert(out.scores.end(), scores, scores + n);
        if (weights) out.weights.insert(out.weights.end(), weights, weights + n);
    };
    write(0, buffer_.data(), buffer_weights_.empty() ? nullptr : buffer_weights_.data(), used_);
    for (std::size_t l = 0; l < levels_.size(); ++l)
        for (const SketchRun& run : levels_[l])
            write(static_cast<std::int64_t>(l) + 1, run.scores.data(), run.weights.empty() ? nullptr : run.weights.data(),
                  run.scores.size());
    out.counts = {static_cast<std::int64_t>(unit_rows_), static_cast<std::int64_t>(weighted_rows_),
                  static_cast<std::int64_t>(parity_)};
    out.sums = {weighted_sum_, weighted_squares_, error_.too_low, error_.too_high};
    return out;
}

// The arrays may come from anywhere: what to_arrays could not have written is refused.
inline RankSketch RankSketch::from_arrays(const SketchArrays& in) {
    const auto require = [](bool holds, const char* rule) {
        if (!holds) throw std::invalid_argument(rule);
    };
    require(in.counts.size() == 3 && in.sums.size() == 4 && in.runs.size() % 3 == 0 && in.runs.size() >= 3,
            "arrays of a sketch have the wrong sizes");
    for (const double sum : in.sums) require(std::isfinite(sum) && sum >= 0, "sums of a sketch must be finite and >= 0");
    for (const std::int64_t count : in.counts) require(count >= 0, "counts of a sketch must be >= 0");

    RankSketch out;
    out.unit_rows_ = static_cast<std::uint64_t>(in.counts[0]);
    out.weighted_rows_ = static_cast<std::uint64_t>(in.counts[1]);
    out.parity_ = static_cast<std::uint64_t>(in.counts[2]);
    out.weighted_sum_ = in.sums[0];
    out.weighted_squares_ = in.sums[1];
    out.error_.too_low = in.sums[2];
    out.error_.too_high = in.sums[3];

    std::size_t at = 0, weight_at = 0;
    double rows = 0;
    CompensatedSum total;
    for (std::size_t r = 0; r < in.runs.size(); r += 3) {
        const std::int64_t level = in.runs[r], size = in.runs[r + 1], weighted = in.runs[r + 2];
        require((r == 0) == (level == 0) && level <= MAX_LEVELS, "levels of a sketch run from 0 to 16, level 0 first");
        require(weighted == 0 || weighted == 1, "a run of a sketch has weights (1) or not (0)");
        const std::int64_t max_size = level == 0 ? BUFFER_SIZE - 1 : SKETCH_RUN_SIZE;
        require(size >= 0 && size <= max_size && (level == 0 || size > 0) && (level == 0 || weighted || size == max_size),
                "a run of a sketch has an impossible size");
        const std::size_t n = static_cast<std::size_t>(size);
        require(n <= in.scores.size() - at && (!weighted || n <= in.weights.size() - weight_at),
                "runs of a sketch hold more points than there are");
        const double* scores = in.scores.data() + at;
        const double* weights = weighted ? in.weights.data() + weight_at : nullptr;
        for (std::size_t i = 0; i < n; ++i) {
            require(scores[i] == scores[i], "a score of a sketch is NaN");
            require(level == 0 || i == 0 || scores[i - 1] <= scores[i], "a run of a sketch does not ascend");
            require(!weights || (weights[i] > 0 && std::isfinite(weights[i])), "a weight of a sketch is not > 0");
            total.add(weights ? weights[i] : level == 0 ? 1.0 : point_weight(static_cast<std::size_t>(level)));
        }
        if (level == 0) {
            out.buffer_.assign(scores, scores + n);
            if (weights) out.buffer_weights_.assign(weights, weights + n);
            out.used_ = n;
        } else {
            const std::size_t l = static_cast<std::size_t>(level);
            require(out.levels_.size() <= l, "levels of a sketch must not fall");
            if (out.levels_.size() < l) out.levels_.resize(l);
            require(out.levels_[l - 1].size() + 1 < FAN_IN, "a level of a sketch has more than 7 runs");
            SketchRun run;
            run.scores.assign(scores, scores + n);
            if (weights) run.weights.assign(weights, weights + n);
            out.levels_[l - 1].push_back(std::move(run));
        }
        at += n;
        weight_at += weighted ? n : 0;
        rows += level == 0 ? static_cast<double>(n)
                           : std::ldexp(static_cast<double>(BUFFER_SIZE), 3 * static_cast<int>(level - 1));
    }
    require(at == in.scores.size() && weight_at == in.weights.size(), "a sketch holds points that belong to no run");
    require(in.counts[0] <= std::int64_t{1} << 62 && in.counts[1] <= std::int64_t{1} << 61 &&
                static_cast<double>(out.rows()) == rows && (out.weighted_rows_ == 0) == (out.weighted_sum_ == 0),
            "rows of a sketch do not add up");
    require(std::fabs(total.total() - out.weight()) <= 1e-6 * out.weight(), "weights of a sketch do not add up");
    require(out.error_.too_low <= out.weight() && out.error_.too_high <= out.weight(),
            "error of a sketch exceeds its weight");
    return out;
}

}  // namespace rarestream
