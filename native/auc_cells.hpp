// Pairs of one bucket of scores, counted without sorting: one class is distributed into cells of about one score each, and
// each score of the other class counts the cells below its own and compares the few scores in it.
//
// Where a cell has too many scores, usually because they tie, a three-way partition separates them from the others, which
// are distributed again; where this happens repeatedly, partition goes on alone, at a cost that depends on the number of
// distinct scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rarestream {

// Both classes partitioned in place by a score: those below it, those equal to it, those above it.
template <class T>
struct ThreeWayPartition {
    std::size_t p_less, q_less, p_more, q_more;
    std::uint64_t twice;  // twice the wins of pos over neg, without those within the lower and within the higher part

    ThreeWayPartition(T* pos, std::size_t p, T* neg, std::size_t q, T pivot) {
        const auto less = [pivot](T x) { return x < pivot; };
        const auto same = [pivot](T x) { return x == pivot; };
        T* pos_same = std::partition(pos, pos + p, less);
        T* pos_more = std::partition(pos_same, pos + p, same);
        T* neg_same = std::partition(neg, neg + q, less);
        T* neg_more = std::partition(neg_same, neg + q, same);
        p_less = pos_same - pos;
        q_less = neg_same - neg;
        p_more = pos + p - pos_more;
        q_more = neg + q - neg_more;
        const std::uint64_t p_same = pos_more - pos_same, q_same = neg_more - neg_same;
        twice = 2 * q_less * (p_same + p_more) + 2 * q_same * p_more + q_same * p_same;
    }
};

// Twice the wins of `pos` over `neg` by three-way partition; both are permuted.
template <class T>
std::uint64_t partition_wins(T* pos, std::size_t p, T* neg, std::size_t q, int depth = 0) {
    std::uint64_t twice = 0;
    while (p && q) {
        if (p * q <= 64) {
            for (std::size_t i = 0; i < p; ++i)
                for (std::size_t j = 0; j < q; ++j) twice += (neg[j] < pos[i]) + (neg[j] <= pos[i]);
            return twice;
        }
        if (depth == 64) {  // the pivots were bad: sort both and merge instead
            std::sort(pos, pos + p);
            std::sort(neg, neg + q);
            for (std::size_t i = 0, below = 0, upto = 0; i < p; ++i) {
                while (below < q && neg[below] < pos[i]) ++below;
                while (upto < q && neg[upto] <= pos[i]) ++upto;
                twice += below + upto;
            }
            return twice;
        }
        const T* from = p > q ? pos : neg;
        const std::size_t n = std::max(p, q), s = n / 9;
        const auto middle = [](T a, T b, T c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); };
        const T pivot = middle(middle(from[0], from[s], from[2 * s]), middle(from[3 * s], from[4 * s], from[5 * s]),
                               middle(from[6 * s], from[7 * s], from[n - 1]));
        const ThreeWayPartition<T> parts(pos, p, neg, q, pivot);
        twice += parts.twice + partition_wins(pos, parts.p_less, neg, parts.q_less, ++depth);
        pos += p - parts.p_more;
        neg += q - parts.q_more;
        p = parts.p_more;
        q = parts.q_more;
    }
    return twice;
}

// Counts the wins within one bucket; its tables are reused for the next.
template <class T>
class CellWins {
public:
    // Twice the wins of the positives, where the smaller class is distributed into cells and all rows of the other class
    // are read where they are. False, with nothing counted, when the cells do not separate the smaller class.
    bool against_rows(const T* small, std::size_t n, bool small_is_pos, const std::int8_t* labels, const T* scores,
                      std::size_t rows, std::uint64_t& twice) {
        if (!n || !fill_cells(small, n)) return false;
        std::uint64_t below_twice = 0;
        const std::int8_t* label = labels;
        each_cell(scores, rows, [&](std::uint32_t c, T s) {
            const std::uint64_t counts = (*label++ > 0) != small_is_pos;
            below_twice += counts * twice_below(c, s);
        });
        twice = small_is_pos ? 2 * static_cast<std::uint64_t>(n) * (rows - n) - below_twice : below_twice;
        return true;
    }

    // Twice the wins of pos over neg; both may be permuted. After `retries` crowded cells it goes on by partition alone.
    std::uint64_t operator()(T* pos, std::size_t p, T* neg, std::size_t q, int retries = 8) {
        if (!p || !q) return 0;
        if (p * q <= 64) return partition_wins(pos, p, neg, q);
        const bool pos_in_cells = p < q;  // the smaller class: filling cells costs more than looking up
        T* in_cells = pos_in_cells ? pos : neg;
        T* probes = pos_in_cells ? neg : pos;
        const std::size_t n = pos_in_cells ? p : q, m = pos_in_cells ? q : p;
        if (!fill_cells(in_cells, n)) {
            if (!crowded_ || !retries) return partition_wins(pos, p, neg, q);
            const ThreeWayPartition<T> parts(pos, p, neg, q, crowded_score_);
            --retries;
            return parts.twice + (*this)(pos, parts.p_less, neg, parts.q_less, retries) +
                   (*this)(pos + p - parts.p_more, parts.p_more, neg + q - parts.q_more, parts.q_more, retries);
        }
        const std::uint64_t below_twice = probe(probes, m);
        return pos_in_cells ? 2 * static_cast<std::uint64_t>(n) * m - below_twice : below_twice;
    }

private:
    static constexpr std::size_t LOOKUPS = 4, MAX_IN_CELL = 48;

    // Distributes scores into cells. False when a cell has too many scores or the range is not finite.
    bool fill_cells(const T* scores, std::size_t n) {
        T lowest = scores[0], highest = scores[0];
        for (std::size_t i = 1; i < n; ++i) {
            lowest = std::min(lowest, scores[i]);
            highest = std::max(highest, scores[i]);
        }
        crowded_ = false;
        cells_ = 64;
        while (cells_ < n) cells_ *= 2;
        lowest_ = lowest;
        scale_ =
            static_cast<T>(static_cast<double>(cells_ - 1) / (static_cast<double>(highest) - static_cast<double>(lowest)));
        if (!(scale_ > 0 && scale_ <= std::numeric_limits<T>::max())) return false;
        start_.assign(cells_ + 2, 0);
        std::uint32_t* count = start_.data() + 2;
        each_cell(scores, n, [count](std::uint32_t c, T) { ++count[c]; });
        std::uint32_t largest = 0;
        for (std::size_t c = 2; c < cells_ + 2; ++c) {
            largest = std::max(largest, start_[c]);
            start_[c] += start_[c - 1];
        }
        if (largest > MAX_IN_CELL) {
            std::uint32_t fullest = 2;
            while (start_[fullest] - start_[fullest - 1] < largest) ++fullest;
            each_cell(scores, n,
                      [this, fullest](std::uint32_t c, T s) { crowded_score_ = c == fullest - 2 ? s : crowded_score_; });
            crowded_ = true;
            return false;
        }
        // start_[c + 1] is where cell c begins, and once it is filled where it ends: so start_[c] is where it begins.
        in_cells_.resize(n + LOOKUPS);
        T* out = in_cells_.data();
        std::uint32_t* at = start_.data() + 1;
        each_cell(scores, n, [at, out](std::uint32_t c, T s) { out[at[c]++] = s; });
        // NaN after the last score: neither below nor equal to anything.
        std::fill_n(out + n, LOOKUPS, std::numeric_limits<T>::quiet_NaN());
        return true;
    }

    // The sum over the probes of twice the number of cell scores below and once that of equal ones.
    std::uint64_t probe(const T* probes, std::size_t m) const {
        std::uint64_t twice = 0;
        each_cell(probes, m, [&](std::uint32_t c, T s) { twice += twice_below(c, s); });
        return twice;
    }

    std::uint64_t twice_below(std::uint32_t cell, T s) const {
        const T* in_cells = in_cells_.data();
        const std::uint32_t begin = start_.data()[cell], end = start_.data()[cell + 1];
        // What follows the cell is in higher cells and above s, so a fixed number can be compared.
        std::uint32_t below = 0;
        for (std::size_t k = 0; k < LOOKUPS; ++k) below += (in_cells[begin + k] < s) + (in_cells[begin + k] <= s);
        if (end - begin > LOOKUPS)
            for (std::size_t k = begin + LOOKUPS; k < end; ++k) below += (in_cells[k] < s) + (in_cells[k] <= s);
        return 2 * static_cast<std::uint64_t>(begin) + below;
    }

    // Subtraction and multiplication round monotonically, so cells keep the order of the scores.
    template <class Act>
    void each_cell(const T* scores, std::size_t n, Act act) const {
        constexpr std::size_t batch = 8;
        const T lowest = lowest_, scale = scale_, last = static_cast<T>(cells_ - 1);
        const std::size_t whole = n - n % batch;
        std::int32_t cell[batch];
        for (std::size_t i = 0; i < whole; i += batch) {
            for (std::size_t k = 0; k < batch; ++k)
                cell[k] = static_cast<std::int32_t>(std::min(std::max((scores[i + k] - lowest) * scale, T{0}), last));
            for (std::size_t k = 0; k < batch; ++k) act(static_cast<std::uint32_t>(cell[k]), scores[i + k]);
        }
        for (std::size_t i = whole; i < n; ++i)
            act(static_cast<std::uint32_t>(std::min(std::max((scores[i] - lowest) * scale, T{0}), last)), scores[i]);
    }

    std::size_t cells_ = 0;
    T lowest_ = 0, scale_ = 0;
    bool crowded_ = false;  // why `fill_cells` failed: one cell has too many scores;
    T crowded_score_ = 0;   // this is one of them
    std::vector<std::uint32_t> start_;
    std::vector<T> in_cells_;
};

}  // namespace rarestream
