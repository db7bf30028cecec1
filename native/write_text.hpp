// Rows to text: svmlight, and Vowpal Wabbit's. What the parsers of these formats read from it are the same rows, bit for
// bit.
//
// A feature of VW text is a name, whose hash is its slot. Some names cannot be written: those with a blank, a colon, a bar
// or a control character, empty ones, and names that are not known. They are written as another name with the same slot:
// MurmurHash3 can be solved for its last four bytes, so to any text a few letters can be added that give any hash.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "features/murmur3.hpp"
#include "features/name_table.hpp"
#include "features/new_names.hpp"
#include "number_text.hpp"

namespace rarestream::text {

// Text that grows. Its memory is handed over at the end.
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data_); }

    // Where so many more bytes may be written; `filled` says how many were.
    char* room(std::size_t size) {
        if (size_ + size > capacity_) grow(size_ + size);
        return data_ + size_;
    }
    void filled(const char* end) { size_ = static_cast<std::size_t>(end - data_); }

    void put(std::string_view text) {
        std::memcpy(room(text.size()), text.data(), text.size());
        size_ += text.size();
    }
    void put(char c) {
        *room(1) = c;
        ++size_;
    }

    std::size_t size() const { return size_; }

    // The text, for the caller to free.
    char* release() {
        if (!data_) room(1);
        return std::exchange(data_, nullptr);
    }

private:
    char* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;

    void grow(std::size_t wanted) {
        const std::size_t capacity = std::max(wanted, 2 * capacity_ + 4096);
        char* const grown = static_cast<char*>(std::realloc(data_, capacity));
        if (!grown) throw std::bad_alloc();
        data_ = grown;
        capacity_ = capacity;
    }
};

// Rows in CSR form, and what is said of each. Labels are NaN where there is none; other arrays are nullptr if no row has
// one.
struct Rows {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* values;
    const double* labels;
    const double* importances;
    std::size_t count;
};

// +1 and -1 for the labels of two classes, as svmlight's own files have them; `classes`: numbers as they are.
inline char* put_label(char* to, double label, bool plus) {
    if (plus && label > 0) *to++ = '+';
    return put_number(to, label);
}

// label [qid:N] [cost:W] index:value ... , indices from 1; a qid below 0 is none. All rows have labels.
inline void write_svmlight(Buffer& out, const Rows& rows, const std::int64_t* qids, bool plus) {
    constexpr std::size_t widest = 1 + 10 + 1 + LONGEST_NUMBER;  // of a feature
    for (std::size_t i = 0; i < rows.count; ++i) {
        const std::int64_t begin = rows.indptr[i], end = rows.indptr[i + 1];
        char* to = out.room(128 + 2 * LONGEST_NUMBER + widest * static_cast<std::size_t>(end - begin));
        to = put_label(to, rows.labels[i], plus);
        if (qids && qids[i] >= 0) {
            std::memcpy(to, " qid:", 5);
            to = put_whole(to + 5, static_cast<std::uint64_t>(qids[i]));
        }
        if (rows.importances && rows.importances[i] != 1) {
            std::memcpy(to, " cost:", 6);
            to = put_number(to + 6, rows.importances[i]);
        }
        for (std::int64_t k = begin; k < end; ++k) {
            *to++ = ' ';
            to = put_whole(to, static_cast<std::uint64_t>(rows.indices[k]) + 1);
            *to++ = ':';
            to = put_number(to, rows.values[k]);
        }
        *to++ = '\n';
        out.filled(to);
    }
}

// -- names with a given hash

// The number that gives 1 when multiplied by an odd one, modulo 2^32.
constexpr std::uint32_t inverse(std::uint32_t odd) {
    std::uint32_t x = odd;
    for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
    return x;
}

inline std::uint32_t rotated_right(std::uint32_t x, int bits) { return (x >> bits) | (x << (32 - bits)); }

// The hash before `murmur3_finished`.
inline std::uint32_t unfinished(std::uint32_t h, std::size_t size) {
    h ^= h >> 16;
    h *= inverse(0xc2b2ae35u);
    h ^= (h >> 13) ^ (h >> 26);
    h *= inverse(0x85ebca6bu);
    h ^= h >> 16;
    return h ^ static_cast<std::uint32_t>(size);
}

// The four bytes, as a little-endian number, with which `murmur3_round` leads from one hash to another.
inline std::uint32_t block_between(std::uint32_t before, std::uint32_t after) {
    const std::uint32_t scrambled = before ^ rotated_right((after - 0xe6546b64u) * inverse(5), 13);
    return rotated_right(scrambled * inverse(0x1b873593u), 15) * inverse(0xcc9e2d51u);
}

// A name that starts with `text` and has this hash: a tilde and a few letters and digits are added.
inline std::string name_with_hash(std::string_view text, std::uint32_t seed, std::uint32_t hash) {
    static constexpr char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    constexpr std::size_t base = sizeof letters - 1;
    std::string name(text);
    name += '~';
    const std::size_t tried =
        name.size();  // from here on, letters that are tried until the last four bytes are letters too
    name.append(3 + (4 - (tried + 3) % 4) % 4, 'a');
    name.append(4, 'a');
    const std::size_t last = name.size() - 4;
    const std::uint32_t after = unfinished(hash, name.size());
    const std::size_t fixed = tried & ~std::size_t{3};  // the blocks up to here stay as they are
    std::uint32_t start = seed;
    for (std::size_t i = 0; i < fixed; i += 4) start = features::murmur3_round(start, name.data() + i);
    for (std::uint64_t turn = 0;; ++turn) {
        std::uint64_t rest = turn;
        for (std::size_t i = tried; i < last; ++i, rest /= base) name[i] = letters[rest % base];
        std::uint32_t before = start;
        for (std::size_t i = fixed; i < last; i += 4) before = features::murmur3_round(before, name.data() + i);
        const std::uint32_t block = block_between(before, after);
        bool fine = true;
        for (std::size_t i = 0; i < 4; ++i) {
            const unsigned char c = static_cast<unsigned char>(block >> (8 * i));
            name[last + i] = static_cast<char>(c);
            fine = fine && c < 0x80 && std::isalnum(c);
        }
        if (fine) return name;
    }
}

// -- VW text

// [label [importance]] ['tag]|namespace name[:value] ... |namespace ...
class VwWriter {
public:
    // `table` has the names of slots, 2^bits of them; bits == 0: features are the numbers of columns, counted from `first`.
    VwWriter(int bits, int first, const features::NameTable* table)
        : first_(first), mask_(bits ? (std::uint32_t{1} << bits) - 1 : 0), table_(table), cache_(CACHED) {}

    // The number of slots; 0: features are columns.
    std::uint32_t slots() const { return mask_ ? mask_ + 1 : 0; }

    // `tags` is their text, one after the other, up to `tag_ends`; nullptr: no row has one.
    void write(Buffer& out, const Rows& rows, const char* tags, const std::int64_t* tag_ends) {
        const std::scoped_lock held(lock_);
        for (std::size_t i = 0; i < rows.count; ++i) {
            head(out, rows, i);
            if (tags) {
                const std::int64_t begin = i ? tag_ends[i - 1] : 0;
                if (tag_ends[i] > begin) {
                    out.put('\'');
                    out.put({tags + begin, static_cast<std::size_t>(tag_ends[i] - begin)});
                }
            }
            if (mask_) {
                names(out, rows, i);
            } else {
                columns(out, rows, i);
            }
            out.put('\n');
        }
    }

    // Distinct slots that were written under another name than theirs, and those of them whose name is not known.
    std::size_t replaced() const { return replaced_; }
    std::size_t unknown() const { return unknown_; }
    // Features of value 0, which VW text does not have.
    std::size_t zeros() const { return zeros_; }
    // Importances of rows without a label, which VW text does not have either.
    std::size_t dropped_importances() const { return dropped_importances_; }
    // A few names as they are remembered, and as they were written.
    const std::vector<std::pair<std::string, std::string>>& examples() const { return examples_; }

private:
    static constexpr std::size_t CACHED = 1 << 16;
    static constexpr std::size_t EXAMPLES = 3;

    struct Entry {
        std::int32_t slot = -1;
        std::uint32_t space = 0;
        std::string name = {};
    };

    // What a slot is written as.
    struct Spelled {
        std::string space, name;
    };

    void head(Buffer& out, const Rows& rows, std::size_t i) {
        const double importance = rows.importances ? rows.importances[i] : 1;
        if (std::isnan(rows.labels[i])) {
            dropped_importances_ += importance != 1;
            return;
        }
        char* to = put_label(out.room(2 * LONGEST_NUMBER + 8), rows.labels[i], false);
        if (importance != 1) {
            *to++ = ' ';
            to = put_number(to, importance);
        }
        *to++ = ' ';
        out.filled(to);
    }

    void value(Buffer& out, float value) {
        if (value == 1) return;
        char* const to = out.room(1 + LONGEST_NUMBER);
        *to = ':';
        out.filled(put_number(to + 1, value));
    }

    void columns(Buffer& out, const Rows& rows, std::size_t i) {
        out.put('|');
        for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
            if (rows.values[k] == 0) {
                ++zeros_;
                continue;
            }
            char* const to = out.room(1 + 10);
            *to = ' ';
            out.filled(put_whole(to + 1, static_cast<std::uint64_t>(rows.indices[k] + std::int64_t{first_})));
            value(out, rows.values[k]);
        }
    }

    // The features of each namespace together, namespaces in the order in which they were first seen.
    void names(Buffer& out, const Rows& rows, std::size_t i) {
        order_.clear();
        for (std::int64_t k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
            if (rows.values[k] == 0) {
                ++zeros_;
                continue;
            }
            const Entry& entry = entry_of(rows.indices[k]);
            const std::size_t begin = row_text_.size();
            row_text_.append(entry.name);
            order_.push_back({entry.space, rows.values[k], begin, entry.name.size()});
        }
        std::stable_sort(order_.begin(), order_.end(),
                         [](const Written& a, const Written& b) { return a.space < b.space; });
        if (order_.empty()) out.put('|');
        for (std::size_t j = 0; j < order_.size(); ++j) {
            const Written& one = order_[j];
            if (j == 0 || one.space != order_[j - 1].space) {
                if (j) out.put(' ');
                out.put('|');
                out.put(spaces_[one.space]);
            }
            out.put(' ');
            out.put(std::string_view(row_text_).substr(one.begin, one.size));
            value(out, one.value);
        }
        row_text_.clear();
    }

    const Entry& entry_of(std::int32_t slot) {
        Entry& entry = cache_[(static_cast<std::uint32_t>(slot) * 0x9e3779b1u) >> 16];
        if (entry.slot != slot) {
            Spelled spelled = spell(slot);
            const auto [found, added] = numbers_.emplace(spelled.space, static_cast<std::uint32_t>(spaces_.size()));
            if (added) spaces_.push_back(spelled.space);
            entry.slot = slot;
            entry.space = found->second;
            entry.name = std::move(spelled.name);
        }
        return entry;
    }

    static bool holds(std::string_view text) {
        return std::all_of(text.begin(), text.end(),
                           [](char c) { return static_cast<unsigned char>(c) > ' ' && c != ':' && c != '|'; });
    }

    static std::string without_separators(std::string_view text) {
        std::string found(text);
        for (char& c : found)
            if (static_cast<unsigned char>(c) <= ' ' || c == ':' || c == '|') c = '_';
        return found;
    }

    Spelled spell(std::int32_t slot) {
        const features::NameArrays found = table_ ? table_->to_arrays(&slot, 1, false) : features::NameArrays();
        const bool known = !found.slots.empty();
        const std::string& stored = found.text;
        const std::uint32_t hash = static_cast<std::uint32_t>(known ? found.hashes[0] : slot);
        const std::string_view text = stored;
        // A namespace may contain the character that ends it: the right place is the one that gives the slot.
        for (std::size_t at = text.find(features::NAMESPACE_END); known && at != text.npos;
             at = text.find(features::NAMESPACE_END, at + 1)) {
            const std::string_view space = text.substr(0, at), name = text.substr(at + 1);
            if (name.empty() || !holds(space) || !holds(name)) continue;
            if ((features::murmur3(name, features::murmur3(space, 0)) & mask_) == static_cast<std::uint32_t>(slot))
                return {std::string(space), std::string(name)};
        }
        const std::size_t at = std::min(text.find(features::NAMESPACE_END), text.size());
        std::string space = known ? without_separators(text.substr(0, at)) : std::string();
        std::string name =
            known ? without_separators(text.substr(std::min(at + 1, text.size()))) : "slot" + std::to_string(slot);
        name = name_with_hash(name, features::murmur3(space, 0), hash);
        count(slot, known, stored, space + features::NAMESPACE_END + name);
        return {std::move(space), std::move(name)};
    }

    void count(std::int32_t slot, bool known, const std::string& stored, const std::string& written) {
        if (counted_.empty()) counted_.assign((std::size_t{mask_} + 64) / 64, 0);
        const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
        std::uint64_t& word = counted_[static_cast<std::size_t>(slot) / 64];
        if (word & bit) return;
        word |= bit;
        ++replaced_;
        unknown_ += !known;
        if (known && examples_.size() < EXAMPLES) examples_.emplace_back(stored, written);
    }

    struct Written {
        std::uint32_t space;
        float value;
        std::size_t begin, size;  // of its name in row_text_
    };

    const int first_;
    const std::uint32_t mask_;
    const features::NameTable* const table_;
    std::vector<Entry> cache_;
    std::vector<std::string> spaces_;
    std::unordered_map<std::string, std::uint32_t> numbers_;  // of the namespaces
    std::vector<Written> order_;
    std::string row_text_;
    std::vector<std::uint64_t> counted_;  // a bit for each slot that is counted in `replaced_`; empty until there is one
    std::size_t replaced_ = 0, unknown_ = 0, zeros_ = 0, dropped_importances_ = 0;
    std::vector<std::pair<std::string, std::string>> examples_;
    std::mutex lock_;
};

}  // namespace rarestream::text
