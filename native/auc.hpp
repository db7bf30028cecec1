// Exact AUC without importances: the pairs that a positive wins, counted in integers and without sorting all rows.
//
// Rows are split by score into buckets that fit in the cache, each class apart (auc_buckets.hpp). A positive wins against
// all negatives of lower buckets, which only needs their number; the pairs within a bucket are counted by auc_cells.hpp.
// Scores that are mostly ties are counted at each distinct score instead (auc_ties.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "auc_buckets.hpp"
#include "auc_cells.hpp"
#include "auc_ties.hpp"

namespace rarestream {

// Twice the pairs that a positive wins, plus the ties, and the class sizes. 64 bits suffice for 2^32 rows.
struct PairCount {
    std::uint64_t twice = 0, n_pos = 0, n_neg = 0;
    double auc() const {
        return static_cast<double>(twice) / (2.0 * static_cast<double>(n_pos) * static_cast<double>(n_neg));
    }
};

// Counts the pairs of all rows. A label > 0 is positive; no score is NaN.
template <class T>
PairCount count_pairs(const std::int8_t* labels, const T* scores, std::size_t n) {
    PairCount out;
    for (std::size_t i = 0; i < n; ++i) out.n_pos += labels[i] > 0;
    out.n_neg = n - out.n_pos;
    if (count_tied_pairs(labels, scores, n, out.twice)) return out;
    CellWins<T> wins;
    const std::size_t few = std::min(out.n_pos, out.n_neg);
    if (few < (1u << 16) && few < n / 8) {  // few enough for the cache: the other class need not be copied
        const bool positive = few == out.n_pos;
        std::vector<T> small(few + 1);
        T* to = small.data();
        for (std::size_t i = 0; i < n; ++i) {
            *to = scores[i];
            to += (labels[i] > 0) == positive;
        }
        if (wins.against_rows(small.data(), few, positive, labels, scores, n, out.twice)) return out;
    }
    int depth = 0;
    while (depth < BucketAssigner<T>::max_depth && (n >> depth) > 16384) ++depth;
    const std::size_t buckets = std::size_t{1} << depth;
    BucketLists<T> lists(2 * buckets, n);  // two lists per bucket: its negatives, then its positives
    if (depth == 0) {
        for (std::size_t i = 0; i < n; ++i) lists.append(labels[i] > 0, scores[i]);
    } else {
        BucketAssigner<T>(scores, n, depth).each_bucket(scores, n, [&](std::size_t i, std::uint16_t b) {
            lists.append(2 * static_cast<std::size_t>(b) + (labels[i] > 0), scores[i]);
        });
    }
    std::vector<T> pos, neg;
    for (std::size_t b = 0, below = 0; b < buckets; ++b) {
        lists.collect(2 * b, neg);
        lists.collect(2 * b + 1, pos);
        out.twice += 2 * static_cast<std::uint64_t>(pos.size()) * below;
        out.twice += wins(pos.data(), pos.size(), neg.data(), neg.size());
        below += neg.size();
    }
    return out;
}

}  // namespace rarestream
