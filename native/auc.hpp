// Exact AUC: scores are dealt into buckets by order until the few that are close to one another can be compared.
//
// A coarse deal splits all rows into buckets that fit the cache, each class apart; whole buckets then win or lose
// against each other by their sizes. Within a bucket one class is dealt once more, into cells of about one score,
// and each score of the other class counts the cells below its own and looks at the few scores in it. Rows are not
// sorted, and pairs are counted in integers. Where scores crowd in a cell, most often because they tie, a three-way
// partition parts them from the others, which are dealt anew; where they crowd again and again, it goes on alone, and
// its cost depends on the number of distinct scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace rarestream {

// Twice the pairs a positive wins, ties once, and the class sizes. 64 bits suffice for 2^32 rows.
struct PairCount {
    std::uint64_t twice = 0, n_pos = 0, n_neg = 0;
    double auc() const {
        return static_cast<double>(twice) / (2.0 * static_cast<double>(n_pos) * static_cast<double>(n_neg));
    }
};

// Memory that is about to be filled: not zeroed, and in large pages where the system has them.
template <class T>
class HugePageBuffer {
public:
    explicit HugePageBuffer(std::size_t n) {
        const std::size_t bytes = n * sizeof(T), border = bytes < 16 * page ? 4096 : page;
        std::size_t room = bytes + border;
        raw_.reset(new char[room]);
        void* at = raw_.get();
        data_ = static_cast<T*>(std::align(border, bytes, at, room));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (border == page) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    }
    T* data() { return data_; }

private:
    static constexpr std::size_t page = std::size_t{1} << 21;
    std::unique_ptr<char[]> raw_;
    T* data_;
};

// Both classes parted in place by a score: those below it, those equal to it, those above it.
template <class T>
struct ThreeWayPartition {
    std::size_t p_less, q_less, p_more, q_more;
    std::uint64_t twice;  // the wins of pos over neg, but for those among the lower and among the higher ones

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
        if (depth == 64) {  // pivots keep failing: merge two sorted lists instead
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
        const ThreeWayPartition<T> parted(pos, p, neg, q, pivot);
        twice += parted.twice + partition_wins(pos, parted.p_less, neg, parted.q_less, ++depth);
        pos += p - parted.p_more;
        neg += q - parted.q_more;
        p = parted.p_more;
        q = parted.q_more;
    }
    return twice;
}

// Counts the wins within one bucket; keeps its tables for the next.
template <class T>
class CellWins {
public:
    // Twice the wins of a small class dealt here over (or by) all rows of the other class, read where they are.
    // False, with nothing counted, when cells do not part the small class.
    bool against_rows(const T* small, std::size_t n, bool small_is_pos, const std::int8_t* labels, const T* scores,
                      std::size_t rows, std::uint64_t& twice) {
        if (!n || !deal(small, n)) return false;
        std::uint64_t below_twice = 0;
        const std::int8_t* label = labels;
        each_cell(scores, rows, [&](std::uint32_t c, T s) {
            const std::uint64_t counts = (*label++ > 0) != small_is_pos;
            below_twice += counts * twice_below(c, s);
        });
        twice = small_is_pos ? 2 * static_cast<std::uint64_t>(n) * (rows - n) - below_twice : below_twice;
        return true;
    }

    // Twice the wins of pos over neg; both may be permuted. `crowds` may be parted before partition goes on alone.
    std::uint64_t operator()(T* pos, std::size_t p, T* neg, std::size_t q, int crowds = 8) {
        if (!p || !q) return 0;
        if (p * q <= 64) return partition_wins(pos, p, neg, q);
        const bool deal_pos = p < q;  // dealing costs more than probing
        T* dealt = deal_pos ? pos : neg;
        T* probes = deal_pos ? neg : pos;
        const std::size_t n = deal_pos ? p : q, m = deal_pos ? q : p;
        if (!deal(dealt, n)) {
            if (!crowded_ || !crowds) return partition_wins(pos, p, neg, q);
            const ThreeWayPartition<T> parted(pos, p, neg, q, amid_);
            --crowds;
            return parted.twice + (*this)(pos, parted.p_less, neg, parted.q_less, crowds) +
                   (*this)(pos + p - parted.p_more, parted.p_more, neg + q - parted.q_more, parted.q_more, crowds);
        }
        const std::uint64_t below_twice = probe(probes, m);
        return deal_pos ? 2 * static_cast<std::uint64_t>(n) * m - below_twice : below_twice;
    }

private:
    static constexpr std::size_t look = 4, crowd = 48;

    // False when the scores crowd or are not finite, so that cells do not part them.
    bool deal(const T* scores, std::size_t n) {
        T least = scores[0], most = scores[0];
        for (std::size_t i = 1; i < n; ++i) {
            least = std::min(least, scores[i]);
            most = std::max(most, scores[i]);
        }
        crowded_ = false;
        cells_ = 64;
        while (cells_ < n) cells_ *= 2;
        least_ = least;
        scale_ = static_cast<T>(static_cast<double>(cells_ - 1) / (static_cast<double>(most) - static_cast<double>(least)));
        if (!(scale_ > 0 && scale_ <= std::numeric_limits<T>::max())) return false;
        start_.assign(cells_ + 2, 0);
        std::uint32_t* count = start_.data() + 2;
        each_cell(scores, n, [count](std::uint32_t c, T) { ++count[c]; });
        std::uint32_t largest = 0;
        for (std::size_t c = 2; c < cells_ + 2; ++c) {
            largest = std::max(largest, start_[c]);
            start_[c] += start_[c - 1];
        }
        if (largest > crowd) {
            std::uint32_t fullest = 2;
            while (start_[fullest] - start_[fullest - 1] < largest) ++fullest;
            each_cell(scores, n, [this, fullest](std::uint32_t c, T s) { amid_ = c == fullest - 2 ? s : amid_; });
            crowded_ = true;
            return false;
        }
        // start_[c + 1] is where cell c begins, and after dealing where it ends: so start_[c] is where it begins.
        dealt_.resize(n + look);
        T* out = dealt_.data();
        std::uint32_t* at = start_.data() + 1;
        each_cell(scores, n, [at, out](std::uint32_t c, T s) { out[at[c]++] = s; });
        // NaN after the last score: neither below nor equal to anything.
        std::fill_n(out + n, look, std::numeric_limits<T>::quiet_NaN());
        return true;
    }

    // Sum over the probes of twice the dealt scores below and once those equal.
    std::uint64_t probe(const T* probes, std::size_t m) const {
        std::uint64_t twice = 0;
        each_cell(probes, m, [&](std::uint32_t c, T s) { twice += twice_below(c, s); });
        return twice;
    }

    std::uint64_t twice_below(std::uint32_t cell, T s) const {
        const T* dealt = dealt_.data();
        const std::uint32_t begin = start_.data()[cell], end = start_.data()[cell + 1];
        // What follows the cell lies in higher cells and is above s, so a fixed number can be looked at.
        std::uint32_t below = 0;
        for (std::size_t k = 0; k < look; ++k) below += (dealt[begin + k] < s) + (dealt[begin + k] <= s);
        if (end - begin > look)
            for (std::size_t k = begin + look; k < end; ++k) below += (dealt[k] < s) + (dealt[k] <= s);
        return 2 * static_cast<std::uint64_t>(begin) + below;
    }

    // Subtraction and multiplication round monotonically, so cells keep the order of the scores.
    template <class Act>
    void each_cell(const T* scores, std::size_t n, Act act) const {
        constexpr std::size_t batch = 8;
        const T least = least_, scale = scale_, last = static_cast<T>(cells_ - 1);
        const std::size_t whole = n - n % batch;
        std::int32_t cell[batch];
        for (std::size_t i = 0; i < whole; i += batch) {
            for (std::size_t k = 0; k < batch; ++k)
                cell[k] = static_cast<std::int32_t>(std::min(std::max((scores[i + k] - least) * scale, T{0}), last));
            for (std::size_t k = 0; k < batch; ++k) act(static_cast<std::uint32_t>(cell[k]), scores[i + k]);
        }
        for (std::size_t i = whole; i < n; ++i)
            act(static_cast<std::uint32_t>(std::min(std::max((scores[i] - least) * scale, T{0}), last)), scores[i]);
    }

    std::size_t cells_ = 0;
    T least_ = 0, scale_ = 0;
    bool crowded_ = false;  // why dealing failed: one cell has too many scores;
    T amid_ = 0;            // this is one of them
    std::vector<std::uint32_t> start_;
    std::vector<T> dealt_;
};

// The coarse deal: which of `buckets` a score belongs to, learned from a sample so that buckets come out about even.
template <class T>
class BucketAssigner {
public:
    static constexpr std::size_t cells = 4096;
    static constexpr int max_depth = 10;

    BucketAssigner(const T* scores, std::size_t n, int depth) : depth_(depth), tree_(std::size_t{1} << depth) {
        std::vector<T> sample(std::min<std::size_t>(8192, 512 * tree_.size()));  // sorting it costs: no more than needed
        std::uint64_t random = 1;
        for (T& s : sample) {  // a fixed sequence: the same scores always take the same way
            random = random * 6364136223846793005u + 1442695040888963407u;
            s = scores[static_cast<std::size_t>((random >> 33) * (n / 2147483648.0))];
        }
        std::sort(sample.begin(), sample.end());
        flat_ = lay_flat(sample);
        if (!flat_) lay_tree(sample);
    }

    // Calls act(i, bucket) for every row.
    template <class Act>
    void each_bucket(const T* scores, std::size_t n, Act act) const {
        if (flat_) {
            assign_batches(scores, n, act, [this](T s) { return table_[flat_cell(s)]; });
        } else {
            assign_batches(scores, n, act, [this](T s) {
                std::size_t node = 1;
                for (int d = 0; d < depth_; ++d) node = 2 * node + (s >= tree_[node]);
                return static_cast<std::uint16_t>(node - tree_.size());
            });
        }
    }

private:
    template <class Act, class Bucket>
    static void assign_batches(const T* scores, std::size_t n, Act act, Bucket bucket) {
        constexpr std::size_t batch = 8;
        const std::size_t whole = n - n % batch;
        std::uint16_t at[batch];
        for (std::size_t i = 0; i < whole; i += batch) {
            for (std::size_t k = 0; k < batch; ++k) at[k] = bucket(scores[i + k]);
            for (std::size_t k = 0; k < batch; ++k) act(i + k, at[k]);
        }
        for (std::size_t i = whole; i < n; ++i) act(i, bucket(scores[i]));
    }

    std::int32_t flat_cell(T s) const {
        return static_cast<std::int32_t>(std::min(std::max((s - least_) * scale_, T{0}), T{cells - 1}));
    }

    // Equal steps between the ends of the sample, mapped to buckets by a table: for scores of one scale.
    bool lay_flat(const std::vector<T>& sample) {
        const std::size_t buckets = tree_.size(), sample_size = sample.size(), margin = sample_size / 1024;
        least_ = sample[margin];
        scale_ =
            static_cast<T>(cells / (static_cast<double>(sample[sample_size - 1 - margin]) - static_cast<double>(least_)));
        if (!(scale_ > 0 && scale_ <= std::numeric_limits<T>::max())) return false;
        table_.assign(cells, 0);
        std::size_t i = 0, fullest = 0;
        for (std::size_t c = 0; c < cells; ++c) {
            const std::size_t before = i;
            while (i < sample_size && static_cast<std::size_t>(flat_cell(sample[i])) <= c) ++i;
            table_[c] = static_cast<std::uint16_t>(before * buckets / (sample_size + 1));
            fullest = std::max(fullest, i - before);
        }
        return fullest <= 8 * sample_size / buckets;
    }

    // A search tree over quantiles of the sample, in the order of a heap: for scores of any scale.
    void lay_tree(const std::vector<T>& sample) {
        const std::size_t buckets = tree_.size(), sample_size = sample.size();
        for (std::size_t node = 1; node < buckets; ++node) {
            int level = 0;
            while ((node >> level) > 1) ++level;
            const std::size_t place = 2 * (node - (std::size_t{1} << level)) + 1;  // odd multiples of 2^-(level+1)
            tree_[node] = sample[place * sample_size >> (level + 1)];
        }
    }

    int depth_;
    bool flat_ = false;
    T least_ = 0, scale_ = 0;
    std::vector<std::uint16_t> table_;
    std::vector<T> tree_;
};

// Rows dealt into piles, each a chain of chunks: one pass, without counting first how high each pile will be.
template <class T>
class BucketLists {
public:
    BucketLists(std::size_t piles, std::size_t rows)
        : memory_((rows / chunk + piles + 1) * chunk), ends_(piles), previous_(rows / chunk + piles + 1, none) {
        for (T*& end : ends_) end = fresh(none);
    }

    void put(std::size_t pile, T score) {
        T*& end = ends_[pile];
        *end++ = score;
        if (reinterpret_cast<std::uintptr_t>(end) % chunk_bytes == 0)
            end = fresh(static_cast<std::uint32_t>((end - memory_.data()) / chunk - 1));
    }

    // The scores of a pile side by side, in no particular order.
    void collect(std::size_t pile, std::vector<T>& out) {
        out.clear();
        const std::size_t at = static_cast<std::size_t>(ends_[pile] - memory_.data());
        out.insert(out.end(), ends_[pile] - at % chunk, ends_[pile]);
        for (std::uint32_t c = previous_[at / chunk]; c != none; c = previous_[c])
            out.insert(out.end(), memory_.data() + c * chunk, memory_.data() + (c + 1) * chunk);
    }

private:
    static constexpr std::size_t chunk_bytes = 1024, chunk = chunk_bytes / sizeof(T);
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    T* fresh(std::uint32_t after) {
        previous_[used_] = after;
        return memory_.data() + chunk * used_++;
    }

    HugePageBuffer<T> memory_;
    std::size_t used_ = 0;
    std::vector<T*> ends_;
    std::vector<std::uint32_t> previous_;  // the chunk of the same pile before this one
};

// Labels are > 0 or not; scores are no NaN.
template <class T>
PairCount count_pairs(const std::int8_t* labels, const T* scores, std::size_t n) {
    PairCount out;
    for (std::size_t i = 0; i < n; ++i) out.n_pos += labels[i] > 0;
    out.n_neg = n - out.n_pos;
    CellWins<T> wins;
    const std::size_t few = std::min(out.n_pos, out.n_neg);
    if (few < (1u << 16) && few < n / 8) {  // few enough for the cache: the other class need not be moved
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
    BucketLists<T> piles(2 * buckets, n);  // of bucket b: its negatives, then its positives
    if (depth == 0) {
        for (std::size_t i = 0; i < n; ++i) piles.put(labels[i] > 0, scores[i]);
    } else {
        BucketAssigner<T>(scores, n, depth).each_bucket(scores, n, [&](std::size_t i, std::uint16_t b) {
            piles.put(2 * static_cast<std::size_t>(b) + (labels[i] > 0), scores[i]);
        });
    }
    std::vector<T> pos, neg;
    for (std::size_t b = 0, below = 0; b < buckets; ++b) {
        piles.collect(2 * b, neg);
        piles.collect(2 * b + 1, pos);
        out.twice += 2 * static_cast<std::uint64_t>(pos.size()) * below;
        out.twice += wins(pos.data(), pos.size(), neg.data(), neg.size());
        below += neg.size();
    }
    return out;
}

}  // namespace rarestream
