// Scores split by order into buckets that fit in the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "platform.hpp"

namespace rarestream {

// Uninitialised memory, in huge pages where the system has them.
template <class T>
class HugePageBuffer {
public:
    explicit HugePageBuffer(std::size_t n) {
        const std::size_t bytes = n * sizeof(T), alignment = bytes < 16 * page ? 4096 : page;
        std::size_t space = bytes + alignment;
        raw_.reset(new char[space]);
        void* at = raw_.get();
        data_ = static_cast<T*>(std::align(alignment, bytes, at, space));
        if (alignment == page) prefer_huge_pages(data_, bytes);
    }
    T* data() { return data_; }

private:
    static constexpr std::size_t page = std::size_t{1} << 21;
    std::unique_ptr<char[]> raw_;
    T* data_;
};

// Which bucket a score belongs to: the limits come from a sample, so that buckets have about the same size.
template <class T>
class BucketAssigner {
public:
    static constexpr std::size_t cells = 4096;
    static constexpr int max_depth = 10;

    BucketAssigner(const T* scores, std::size_t n, int depth) : depth_(depth), tree_(std::size_t{1} << depth) {
        std::vector<T> sample(std::min<std::size_t>(8192, 512 * tree_.size()));  // no larger than needed: it is sorted
        std::uint64_t random = 1;
        for (T& s : sample) {  // a fixed sequence, so that the same scores are always handled in the same way
            random = random * 6364136223846793005u + 1442695040888963407u;
            s = scores[static_cast<std::size_t>((random >> 33) * (n / 2147483648.0))];
        }
        std::sort(sample.begin(), sample.end());
        use_table_ = build_table(sample);
        if (!use_table_) build_tree(sample);
    }

    // Calls act(i, bucket) for every row.
    template <class Act>
    void each_bucket(const T* scores, std::size_t n, Act act) const {
        if (use_table_) {
            assign_batches(scores, n, act, [this](T s) { return table_[cell_of(s)]; });
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

    std::int32_t cell_of(T s) const {
        return static_cast<std::int32_t>(std::min(std::max((s - lowest_) * scale_, T{0}), T{cells - 1}));
    }

    // Cells of equal width between the ends of the sample, mapped to buckets by a table: for scores of one scale.
    bool build_table(const std::vector<T>& sample) {
        const std::size_t buckets = tree_.size(), sample_size = sample.size(), margin = sample_size / 1024;
        lowest_ = sample[margin];
        scale_ =
            static_cast<T>(cells / (static_cast<double>(sample[sample_size - 1 - margin]) - static_cast<double>(lowest_)));
        if (!(scale_ > 0 && scale_ <= std::numeric_limits<T>::max())) return false;
        table_.assign(cells, 0);
        std::size_t i = 0, fullest = 0;
        for (std::size_t c = 0; c < cells; ++c) {
            const std::size_t before = i;
            while (i < sample_size && static_cast<std::size_t>(cell_of(sample[i])) <= c) ++i;
            table_[c] = static_cast<std::uint16_t>(before * buckets / (sample_size + 1));
            fullest = std::max(fullest, i - before);
        }
        return fullest <= 8 * sample_size / buckets;
    }

    // A search tree over quantiles of the sample, stored as a heap: for scores of any scale.
    void build_tree(const std::vector<T>& sample) {
        const std::size_t buckets = tree_.size(), sample_size = sample.size();
        for (std::size_t node = 1; node < buckets; ++node) {
            int level = 0;
            while ((node >> level) > 1) ++level;
            const std::size_t place = 2 * (node - (std::size_t{1} << level)) + 1;  // odd multiples of 2^-(level+1)
            tree_[node] = sample[place * sample_size >> (level + 1)];
        }
    }

    int depth_;
    bool use_table_ = false;
    T lowest_ = 0, scale_ = 0;
    std::vector<std::uint16_t> table_;
    std::vector<T> tree_;
};

// Scores appended to buckets, each a linked list of chunks: one pass, without counting first how large each bucket will be.
template <class T>
class BucketLists {
public:
    BucketLists(std::size_t buckets, std::size_t rows)
        : memory_((rows / chunk + buckets + 1) * chunk), ends_(buckets), previous_(rows / chunk + buckets + 1, none) {
        for (T*& end : ends_) end = new_chunk(none);
    }

    void append(std::size_t bucket, T score) {
        T*& end = ends_[bucket];
        *end++ = score;
        if (reinterpret_cast<std::uintptr_t>(end) % chunk_bytes == 0)
            end = new_chunk(static_cast<std::uint32_t>((end - memory_.data()) / chunk - 1));
    }

    // The scores of a bucket in one array, in no particular order.
    void collect(std::size_t bucket, std::vector<T>& out) {
        out.clear();
        const std::size_t at = static_cast<std::size_t>(ends_[bucket] - memory_.data());
        out.insert(out.end(), ends_[bucket] - at % chunk, ends_[bucket]);
        for (std::uint32_t c = previous_[at / chunk]; c != none; c = previous_[c])
            out.insert(out.end(), memory_.data() + c * chunk, memory_.data() + (c + 1) * chunk);
    }

private:
    static constexpr std::size_t chunk_bytes = 1024, chunk = chunk_bytes / sizeof(T);
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    T* new_chunk(std::uint32_t after) {
        previous_[used_] = after;
        return memory_.data() + chunk * used_++;
    }

    HugePageBuffer<T> memory_;
    std::size_t used_ = 0;
    std::vector<T*> ends_;
    std::vector<std::uint32_t> previous_;  // the chunk of the same bucket before this one
};

}  // namespace rarestream
