// Builds rows of hashed features: hashes names, collects those that are new, sorts each row and sums duplicates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "features/hash_names.hpp"
#include "features/murmur3.hpp"
#include "features/new_names.hpp"
#include "features/sort_row.hpp"
#include "parsed_rows.hpp"

namespace rarestream::features {

class HashedRows {
public:
    // `filter` is the calling thread's own; without one, no names are collected.
    HashedRows(int bits, NameFilter* filter, ParsedRows& rows, Isa isa)
        : mask_((std::uint32_t{1} << bits) - 1), filter_(filter), rows_(rows), hash_names_(hash_names(isa)),
          sort_short_(sort_short_row(isa)) {
        grow(1 << 8);
        if (filter) new_names_.reserve(64);
    }

    // Makes room for so many features, which spares copies.
    void reserve(std::size_t features) {
        if (static_cast<std::int64_t>(features) > capacity_) grow(static_cast<std::int64_t>(features));
    }

    std::int64_t nonzeros() const { return filled_; }  // of all rows, the current one included

    std::int64_t row_size() const { return filled_ - begin_; }

    void begin_row() { begin_ = filled_; }

    // Forgets the features of the current row.
    void drop_row() {
        filled_ = begin_;
        for (const NewName& dropped : new_names_) filter_->forget(dropped.hash);
        new_names_.clear();
    }

    // A feature of the current row, by the hash of its name, which is all 32 bits of it. The views must be valid until the
    // row ends: the names of a row that is dropped are not kept.
    void add(std::uint32_t hash, std::string_view space, std::string_view name, float value) {
        if (filter_ && filter_->is_new(hash)) new_names_.push_back({hash, space, name});
        add_known(hash, value);
    }

    // Some time before a feature is added: the memory for its name arrives earlier.
    void expect(std::uint32_t hash) const {
        if (filter_) filter_->prefetch(hash);
    }

    // A feature whose name this thread has added before.
    RARESTREAM_ALWAYS_INLINE void add_known(std::uint32_t hash, float value) {
        if (__builtin_expect(filled_ == capacity_, 0)) grow(capacity_ * 2);
        rows_.indices[filled_] = static_cast<std::int32_t>(hash & mask_);
        rows_.values[filled_++] = value;
    }

    RARESTREAM_ALWAYS_INLINE void add_two_known(std::uint32_t a, float value_of_a, std::uint32_t b, float value_of_b) {
        if (__builtin_expect(filled_ + 2 > capacity_, 0)) grow(capacity_ * 2);
        std::int32_t* const indices = rows_.indices.get() + filled_;
        float* const values = rows_.values.get() + filled_;
        filled_ += 2;
        indices[0] = static_cast<std::int32_t>(a & mask_);
        indices[1] = static_cast<std::int32_t>(b & mask_);
        values[0] = value_of_a;
        values[1] = value_of_b;
    }

    // Features by their names, whose hashes are made together; `space(i)` returns the namespace of one.
    template <class Space>
    RARESTREAM_ALWAYS_INLINE void add(Names& names, const float* values, std::size_t count, const Space& space) {
        hash(names, count);
        const std::int64_t end = filled_ + static_cast<std::int64_t>(count);
        if (end > capacity_) grow(std::max(2 * capacity_, end));
        for (std::size_t i = 0; i < count; ++i) {
            rows_.indices[static_cast<std::size_t>(filled_) + i] = static_cast<std::int32_t>(names.hashes[i] & mask_);
        }
        std::copy_n(values, count, rows_.values.get() + filled_);
        filled_ = end;
        if (!filter_) return;
        for (std::size_t i = 0; i < count; ++i) {
            if (filter_->is_new(names.hashes[i])) {
                new_names_.push_back({names.hashes[i], space(i), {names.texts[i], names.sizes[i]}});
            }
        }
    }

    void hash(Names& names, std::size_t count) const { hash_names_(names, count); }

    // A feature by its name; `seed` is the hash of its namespace.
    std::uint32_t feature(std::uint32_t seed, std::string_view space, std::string_view name, float value) {
        const std::uint32_t hash = murmur3(name, seed);
        add(hash, space, name, value);
        return hash;
    }

    // Sorts the row and adds it to the CSR arrays. False: duplicates sum to a value beyond float32, and the row is dropped.
    // The caller then pushes label, line and column.
    bool end_row() {
        std::int32_t* const indices = rows_.indices.get() + begin_;
        float* const values = rows_.values.get() + begin_;
        const std::int64_t size = filled_ - begin_;
        const bool sorted = size < 2 || (size <= LONGEST_SHORT_ROW && sort_short_(indices, values, static_cast<int>(size)));
        if (!sorted) {
            filled_ = begin_ + sorted_by_keys(indices, values, size);
            for (std::int64_t p = begin_; p < filled_; ++p) {
                if (!(std::fabs(rows_.values[p]) <= std::numeric_limits<float>::max())) {
                    drop_row();
                    return false;
                }
            }
        }
        for (const NewName& kept : new_names_) {
            if (!rows_.names.add(kept.hash, kept.space, kept.name)) filter_->forget(kept.hash);
        }
        new_names_.clear();
        rows_.indptr.push_back(filled_);
        if (filled_ > begin_) {
            rows_.width = std::max<std::int64_t>(rows_.width, std::int64_t{rows_.indices[filled_ - 1]} + 1);
        }
        return true;
    }

private:
    __attribute__((noinline)) void grow(std::int64_t capacity) {
        auto indices = pooled<std::int32_t>(static_cast<std::size_t>(capacity) + SORT_READS);
        auto values = pooled<float>(static_cast<std::size_t>(capacity) + SORT_READS);
        std::copy_n(rows_.indices.get(), filled_, indices.get());
        std::copy_n(rows_.values.get(), filled_, values.get());
        rows_.indices = std::move(indices);
        rows_.values = std::move(values);
        capacity_ = capacity;
    }

    // Any row: duplicates are summed in double, in their order. Returns the number of entries left.
    std::int64_t sorted_by_keys(std::int32_t* indices, float* values, std::int64_t size) {
        keys_.resize(static_cast<std::size_t>(size));
        if (!in_buckets(indices, size)) {
            for (std::int64_t p = 0; p < size; ++p) keys_[static_cast<std::size_t>(p)] = key(indices[p], p);
            std::sort(keys_.begin(), keys_.end());
        }
        unsorted_.assign(values, values + size);
        std::int64_t kept = 0;
        for (std::int64_t p = 0; p < size;) {
            const std::uint64_t index = keys_[p] >> 32;
            double sum = 0;
            for (; p < size && keys_[p] >> 32 == index; ++p) sum += unsorted_[static_cast<std::uint32_t>(keys_[p])];
            indices[kept] = static_cast<std::int32_t>(index);
            values[kept++] = static_cast<float>(sum);
        }
        return kept;
    }

    // An index and the place of its value, which is what entries with the same index are sorted by.
    static std::uint64_t key(std::int32_t index, std::int64_t place) {
        return static_cast<std::uint64_t>(index) << 32 | static_cast<std::uint64_t>(place);
    }

    // Fills `keys_`, sorted. Slots are spread evenly: with more buckets than entries, hardly any bucket has more than a
    // few. False: some bucket has many, or there are too many entries.
    bool in_buckets(const std::int32_t* indices, std::int64_t size) {
        constexpr std::int64_t most = 1 << 14;
        constexpr std::uint32_t most_in_bucket = 16;
        if (size > most) return false;
        int bits = 1;
        while ((std::int64_t{1} << bits) < 2 * size) ++bits;
        const int shift = std::max(0, 32 - __builtin_clz(mask_) - bits);
        ends_.assign((std::size_t{mask_} >> shift) + 1, 0);
        for (std::int64_t p = 0; p < size; ++p) ++ends_[static_cast<std::size_t>(indices[p] >> shift)];
        std::uint32_t sum = 0, largest = 0;
        for (std::uint32_t& end : ends_) {
            largest = std::max(largest, end);
            end = sum += end;
        }
        if (largest > most_in_bucket) return false;
        for (std::int64_t p = size; p-- > 0;) {
            keys_[--ends_[static_cast<std::size_t>(indices[p] >> shift)]] = key(indices[p], p);
        }
        for (std::size_t i = 1; i < keys_.size(); ++i) {
            const std::uint64_t moved = keys_[i];
            std::size_t to = i;
            for (; to > 0 && keys_[to - 1] > moved; --to) keys_[to] = keys_[to - 1];
            keys_[to] = moved;
        }
        return true;
    }

    struct NewName {
        std::uint32_t hash;
        std::string_view space, name;
    };

    std::uint32_t mask_;
    NameFilter* filter_;
    ParsedRows& rows_;
    const HashNames hash_names_;
    const SortShortRow sort_short_;
    std::int64_t begin_ = 0, filled_ = 0, capacity_ = 0;
    std::vector<NewName> new_names_;  // of the current row
    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> ends_;  // of the buckets in `keys_`
    std::vector<float> unsorted_;
};

}  // namespace rarestream::features
