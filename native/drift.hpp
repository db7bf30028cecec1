// Whether the AUC of a stream has fallen. Maths: src/rarestream/metrics/drift.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "portable_math.hpp"

namespace rarestream {

constexpr int BETS = 8;  // bets of different size, side by side
constexpr double LARGEST_BET =
    0.64;                         // as a share of the largest that cannot lose everything; each next one is half as large
constexpr double LEAST_GAIN = 8;  // of the best bet in its run: without it there is no alarm
constexpr int BOUNDS = 24;        // lower bounds of different slope
constexpr double STEEPEST = 0.8;  // slope of the first; each next one is half as steep
constexpr double FIRST_STRETCH = 64;  // placements; each next stretch is twice as long

// Placements in a row: their number, sum, sum of squares, and sum of squared distances from the mean of those before.
struct Stretch {
    double n, sum, squares, surprise;

    void add(double x) {
        const double d = x - (sum + 0.5) / (n + 1);
        surprise += d * d;
        n += 1;
        sum += x;
        squares += x * x;
    }

    double mean() const { return n > 0 ? sum / n : 0; }
    double spread() const { return n > 0 ? std::max(0.0, squares / n - mean() * mean()) : 0; }
};

// A lower bound of the mean. That of slope g, alone, is at all times at once below the mean, except with probability
// exp(-certainty) / ((g + 2) (g + 3)); all of them, except with half of exp(-certainty).
class LowerBound {
    double slope_[BOUNDS], cost_[BOUNDS], surprise_[BOUNDS];

public:
    LowerBound() {
        double slope = STEEPEST;
        for (int g = 0; g < BOUNDS; ++g, slope /= 2) {
            slope_[g] = slope;
            cost_[g] = logarithm((g + 2.0) * (g + 3.0));
            surprise_[g] = -logarithm(1 - slope) - slope;
        }
    }

    double operator()(const Stretch& seen, double certainty) const {
        double gap = seen.n;
        for (int g = 0; g < BOUNDS; ++g)
            gap = std::min(gap, (certainty + cost_[g] + surprise_[g] * seen.surprise) / slope_[g]);
        return (seen.sum - gap) / seen.n;
    }
};

struct DriftAlarm {
    double row, begin;
    Stretch before, after;
};

// All numbers of a detector but the scores of its open group: doubles only, copied to and from an array as they are. Whole
// numbers are exact up to 2^53.
struct DriftNumbers {
    double rows, positives, alarms;
    double side;   // class of the rows of the open group, -1 or 1; 0: it has none
    double first;  // its first row, from 1
    double at;     // where the next score of a full window goes
    // The reference: lower bounds from all placements since the latest alarm, and from stretches of them.
    Stretch all, latest;
    double length, certainty;  // of the latest stretch
    double reference;          // the largest bound so far
    Stretch seen;              // the placements that it is from
    // Bets that placements are below the reference. A run begins when a bet was last without gain.
    double capital[BETS], gain[BETS], begin[BETS];
    Stretch run[BETS];
};
static_assert(sizeof(DriftNumbers) % sizeof(double) == 0);
constexpr std::size_t DRIFT_NUMBERS = sizeof(DriftNumbers) / sizeof(double);

class DriftDetector {
    double limit_, tolerance_;
    std::size_t window_;
    LowerBound bound_;
    DriftNumbers now_{};
    std::vector<double> scores_;  // of the open group

    void restart() {
        now_.all = now_.latest = now_.seen = {};
        now_.length = FIRST_STRETCH;
        now_.certainty = logarithm(2);
        now_.reference = 0;
        for (int k = 0; k < BETS; ++k) {
            now_.capital[k] = now_.gain[k] = now_.begin[k] = 0;
            now_.run[k] = {};
        }
    }

    void learn_reference(double x) {
        const auto offer = [this](const Stretch& seen, double certainty) {
            const double low = bound_(seen, certainty);
            if (low > now_.reference) {
                now_.reference = low;
                now_.seen = seen;
            }
        };
        now_.all.add(x);
        now_.latest.add(x);
        offer(now_.all, 0);
        offer(now_.latest, now_.certainty);
        if (now_.latest.n < now_.length) return;
        now_.latest = {};
        now_.length *= 2;
        double j = 0;  // of this stretch; 1 / ((j + 1) (j + 2)) of all add up to 1
        for (double length = FIRST_STRETCH; length < now_.length; length *= 2) j += 1;
        now_.certainty = logarithm((j + 1) * (j + 2));
    }

    bool bet(double x) {
        const double expected = std::min(std::max(now_.reference - tolerance_, 0.0), 1 - 1e-9);
        double share = LARGEST_BET / (1 - expected);
        for (int k = 0; k < BETS; ++k, share /= 2) {
            const double factor = 1 + share * (expected - x);
            now_.capital[k] = (now_.capital[k] + 1.0 / BETS) * factor;
            if (now_.gain[k] <= 1) {
                now_.gain[k] = 1;
                now_.begin[k] = now_.first;
                now_.run[k] = {};
            }
            now_.gain[k] *= factor;
            now_.run[k].add(x);
        }
        return statistic() >= limit_;
    }

    std::ptrdiff_t best() const { return std::max_element(now_.capital, now_.capital + BETS) - now_.capital; }

    double placement(double score) const {
        std::int64_t below = 0, above = 0;
        for (const double other : scores_) {
            below += other < score;
            above += other > score;
        }
        const double n = static_cast<double>(scores_.size());
        return (n + static_cast<double>(now_.side < 0 ? below - above : above - below)) / (2 * n);
    }

    void push(double score) {
        if (scores_.size() < window_) {
            scores_.push_back(score);
            return;
        }
        const auto at = static_cast<std::size_t>(now_.at);
        scores_[at] = score;
        now_.at = at + 1 == window_ ? 0 : now_.at + 1;
    }

public:
    DriftDetector(double limit, double tolerance, std::size_t window)
        : limit_(limit), tolerance_(tolerance), window_(window) {
        restart();
    }

    // Rows whose labels, scores and importances are valid; calls raise(alarm) for each alarm.
    template <class Raise>
    void count(const std::int8_t* labels, const double* scores, const double* importances, std::size_t n, Raise raise) {
        for (std::size_t i = 0; i < n; ++i) {
            now_.rows += 1;
            if (importances && importances[i] == 0) continue;
            const double side = labels[i] > 0 ? 1 : -1;
            now_.positives += labels[i] > 0;
            if (now_.side == 0) {
                now_.side = side;
                now_.first = now_.rows;
            }
            if (side == now_.side) {
                push(scores[i]);
                continue;
            }
            const double x = placement(scores[i]);
            if (bet(x)) {
                now_.alarms += 1;
                raise(DriftAlarm{now_.rows, now_.begin[best()], now_.seen, now_.run[best()]});
                restart();
            } else {
                learn_reference(x);
            }
            now_.side = now_.at = 0;
            scores_.clear();
        }
    }

    // There is an alarm when it reaches the limit.
    double statistic() const {
        double total = 0;
        for (const double one : now_.capital) total += one;
        return std::min(total, limit_ * now_.gain[best()] / LEAST_GAIN);
    }

    const DriftNumbers& numbers() const { return now_; }
    const std::vector<double>& scores() const { return scores_; }

    // False, and nothing changes, for numbers and scores that no detector with these settings can have.
    bool load(const DriftNumbers& numbers, std::vector<double> scores) {
        double all[DRIFT_NUMBERS];
        std::memcpy(all, &numbers, sizeof numbers);
        for (const double one : all)
            if (!(one >= -1 && one < 1e300)) return false;
        const bool open = numbers.side == 1 || numbers.side == -1;
        if (open == scores.empty() || !(open || numbers.side == 0) || scores.size() > window_) return false;
        if (numbers.at < 0 || !(numbers.at == 0 || (scores.size() == window_ && numbers.at < static_cast<double>(window_))))
            return false;
        if (numbers.at != std::floor(numbers.at) || numbers.length < FIRST_STRETCH || numbers.length > 1e18) return false;
        for (const double one : scores)
            if (one != one) return false;
        now_ = numbers;
        scores_ = std::move(scores);
        return true;
    }
};

}  // namespace rarestream
