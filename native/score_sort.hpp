// Sorting scores: float64 as ordered integers, and sorts that are quick for the usual distributions of scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace rarestream {

// An integer that orders as the score does; -0 and +0 become one key. NaN is not allowed.
inline std::uint64_t key_of(double score) {
    score += 0.0;
    std::uint64_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    return bits ^ (static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> 63) | (std::uint64_t{1} << 63));
}

inline std::uint32_t key_of(float score) {
    score += 0.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &score, sizeof bits);
    return bits ^ (static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31) | (std::uint32_t{1} << 31));
}

inline double score_of(std::uint64_t key) {
    const std::uint64_t bits = key ^ ((key >> 63) ? (std::uint64_t{1} << 63) : ~std::uint64_t{0});
    double score;
    std::memcpy(&score, &bits, sizeof score);
    return score;
}

// Sorts items by a 64-bit key, stably, eleven bits at a time; digits all keys share are skipped, and so are the
// lowest `skip` digits when a rough order is enough.
template <class Item, class Key>
void radix_sort(std::vector<Item>& items, std::vector<Item>& scratch, Key key, int skip = 0) {
    constexpr int digit = 11, passes = 6;
    const std::size_t n = items.size();
    if (n < 2) return;
    scratch.resize(n);
    std::vector<std::size_t> counts(static_cast<std::size_t>(passes) << digit, 0);
    constexpr std::uint64_t mask = (1u << digit) - 1;
    for (const Item& item : items) {
        const std::uint64_t k = key(item);
        for (int pass = skip; pass < passes; ++pass) ++counts[(pass << digit) + ((k >> (pass * digit)) & mask)];
    }
    for (int pass = skip; pass < passes; ++pass) {
        std::size_t* count = counts.data() + (pass << digit);
        const int shift = pass * digit;
        if (count[(key(items[0]) >> shift) & mask] == n) continue;
        std::size_t start = 0;
        for (std::uint32_t d = 0; d <= mask; ++d) {
            const std::size_t size = count[d];
            count[d] = start;
            start += size;
        }
        for (const Item& item : items) scratch[count[(key(item) >> shift) & mask]++] = item;
        items.swap(scratch);
    }
}

// Sorts scores; its scratch memory is reused.
class ScoreSort {
public:
    void operator()(double* scores, std::size_t n) {
        if (n < 2 || std::is_sorted(scores, scores + n)) return;
        if (n <= 64) {
            insertion_sort(scores, n, n * n);
            return;
        }
        if (!by_position(scores, n)) by_digits(scores, n);
    }

private:
    static constexpr int digit = 10;
    static constexpr std::uint32_t cells = 1u << digit, mask = cells - 1;
    static constexpr std::size_t batch = 8;  // positions computed at once, for the vector unit

    // Two radix passes on the position between the lowest and the highest score: enough to sort ordinary scores but for a
    // few neighbours. False, with the scores permuted, when they cluster so much that it was not.
    bool by_position(double* scores, std::size_t n) {
        double lowest[batch], highest[batch];
        std::fill(lowest, lowest + batch, scores[0]);
        std::fill(highest, highest + batch, scores[0]);
        std::size_t i = 0;
        for (; i + batch <= n; i += batch)
            for (std::size_t k = 0; k < batch; ++k) {
                lowest[k] = std::min(lowest[k], scores[i + k]);
                highest[k] = std::max(highest[k], scores[i + k]);
            }
        for (; i < n; ++i) {
            lowest[0] = std::min(lowest[0], scores[i]);
            highest[0] = std::max(highest[0], scores[i]);
        }
        lowest_ = *std::min_element(lowest, lowest + batch);
        scale_ = (double(cells) * cells - 2) / (*std::max_element(highest, highest + batch) - lowest_);
        if (!(scale_ > 0 && scale_ <= std::numeric_limits<double>::max())) return false;

        std::fill(low_, low_ + cells, 0);
        std::fill(high_, high_ + cells, 0);
        each_position(scores, n, [&](std::uint32_t position, double) {
            ++low_[position & mask];
            ++high_[position >> digit];
        });
        const std::uint32_t largest_low = *std::max_element(low_, low_ + cells);
        std::uint32_t at_low = 0, at_high = 0;
        for (std::uint32_t d = 0; d < cells; ++d) {
            // Clustered: these passes would be wasted, unless it is by ties, which share a low digit too.
            if (high_[d] > n / 4 && largest_low < n / 8) return false;
            const std::uint32_t size_low = low_[d], size_high = high_[d];
            low_[d] = at_low;
            high_[d] = at_high;
            at_low += size_low;
            at_high += size_high;
        }
        if (scratch_.size() < n) scratch_.resize(n);
        double* scratch = scratch_.data();
        each_position(scores, n, [&](std::uint32_t position, double s) { scratch[low_[position & mask]++] = s; });
        each_position(scratch, n, [&](std::uint32_t position, double s) { scores[high_[position >> digit]++] = s; });
        return insertion_sort(scores, n, 8 * n);
    }

    // Subtraction and multiplication round monotonically, so positions keep the order of the scores.
    template <class Act>
    void each_position(const double* scores, std::size_t n, Act act) const {
        const double lowest = lowest_, scale = scale_;  // local: a store of a score cannot change them
        const std::size_t whole = n - n % batch;
        std::int32_t position[batch];
        for (std::size_t i = 0; i < whole; i += batch) {
            for (std::size_t k = 0; k < batch; ++k)
                position[k] = static_cast<std::int32_t>((scores[i + k] - lowest) * scale);
            for (std::size_t k = 0; k < batch; ++k) act(static_cast<std::uint32_t>(position[k]), scores[i + k]);
        }
        for (std::size_t i = whole; i < n; ++i) act(static_cast<std::uint32_t>((scores[i] - lowest) * scale), scores[i]);
    }

    // Insertion sort; gives up, with the scores permuted, after so many moves.
    static bool insertion_sort(double* scores, std::size_t n, std::size_t moves) {
        for (std::size_t i = 1; i < n; ++i) {
            const double s = scores[i];
            if (scores[i - 1] <= s) continue;
            std::size_t j = i;
            for (; j > 0 && scores[j - 1] > s; --j) scores[j] = scores[j - 1];
            scores[j] = s;
            if (i - j > moves) return false;
            moves -= i - j;
        }
        return true;
    }

    // Whatever the scale: the upper half of the digits first, the rest only when that left much to do.
    void by_digits(double* scores, std::size_t n) {
        for (const int skip : {3, 0}) {
            keys_.resize(n);
            for (std::size_t i = 0; i < n; ++i) keys_[i] = key_of(scores[i]);
            radix_sort(keys_, spare_, [](std::uint64_t k) { return k; }, skip);
            for (std::size_t i = 0; i < n; ++i) scores[i] = score_of(keys_[i]);
            if (insertion_sort(scores, n, n)) return;
        }
    }

    double lowest_ = 0, scale_ = 0;
    std::uint32_t low_[cells], high_[cells];
    std::vector<double> scratch_;
    std::vector<std::uint64_t> keys_, spare_;
};

// A score and the weight it stands for.
struct Point {
    double score, weight;
};

// Two ascending runs into one. No branch depends on a score: such a branch would be mispredicted half the time.
inline Point* merge_points(const Point* a, const Point* a_end, const Point* b, const Point* b_end, Point* out) {
    while (a != a_end && b != b_end) {
        const bool second = b->score < a->score;
        *out++ = *(second ? b : a);
        a += !second;
        b += second;
    }
    out = std::copy(a, a_end, out);
    return std::copy(b, b_end, out);
}

// Sorts points that lie in ascending runs ending at `ends`, by merging neighbours; ties keep their order.
inline void merge_runs(std::vector<Point>& points, std::vector<std::size_t> ends, std::vector<Point>& scratch) {
    scratch.resize(points.size());
    while (ends.size() > 1) {
        std::vector<std::size_t> merged;
        std::size_t start = 0;
        for (std::size_t r = 0; r < ends.size(); r += 2) {
            const std::size_t middle = ends[r], end = r + 1 < ends.size() ? ends[r + 1] : middle;
            merge_points(&points[0] + start, &points[0] + middle, &points[0] + middle, &points[0] + end,
                         &scratch[0] + start);
            merged.push_back(end);
            start = end;
        }
        points.swap(scratch);
        ends.swap(merged);
    }
}

}  // namespace rarestream
