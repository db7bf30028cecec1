// The pair of sketches behind StreamingAuc: the scores of positives and of negatives in bounded memory.
#pragma once

#include "placements.hpp"
#include "rank_sketch.hpp"

namespace rarestream {

class AucSketch {
public:
    RankSketch pos, neg;

    // Rows whose labels are > 0 or not, whose scores are no NaN and whose importances (or none: 1) are finite and >= 0.
    void add(const std::int8_t* labels, const double* scores, const double* importances, std::size_t n) {
        if (importances) {
            for (std::size_t i = 0; i < n; ++i)
                if (importances[i] > 0) (labels[i] > 0 ? pos : neg).add(scores[i] + 0.0, importances[i]);
            return;
        }
        for (std::size_t i = 0; i < n;) {
            const std::size_t end = i + std::min(n - i, std::min(pos.reserve(n - i), neg.reserve(n - i)));
            double *to_pos = pos.buffer_end(), *to_neg = neg.buffer_end();
            for (; i < end; ++i) {  // written to both, counted in one: a branch on labels would be mispredicted
                const bool positive = labels[i] > 0;
                *to_pos = *to_neg = scores[i] + 0.0;  // + 0.0: -0 becomes +0
                to_pos += positive;
                to_neg += !positive;
            }
            pos.count_added(static_cast<std::size_t>(to_pos - pos.buffer_end()));
            neg.count_added(static_cast<std::size_t>(to_neg - neg.buffer_end()));
        }
    }

    void merge(const AucSketch& other) {
        pos.merge(other.pos);
        neg.merge(other.neg);
    }

    // Only defined once both classes have rows.
    PlacementStats stats() const {
        return placement_stats(pos.points(range_factor(pos.weight())), neg.points(range_factor(neg.weight())));
    }

    // The AUC of all rows differs from stats().auc by no more than this.
    double bound() const {
        const double pos_low = pos.too_low() / pos.weight(), pos_high = pos.too_high() / pos.weight();
        const double neg_low = neg.too_low() / neg.weight(), neg_high = neg.too_high() / neg.weight();
        return std::max(neg_low + pos_high, neg_high + pos_low);
    }
};

}  // namespace rarestream
