// Pairs of scores that are mostly ties, such as rounded ones: the rows of each class are counted at every distinct score,
// in a hash table, and only the distinct scores are sorted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "score_sort.hpp"

namespace rarestream {

// How many negatives and positives have each score.
template <class T>
class TieCounts {
public:
    struct Entry {
        std::uint64_t key = 0;  // of the score; 0: none, as only a NaN has that key
        std::uint32_t rows[2] = {0, 0};
        std::uint64_t all() const { return std::uint64_t{rows[0]} + rows[1]; }
    };

    explicit TieCounts(std::size_t distinct) : most_(distinct) {
        int bits = 1;
        while ((std::size_t{1} << bits) < 2 * distinct) ++bits;
        shift_ = 64 - bits;
        table_.resize(std::size_t{1} << bits);
    }

    // False if there are more distinct scores than were expected.
    bool add(T score, bool positive) {
        const std::uint64_t key = key_of(score);
        std::size_t at = static_cast<std::size_t>(((key ^ key >> 15) * 0x9E3779B97F4A7C15u) >> shift_);
        while (table_[at].key != key) {
            if (table_[at].key == 0) {
                if (found_ == most_) return false;
                ++found_;
                table_[at].key = key;
                break;
            }
            at = (at + 1) & (table_.size() - 1);
        }
        ++table_[at].rows[positive];
        return true;
    }

    std::size_t found() const { return found_; }

    // The entries in no particular order; the table is given up.
    std::vector<Entry> take_entries() {
        table_.erase(std::remove_if(table_.begin(), table_.end(), [](const Entry& e) { return e.key == 0; }), table_.end());
        return std::move(table_);
    }

private:
    std::size_t most_, found_ = 0;
    int shift_;
    std::vector<Entry> table_;
};

// About how many distinct scores there are, from a sample of the rows; more than `n` if nearly all may be. The estimate is
// that of Chao: by how many scores come once and how many twice, whatever the others do.
template <class T>
double estimated_distinct(const T* scores, std::size_t n) {
    const std::size_t sample = std::min<std::size_t>(1024, n / 64), step = sample ? n / sample : 1;
    TieCounts<T> counts(sample);
    for (std::size_t i = 0; i < sample; ++i) counts.add(scores[i * step], false);
    const std::size_t found = counts.found();
    double once = 0, twice = 0;
    for (const auto& entry : counts.take_entries()) {
        once += entry.all() == 1;
        twice += entry.all() == 2;
    }
    return once == 0 ? static_cast<double>(found) : static_cast<double>(found) + once * once / (2 * twice + 1e-300);
}

// Counts the pairs of rows that are mostly ties: twice those that a positive wins, plus the ties. False, with nothing
// counted, if they are not.
template <class T>
bool count_tied_pairs(const std::int8_t* labels, const T* scores, std::size_t n, std::uint64_t& twice) {
    constexpr double ROWS_PER_SCORE = 16;  // fewer are no slower as distinct scores
    const double distinct = estimated_distinct(scores, n);
    if (!(distinct * ROWS_PER_SCORE <= static_cast<double>(n))) return false;
    TieCounts<T> counts(2 * static_cast<std::size_t>(distinct) + 64);
    for (std::size_t i = 0; i < n; ++i)
        if (!counts.add(scores[i], labels[i] > 0)) return false;
    auto entries = counts.take_entries();
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    std::uint64_t negatives = 0;
    twice = 0;
    for (const auto& entry : entries) {
        twice += entry.rows[1] * (2 * negatives + entry.rows[0]);
        negatives += entry.rows[0];
    }
    return true;
}

}  // namespace rarestream
