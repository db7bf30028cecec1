// StreamingAuc's core: the order of each class's scores in bounded memory, with a certified error of every rank.
// The algorithm and the proof of its bound: docs/metrics.md. Nothing here knows Python.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "order.hpp"

namespace rarestream {

// A sum that carries its rounding error along.
struct Sum {
    double value = 0, rest = 0;
    void add(double x) {
        const double next = value + x, part = next - value;
        rest += (value - (next - part)) + (x - part);
        value = next;
    }
    double total() const { return value + rest; }
};

// What a sketch is on disk: plain arrays. See RankSketch::freeze.
struct FrozenRanks {
    std::vector<double> scores, weights;
    std::vector<std::int64_t> runs;    // (level, points, weighted or not) of every run, the rows kept as they are first
    std::vector<std::int64_t> counts;  // rows of importance 1, other rows, turns
    std::vector<double> sums;          // importance of the other rows, its squares, too_low, too_high
};

// The scores of one class. The newest rows are kept as they came; when `raw_size` are there they are sorted and every
// group of neighbours is replaced by one of them, which makes a run of `run_size` points. `fan_in` runs of a level
// become one of the next level in the same way. A threshold cuts at most one group of a collapse, so each collapse
// moves the rank of any threshold by less than a group: the sums of what they may have moved it are kept.
class RankSketch {
  public:
    static constexpr std::size_t raw_size = 32768, run_size = 8192, fan_in = 8;
    static constexpr int max_levels = 16;  // 4 * 8^16 rows a point: more than there ever will be

    std::uint64_t rows() const { return plain_ + others_; }
    double weight() const { return static_cast<double>(plain_) + other_weight_; }
    double squares() const { return static_cast<double>(plain_) + other_squares_; }
    // By how much, in importance, the rank of a threshold may be too low and too high.
    double too_low() const { return too_low_; }
    double too_high() const { return too_high_; }

    // Room for so many more rows, unless a collapse comes first; how many rows fit.
    std::size_t room(std::size_t rows) {
        const std::size_t wanted = std::min(raw_size, used_ + rows);
        if (raw_.size() < wanted) raw_.resize(std::min(raw_size, std::max(wanted, 2 * raw_.size())));
        if (!raw_weights_.empty()) raw_weights_.resize(raw_.size(), 1.0);
        return raw_.size() - used_;
    }

    // Rows of importance 1, written straight into what room() gave, then counted.
    double* raw_end() { return raw_.data() + used_; }
    void take(std::size_t rows) {
        plain_ += rows;
        if (!raw_weights_.empty()) std::fill_n(raw_weights_.data() + used_, rows, 1.0);
        used_ += rows;
        if (used_ == raw_size) collapse_raw();
    }

    void add(double score, double weight) {
        if (weight == 1.0) {
            ++plain_;
        } else {
            ++others_;
            other_weight_ += weight;
            other_squares_ += weight * weight;
        }
        push(score, weight);
    }

    void merge(const RankSketch& other) {
        for (std::size_t i = 0; i < other.used_; ++i)
            push(other.raw_[i], other.raw_weights_.empty() ? 1.0 : other.raw_weights_[i]);
        if (levels_.size() < other.levels_.size()) levels_.resize(other.levels_.size());
        for (std::size_t l = 0; l < other.levels_.size(); ++l)
            levels_[l].insert(levels_[l].end(), other.levels_[l].begin(), other.levels_[l].end());
        plain_ += other.plain_;
        others_ += other.others_;
        other_weight_ += other.other_weight_;
        other_squares_ += other.other_squares_;
        too_low_ += other.too_low_;
        too_high_ += other.too_high_;
        settle(1);
    }

    // All points in ascending order, weights multiplied by `scale`.
    std::vector<Point> points(double scale) const {
        std::vector<Point> out, scratch;
        std::vector<std::size_t> ends;
        raw_points(out);
        ends.push_back(out.size());
        std::size_t size = used_;
        for (const auto& runs : levels_)
            for (const Run& run : runs) size += run.scores.size();
        out.reserve(size);
        for (std::size_t l = 0; l < levels_.size(); ++l)
            for (const Run& run : levels_[l]) {
                for (std::size_t i = 0; i < run.scores.size(); ++i)
                    out.push_back({run.scores[i], run.weights.empty() ? unit_of(l + 1) : run.weights[i]});
                ends.push_back(out.size());
            }
        for (Point& point : out) point.weight *= scale;
        merge_runs(out, ends, scratch);
        return out;
    }

    FrozenRanks freeze() const {
        FrozenRanks out;
        const auto write = [&](std::int64_t level, const double* scores, const double* weights, std::size_t n) {
            out.runs.insert(out.runs.end(), {level, static_cast<std::int64_t>(n), weights != nullptr});
            out.scores.insert(out.scores.end(), scores, scores + n);
            if (weights) out.weights.insert(out.weights.end(), weights, weights + n);
        };
        write(0, raw_.data(), raw_weights_.empty() ? nullptr : raw_weights_.data(), used_);
        for (std::size_t l = 0; l < levels_.size(); ++l)
            for (const Run& run : levels_[l])
                write(static_cast<std::int64_t>(l) + 1, run.scores.data(),
                      run.weights.empty() ? nullptr : run.weights.data(), run.scores.size());
        out.counts = {static_cast<std::int64_t>(plain_), static_cast<std::int64_t>(others_),
                      static_cast<std::int64_t>(turns_)};
        out.sums = {other_weight_, other_squares_, too_low_, too_high_};
        return out;
    }

    // The sketch that was frozen. The arrays may come from anywhere: what could not have been written is refused.
    static RankSketch thaw(const FrozenRanks& in);

  private:
    struct Run {
        std::vector<double> scores;   // ascending
        std::vector<double> weights;  // none: all alike, unit_of(level)
    };

    static double unit_of(std::size_t level) {
        return std::ldexp(static_cast<double>(raw_size / run_size), 3 * (static_cast<int>(level) - 1));
    }

    void push(double score, double weight) {
        room(1);
        raw_[used_] = score;
        if (weight != 1.0 && raw_weights_.empty()) raw_weights_.assign(raw_.size(), 1.0);
        if (!raw_weights_.empty()) raw_weights_[used_] = weight;
        if (++used_ == raw_size) collapse_raw();
    }

    void raw_points(std::vector<Point>& out) const {
        out.clear();
        if (raw_weights_.empty()) {
            std::vector<double> scores(raw_.begin(), raw_.begin() + static_cast<std::ptrdiff_t>(used_));
            sort()(scores.data(), used_);
            for (const double score : scores) out.push_back({score, 1.0});
        } else {
            std::vector<Point> scratch;
            for (std::size_t i = 0; i < used_; ++i) out.push_back({raw_[i], raw_weights_[i]});
            radix_sort(out, scratch, [](const Point& p) { return key_of(p.score); });
        }
    }

    void collapse_raw() {
        Run run;
        if (raw_weights_.empty()) {
            sort()(raw_.data(), raw_size);
            run = thinned(raw_.data(), raw_size / run_size, 1.0, 0);
        } else {
            std::vector<Point> points;
            raw_points(points);
            run = condensed(points);
            raw_weights_.clear();
        }
        used_ = 0;
        if (levels_.empty()) levels_.emplace_back();
        levels_[0].push_back(std::move(run));
        settle(1);
    }

    // Collapses whatever level has its full number of runs, from `level` upwards.
    void settle(std::size_t level) {
        for (; level <= levels_.size(); ++level)
            while (levels_[level - 1].size() >= fan_in) collapse_level(level);
    }

    void collapse_level(std::size_t level) {
        auto& runs = levels_[level - 1];
        const auto last = runs.begin() + fan_in;
        const bool alike = std::all_of(runs.begin(), last, [](const Run& run) { return run.weights.empty(); });
        Run up;
        if (alike) {
            std::vector<double> scores;
            scores.reserve(fan_in * run_size);
            for (auto run = runs.begin(); run != last; ++run) scores.insert(scores.end(), run->scores.begin(), run->scores.end());
            sort()(scores.data(), scores.size());
            up = thinned(scores.data(), fan_in, unit_of(level), level);
        } else {
            std::vector<Point> points, scratch;
            std::vector<std::size_t> ends;
            for (auto run = runs.begin(); run != last; ++run) {
                for (std::size_t i = 0; i < run->scores.size(); ++i)
                    points.push_back({run->scores[i], run->weights.empty() ? unit_of(level) : run->weights[i]});
                ends.push_back(points.size());
            }
            merge_runs(points, ends, scratch);
            up = condensed(points);
        }
        runs.erase(runs.begin(), last);
        if (levels_.size() == level) levels_.emplace_back();
        levels_[level].push_back(std::move(up));
    }

    // The middle of every group of `group` neighbours; an even group has two middles, which take turns so that what
    // is lost below and above balances.
    Run thinned(const double* scores, std::size_t group, double unit, std::size_t level) {
        const std::size_t middle = group / 2 - ((turns_ >> level) & 1);
        turns_ ^= std::uint64_t{1} << level;
        Run run;
        run.scores.resize(run_size);
        std::size_t below = 0, above = 0;  // most neighbours of a chosen score that lie strictly on one side of it
        for (std::size_t g = 0; g < run_size; ++g, scores += group) {
            const double chosen = run.scores[g] = scores[middle];
            while (below < middle && scores[below] < chosen) ++below;
            while (above < group - 1 - middle && scores[group - 1 - above] > chosen) ++above;
        }
        too_low_ += static_cast<double>(below) * unit;
        too_high_ += static_cast<double>(above) * unit;
        return run;
    }

    // The same for points of unequal weight: groups of at most twice the mean weight, each at its weighted median.
    Run condensed(std::vector<Point>& points) {
        std::size_t n = 0;
        Sum total;
        for (const Point& point : points) {  // equal scores join at no loss
            total.add(point.weight);
            if (n && points[n - 1].score == point.score) points[n - 1].weight += point.weight;
            else points[n++] = point;
        }
        points.resize(n);
        double limit = total.total() / run_size * (1 + 1e-12);
        while (groups(points, limit) > run_size) limit *= 1.125;  // ends by 2 * mean: two neighbours exceed the limit

        Run run;
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
        too_low_ += below;
        too_high_ += above;
        return run;
    }

    static std::size_t group_end(const std::vector<Point>& points, std::size_t start, double limit) {
        double whole = points[start].weight;
        std::size_t end = start + 1;
        while (end < points.size() && whole + points[end].weight <= limit) whole += points[end++].weight;
        return end;
    }

    static std::size_t groups(const std::vector<Point>& points, double limit) {
        std::size_t count = 0;
        for (std::size_t start = 0; start < points.size(); start = group_end(points, start, limit)) ++count;
        return count;
    }

    // One per thread, as its scratch is larger than many a sketch.
    static ScoreSort& sort() {
        thread_local ScoreSort sorter;
        return sorter;
    }

    std::vector<double> raw_, raw_weights_;  // raw_weights_ empty: every raw row counts 1
    std::size_t used_ = 0;                   // raw rows there are
    std::vector<std::vector<Run>> levels_;
    std::uint64_t plain_ = 0, others_ = 0, turns_ = 0;
    double other_weight_ = 0, other_squares_ = 0, too_low_ = 0, too_high_ = 0;
};

inline RankSketch RankSketch::thaw(const FrozenRanks& in) {
    const auto require = [](bool holds, const char* rule) {
        if (!holds) throw std::invalid_argument(rule);
    };
    require(in.counts.size() == 3 && in.sums.size() == 4 && in.runs.size() % 3 == 0 && in.runs.size() >= 3,
            "arrays of a sketch have the wrong sizes");
    for (const double sum : in.sums) require(std::isfinite(sum) && sum >= 0, "sums of a sketch must be finite and >= 0");
    for (const std::int64_t count : in.counts) require(count >= 0, "counts of a sketch must be >= 0");

    RankSketch out;
    out.plain_ = static_cast<std::uint64_t>(in.counts[0]);
    out.others_ = static_cast<std::uint64_t>(in.counts[1]);
    out.turns_ = static_cast<std::uint64_t>(in.counts[2]);
    out.other_weight_ = in.sums[0];
    out.other_squares_ = in.sums[1];
    out.too_low_ = in.sums[2];
    out.too_high_ = in.sums[3];

    std::size_t at = 0, weight_at = 0;
    double rows = 0;
    Sum total;
    for (std::size_t r = 0; r < in.runs.size(); r += 3) {
        const std::int64_t level = in.runs[r], size = in.runs[r + 1], weighted = in.runs[r + 2];
        require((r == 0) == (level == 0) && level <= max_levels, "levels of a sketch run from 0 to 16, level 0 first");
        require(weighted == 0 || weighted == 1, "a run of a sketch has weights (1) or not (0)");
        const std::int64_t most = level == 0 ? raw_size - 1 : run_size;
        require(size >= 0 && size <= most && (level == 0 || size > 0) && (level == 0 || weighted || size == most),
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
            total.add(weights ? weights[i] : level == 0 ? 1.0 : unit_of(static_cast<std::size_t>(level)));
        }
        if (level == 0) {
            out.raw_.assign(scores, scores + n);
            if (weights) out.raw_weights_.assign(weights, weights + n);
            out.used_ = n;
        } else {
            const std::size_t l = static_cast<std::size_t>(level);
            require(out.levels_.size() <= l, "levels of a sketch must not fall");
            if (out.levels_.size() < l) out.levels_.resize(l);
            require(out.levels_[l - 1].size() + 1 < fan_in, "a level of a sketch has more than 7 runs");
            Run run;
            run.scores.assign(scores, scores + n);
            if (weights) run.weights.assign(weights, weights + n);
            out.levels_[l - 1].push_back(std::move(run));
        }
        at += n;
        weight_at += weighted ? n : 0;
        rows += level == 0 ? static_cast<double>(n) : std::ldexp(static_cast<double>(raw_size), 3 * static_cast<int>(level - 1));
    }
    require(at == in.scores.size() && weight_at == in.weights.size(), "a sketch holds points that belong to no run");
    require(in.counts[0] <= std::int64_t{1} << 62 && in.counts[1] <= std::int64_t{1} << 61 &&
                static_cast<double>(out.rows()) == rows && (out.others_ == 0) == (out.other_weight_ == 0),
            "rows of a sketch do not add up");
    require(std::fabs(total.total() - out.weight()) <= 1e-6 * out.weight(), "weights of a sketch do not add up");
    require(out.too_low_ <= out.weight() && out.too_high_ <= out.weight(), "error of a sketch exceeds its weight");
    return out;
}

}  // namespace rarestream
