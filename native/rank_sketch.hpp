// The core of StreamingAuc: the order of the scores of one class in bounded memory, with a certified error of every rank.
// The algorithm and the proof of its bound: docs/metrics.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "score_sort.hpp"
#include "sketch_runs.hpp"

namespace rarestream {

struct SketchArrays;

// The newest rows are kept as they are. When there are `BUFFER_SIZE` of them they are sorted and every
// group of neighbours is replaced by one of them, which makes a run of `SKETCH_RUN_SIZE` points. `FAN_IN` runs of a level
// become one of the next level in the same way. A threshold cuts at most one group of a collapse, so each collapse
// moves the rank of any threshold by less than a group: the sums of what they may have moved it are kept.
class RankSketch {
public:
    static constexpr std::size_t BUFFER_SIZE = 32768, FAN_IN = 8;
    static constexpr int MAX_LEVELS = 16;  // a point then stands for 4 * 8^16 rows: more than there ever will be

    std::uint64_t rows() const { return unit_rows_ + weighted_rows_; }
    double weight() const { return static_cast<double>(unit_rows_) + weighted_sum_; }
    double squares() const { return static_cast<double>(unit_rows_) + weighted_squares_; }
    // By how much, in importance, the rank of a threshold may be too low and too high.
    double too_low() const { return error_.too_low; }
    double too_high() const { return error_.too_high; }

    // Makes space for so many more rows, or for as many as come before the next collapse; returns how many.
    std::size_t reserve(std::size_t rows) {
        const std::size_t wanted = std::min(BUFFER_SIZE, used_ + rows);
        if (buffer_.size() < wanted) buffer_.resize(std::min(BUFFER_SIZE, std::max(wanted, 2 * buffer_.size())));
        if (!buffer_weights_.empty()) buffer_weights_.resize(buffer_.size(), 1.0);
        return buffer_.size() - used_;
    }

    // Rows of importance 1 are written directly to buffer_end() after reserve(), then counted.
    double* buffer_end() { return buffer_.data() + used_; }
    void count_added(std::size_t rows) {
        unit_rows_ += rows;
        if (!buffer_weights_.empty()) std::fill_n(buffer_weights_.data() + used_, rows, 1.0);
        used_ += rows;
        if (used_ == BUFFER_SIZE) collapse_buffer();
    }

    void add(double score, double weight) {
        if (weight == 1.0) {
            ++unit_rows_;
        } else {
            ++weighted_rows_;
            weighted_sum_ += weight;
            weighted_squares_ += weight * weight;
        }
        push(score, weight);
    }

    void merge(const RankSketch& other) {
        for (std::size_t i = 0; i < other.used_; ++i)
            push(other.buffer_[i], other.buffer_weights_.empty() ? 1.0 : other.buffer_weights_[i]);
        if (levels_.size() < other.levels_.size()) levels_.resize(other.levels_.size());
        for (std::size_t l = 0; l < other.levels_.size(); ++l)
            levels_[l].insert(levels_[l].end(), other.levels_[l].begin(), other.levels_[l].end());
        unit_rows_ += other.unit_rows_;
        weighted_rows_ += other.weighted_rows_;
        weighted_sum_ += other.weighted_sum_;
        weighted_squares_ += other.weighted_squares_;
        error_.too_low += other.error_.too_low;
        error_.too_high += other.error_.too_high;
        collapse_full_levels(1);
    }

    // All points in ascending order, weights multiplied by `scale`.
    std::vector<Point> points(double scale) const {
        std::vector<Point> out, scratch;
        std::vector<std::size_t> ends;
        buffered_points(out);
        ends.push_back(out.size());
        std::size_t size = used_;
        for (const auto& runs : levels_)
            for (const SketchRun& run : runs) size += run.scores.size();
        out.reserve(size);
        for (std::size_t l = 0; l < levels_.size(); ++l)
            for (const SketchRun& run : levels_[l]) {
                for (std::size_t i = 0; i < run.scores.size(); ++i)
                    out.push_back({run.scores[i], run.weights.empty() ? point_weight(l + 1) : run.weights[i]});
                ends.push_back(out.size());
            }
        for (Point& point : out) point.weight *= scale;
        merge_runs(out, ends, scratch);
        return out;
    }

    // The sketch as plain arrays, and back: rank_sketch_arrays.hpp.
    SketchArrays to_arrays() const;
    static RankSketch from_arrays(const SketchArrays& in);

private:
    static double point_weight(std::size_t level) {
        return std::ldexp(static_cast<double>(BUFFER_SIZE / SKETCH_RUN_SIZE), 3 * (static_cast<int>(level) - 1));
    }

    void push(double score, double weight) {
        reserve(1);
        buffer_[used_] = score;
        if (weight != 1.0 && buffer_weights_.empty()) buffer_weights_.assign(buffer_.size(), 1.0);
        if (!buffer_weights_.empty()) buffer_weights_[used_] = weight;
        if (++used_ == BUFFER_SIZE) collapse_buffer();
    }

    void buffered_points(std::vector<Point>& out) const {
        out.clear();
        if (buffer_weights_.empty()) {
            std::vector<double> scores(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
            sort()(scores.data(), used_);
            for (const double score : scores) out.push_back({score, 1.0});
        } else {
            std::vector<Point> scratch;
            for (std::size_t i = 0; i < used_; ++i) out.push_back({buffer_[i], buffer_weights_[i]});
            radix_sort(out, scratch, [](const Point& p) { return key_of(p.score); });
        }
    }

    void collapse_buffer() {
        SketchRun run;
        if (buffer_weights_.empty()) {
            sort()(buffer_.data(), BUFFER_SIZE);
            run = thin(buffer_.data(), BUFFER_SIZE / SKETCH_RUN_SIZE, next_middle(BUFFER_SIZE / SKETCH_RUN_SIZE, 0), 1.0,
                       error_);
        } else {
            std::vector<Point> points;
            buffered_points(points);
            run = thin_weighted(points, error_);
            buffer_weights_.clear();
        }
        used_ = 0;
        if (levels_.empty()) levels_.emplace_back();
        levels_[0].push_back(std::move(run));
        collapse_full_levels(1);
    }

    // Collapses whatever level has its full number of runs, from `level` upwards.
    void collapse_full_levels(std::size_t level) {
        for (; level <= levels_.size(); ++level)
            while (levels_[level - 1].size() >= FAN_IN) collapse_level(level);
    }

    void collapse_level(std::size_t level) {
        auto& runs = levels_[level - 1];
        const auto last = runs.begin() + FAN_IN;
        const bool unweighted = std::all_of(runs.begin(), last, [](const SketchRun& run) { return run.weights.empty(); });
        SketchRun up;
        if (unweighted) {
            std::vector<double> scores;
            scores.reserve(FAN_IN * SKETCH_RUN_SIZE);
            for (auto run = runs.begin(); run != last; ++run)
                scores.insert(scores.end(), run->scores.begin(), run->scores.end());
            sort()(scores.data(), scores.size());
            up = thin(scores.data(), FAN_IN, next_middle(FAN_IN, level), point_weight(level), error_);
        } else {
            std::vector<Point> points, scratch;
            std::vector<std::size_t> ends;
            for (auto run = runs.begin(); run != last; ++run) {
                for (std::size_t i = 0; i < run->scores.size(); ++i)
                    points.push_back({run->scores[i], run->weights.empty() ? point_weight(level) : run->weights[i]});
                ends.push_back(points.size());
            }
            merge_runs(points, ends, scratch);
            up = thin_weighted(points, error_);
        }
        runs.erase(runs.begin(), last);
        if (levels_.size() == level) levels_.emplace_back();
        levels_[level].push_back(std::move(up));
    }

    // Which of a group's scores stays. An even group has two middle ones; they alternate, so that errors up and down
    // cancel.
    std::size_t next_middle(std::size_t group, std::size_t level) {
        const std::size_t middle = group / 2 - ((parity_ >> level) & 1);
        parity_ ^= std::uint64_t{1} << level;
        return middle;
    }

    // One per thread, as its scratch is larger than many a sketch.
    static ScoreSort& sort() {
        thread_local ScoreSort sorter;
        return sorter;
    }

    std::vector<double> buffer_, buffer_weights_;  // buffer_weights_ empty: every row counts 1
    std::size_t used_ = 0;                         // rows in the buffer
    std::vector<std::vector<SketchRun>> levels_;
    std::uint64_t unit_rows_ = 0, weighted_rows_ = 0, parity_ = 0;
    double weighted_sum_ = 0, weighted_squares_ = 0;
    RankError error_;
};

}  // namespace rarestream
