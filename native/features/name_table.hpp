// The names of hashed features: slot -> the first name that used it. Bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "features/new_names.hpp"

namespace rarestream::features {

// Entries as plain arrays, in the order of their slots. The first entry of a slot has its name; the entries after it are
// the hashes of names that collide with it, without text.
struct NameArrays {
    std::vector<std::int32_t> slots;
    std::vector<std::int32_t> hashes;  // all 32 bits, as a signed number
    std::vector<std::int64_t> ends;    // of each name in `text`
    std::string text;
};

// What has come into a table since it was last asked, in the order in which it came.
struct NameChanges {
    std::vector<std::int32_t> hashes;    // all 32 bits, as a signed number
    std::vector<std::uint16_t> lengths;  // of each name in `text`; a name that collides with an earlier one has no text
    std::string text;
    std::vector<std::int32_t> lost;  // slots that found no room
};

// Numbers of entries, found by a key with linear probing; nothing is ever removed.
class EntryIndex {
public:
    std::size_t used() const { return used_; }

    // The first entry with this key for which `matches(entry)`; NONE if there is none.
    template <class Matches>
    std::size_t find(std::uint32_t key, Matches&& matches) const {
        for (std::size_t at = cell_of(key); cells_[at]; at = next(at))
            if (matches(cells_[at] - 1)) return cells_[at] - 1;
        return NONE;
    }

    void prefetch(std::uint32_t key) const { __builtin_prefetch(&cells_[cell_of(key)]); }

    // The entry in the first place where one with this key could be; NONE if there is none.
    std::size_t first_place(std::uint32_t key) const {
        const std::uint32_t cell = cells_[cell_of(key)];
        return cell ? cell - 1 : NONE;
    }

    // `key_of(entry)` gives the key of an entry that is here already.
    template <class KeyOf>
    void add(std::uint32_t key, std::size_t entry, KeyOf&& key_of) {
        if (cells_for(++used_) != cells_.size()) {
            std::vector<std::uint32_t> before(cells_for(used_), 0);
            before.swap(cells_);
            for (const std::uint32_t cell : before)
                if (cell) place(key_of(cell - 1), cell - 1);
        }
        place(key, entry);
    }

    // With so many entries. It depends on nothing else, so that the limit of a table is the same wherever rows are cut.
    static std::size_t bytes_with(std::size_t entries) { return cells_for(entries) * sizeof(std::uint32_t); }

    static constexpr std::size_t NONE = static_cast<std::size_t>(-1);

private:
    static constexpr std::size_t FIRST_CELLS = 64;
    std::vector<std::uint32_t> cells_ = std::vector<std::uint32_t>(FIRST_CELLS, 0);  // entry + 1; 0: empty
    std::size_t used_ = 0;

    // A power of two, of which at most half are used.
    static std::size_t cells_for(std::size_t entries) {
        std::size_t cells = FIRST_CELLS;
        while (cells < 2 * entries) cells *= 2;
        return cells;
    }

    std::size_t cell_of(std::uint32_t key) const { return mixed(key) & (cells_.size() - 1); }
    std::size_t next(std::size_t cell) const { return (cell + 1) & (cells_.size() - 1); }

    // Hashes that share their low bits must not share a cell.
    static std::uint32_t mixed(std::uint32_t key) {
        key = (key ^ (key >> 16)) * 0x85ebca6bu;
        return key ^ (key >> 13);
    }

    void place(std::uint32_t key, std::size_t entry) {
        std::size_t at = cell_of(key);
        while (cells_[at]) at = next(at);
        cells_[at] = static_cast<std::uint32_t>(entry + 1);
    }
};

// A log of distinct names in the order in which they were first seen, told apart by all 32 bits of their hashes. Of names
// that collide with an earlier one only the hash is kept. Several threads may use a table.
class NameTable {
public:
    // With `recording`, `take_changes` can be called.
    NameTable(int bits, std::size_t limit, bool recording = false)
        : bits_(bits), mask_(checked_mask(bits)), limit_(limit), recording_(recording) {}

    NameTable(const NameTable& other) : NameTable(other, other.settled()) {}
    NameTable& operator=(const NameTable&) = delete;

    int bits() const { return bits_; }
    std::size_t limit() const { return limit_; }

    // Entries: names, and hashes that collide.
    std::size_t size() const {
        const auto held = settled();
        return hashes_.size();
    }
    std::size_t bytes() const {
        const auto held = settled();
        return bytes_with(by_slot_.used(), colliding_.used(), text_.size());
    }
    // Distinct names that share a slot with an earlier one, as far as there is memory to tell them apart.
    std::size_t collisions() const {
        const auto held = settled();
        return collisions_;
    }
    // Whether a name found no room. From then on only names that are known already are kept.
    bool full() const {
        const auto held = settled();
        return full_;
    }
    // Distinct slots without a name, because the table is full.
    std::size_t lost() const {
        const auto held = settled();
        return lost_;
    }

    void add(const NewNames& names) {
        const auto held = settled();
        add_all(names.hashes.data(), names.size(), [&](std::size_t i) { return names.name(i); });
    }

    // Adds the entries of another table from `start` on, in their order; returns the size of that table.
    std::size_t merge(const NameTable& other, std::size_t start) {
        if (other.bits_ != bits_) throw std::invalid_argument("merge: the tables have different numbers of bits");
        if (&other == this) return size();
        const std::scoped_lock held(lock_, other.lock_);
        settle();
        const_cast<NameTable&>(other).settle();
        for (std::size_t i = start; i < other.hashes_.size(); ++i) add_one(other.hashes_[i], other.text_of(i));
        other.each_lost([this](std::uint32_t slot) { mark_lost(slot); });
        return other.hashes_.size();
    }

    // Appends the name of each slot to `text`, and its end to `ends`; nothing where it is not known: names are never empty.
    void names(const std::int32_t* slots, std::size_t count, std::string& text, std::vector<std::size_t>& ends) const {
        const auto held = settled();
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t entry = first_of(slots[i]);
            if (entry != NONE) text.append(text_of(entry));
            ends.push_back(text.size());
        }
    }

    // The entries of some slots, which must ascend; `colliding`: also those without text.
    NameArrays to_arrays(const std::int32_t* slots, std::size_t count, bool colliding) const {
        for (std::size_t i = 0; i < count; ++i)
            if (slots[i] < 0 || (i && slots[i] <= slots[i - 1]))
                throw std::invalid_argument("names: the slots must ascend");
        const auto held = settled();
        std::vector<std::size_t> wanted;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t entry = first_of(slots[i]);
            if (entry != NONE) wanted.push_back(entry);
        }
        if (colliding && colliding_.used()) {
            for (std::size_t entry = 0; entry < hashes_.size(); ++entry)
                if (text_of(entry).empty() && std::binary_search(slots, slots + count, slot_of(entry)))
                    wanted.push_back(entry);
            std::stable_sort(wanted.begin(), wanted.end(),
                             [this](std::size_t a, std::size_t b) { return slot_of(a) < slot_of(b); });
        }
        NameArrays out;
        for (const std::size_t entry : wanted) {
            out.slots.push_back(slot_of(entry));
            out.hashes.push_back(static_cast<std::int32_t>(hashes_[entry]));
            out.text.append(text_of(entry));
            out.ends.push_back(static_cast<std::int64_t>(out.text.size()));
        }
        return out;
    }

    // Adds entries as `to_arrays` gives them to an empty table. They may come from anywhere: others are refused.
    void load(const std::int32_t* slots, const std::int32_t* hashes, const std::int64_t* ends, std::size_t count,
              std::string_view text) {
        const auto require = [](bool holds, const char* rule) {
            if (!holds) throw std::invalid_argument(rule);
        };
        const auto held = settled();
        require(hashes_.empty(), "names: the table is not empty");
        std::size_t begin = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint32_t hash = static_cast<std::uint32_t>(hashes[i]);
            require(slots[i] >= 0 && (hash & mask_) == static_cast<std::uint32_t>(slots[i]),
                    "names: a slot is not that of its hash");
            require(!i || slots[i] >= slots[i - 1], "names: the slots must ascend");
            require(ends[i] >= static_cast<std::int64_t>(begin) && static_cast<std::uint64_t>(ends[i]) <= text.size(),
                    "names: the ends must ascend within the text");
            const std::size_t end = static_cast<std::size_t>(ends[i]);
            const bool first = !i || slots[i] != slots[i - 1];
            require(first == (end > begin), "names: the first entry of a slot has a name, and no other one has");
            require(end - begin <= 2 * LONGEST_NAME + 1, "names: a name is too long");
            const std::size_t before = hashes_.size();
            add_one(hash, text.substr(begin, end - begin));
            require(!full_, "names: they need more than the memory for names");
            require(hashes_.size() > before, "names: a hash occurs twice, or too many collide");
            begin = end;
        }
        require(begin == text.size(), "names: text without an entry");
    }

    // After `load`: how many names collided, whether the table was full, and some slots that had no name then.
    void restore(std::size_t collisions, bool full, const std::int32_t* slots, std::size_t count) {
        const auto held = settled();
        if (collisions < collisions_) throw std::invalid_argument("names: there are more collisions than are counted");
        collisions_ = collisions;
        full_ = full;
        for (std::size_t i = 0; full_ && i < count; ++i) {
            if (slots[i] < 0 || static_cast<std::uint32_t>(slots[i]) > mask_)
                throw std::invalid_argument("names: there is no such slot");
            mark_lost(static_cast<std::uint32_t>(slots[i]));
        }
    }

    // What has changed since the last call. `replay` does the same to another table.
    NameChanges take_changes() {
        const auto held = settled();
        if (!recording_) throw std::invalid_argument("names: this table does not record its changes");
        NameChanges out;
        out.text = text_.substr(taken_ ? ends_[taken_ - 1] : 0);
        for (std::size_t entry = taken_; entry < hashes_.size(); ++entry) {
            out.hashes.push_back(static_cast<std::int32_t>(hashes_[entry]));
            out.lengths.push_back(static_cast<std::uint16_t>(text_of(entry).size()));
        }
        taken_ = hashes_.size();
        out.lost.swap(newly_lost_);
        return out;
    }

    // Makes the changes of another table, when somebody first asks for a name: many who read rows never do. Changes may
    // come from anywhere: others are refused.
    void replay(NameChanges changes) {
        std::size_t size = 0;
        std::uint16_t longest = 0;
        for (const std::uint16_t length : changes.lengths) {  // without a branch, so that it takes many at once
            longest = std::max(longest, length);
            size += length;
        }
        if (longest > 2 * LONGEST_NAME + 1) throw std::invalid_argument("names: a name is too long");
        if (size != changes.text.size() || changes.lengths.size() != changes.hashes.size())
            throw std::invalid_argument("names: the lengths are not those of the text");
        for (const std::int32_t slot : changes.lost)
            if (slot < 0 || static_cast<std::uint32_t>(slot) > mask_)
                throw std::invalid_argument("names: there is no such slot");
        const std::scoped_lock held(lock_);
        waiting_bytes_ += changes.hashes.size() * sizeof(std::uint32_t) + changes.text.size();
        waiting_.push_back(std::move(changes));
        if (waiting_bytes_ > limit_) settle();
    }

    // The slots that are counted in `lost`, in order.
    std::vector<std::int32_t> lost_slots() const {
        const auto held = settled();
        std::vector<std::int32_t> out;
        each_lost([&](std::uint32_t slot) { out.push_back(static_cast<std::int32_t>(slot)); });
        return out;
    }

private:
    static constexpr std::size_t NONE = EntryIndex::NONE;

    const int bits_;
    const std::uint32_t mask_;
    const std::size_t limit_;
    std::vector<NameChanges> waiting_;  // that `replay` was given, and nobody has needed yet
    std::size_t waiting_bytes_ = 0;
    const bool recording_ = false;
    std::size_t taken_ = 0;                 // entries that `take_changes` has returned
    std::vector<std::int32_t> newly_lost_;  // slots that it has not, if recording
    std::vector<std::uint32_t> hashes_;     // of each entry
    std::vector<std::size_t> ends_;         // of each entry's name in `text_`
    std::string text_;
    EntryIndex by_slot_;                  // entries with a name
    EntryIndex colliding_;                // entries without, by hash
    std::vector<std::uint64_t> unnamed_;  // a bit for each slot that is counted in `lost_`; empty until the table is full
    std::size_t collisions_ = 0, lost_ = 0;
    bool full_ = false;
    mutable std::mutex lock_;

    NameTable(const NameTable& other, const std::unique_lock<std::mutex>&)
        : bits_(other.bits_), mask_(other.mask_), limit_(other.limit_), hashes_(other.hashes_), ends_(other.ends_),
          text_(other.text_), by_slot_(other.by_slot_), colliding_(other.colliding_), unnamed_(other.unnamed_),
          collisions_(other.collisions_), lost_(other.lost_), full_(other.full_) {}

    // Locks the table, with all changes made. No table is made const, so that they can be made here.
    std::unique_lock<std::mutex> settled() const {
        std::unique_lock<std::mutex> held(lock_);
        const_cast<NameTable*>(this)->settle();
        return held;
    }

    void settle() {
        const std::vector<NameChanges> changes = std::move(waiting_);
        waiting_.clear();
        waiting_bytes_ = 0;
        for (const NameChanges& change : changes) {
            std::size_t begin = 0;
            const auto name = [&](std::size_t i) {
                begin += i ? change.lengths[i - 1] : 0;
                return std::string_view(change.text).substr(begin, change.lengths[i]);
            };
            add_all(reinterpret_cast<const std::uint32_t*>(change.hashes.data()), change.hashes.size(), name);
            // A table is full from the first name on that finds no room; no entry comes after it.
            full_ = full_ || !change.lost.empty();
            for (const std::int32_t slot : change.lost) mark_lost(static_cast<std::uint32_t>(slot));
        }
    }

    // Adds names, in order: `name(i)` is called for each i in turn.
    template <class NameOf>
    void add_all(const std::uint32_t* hashes, std::size_t count, NameOf&& name) {
        constexpr std::size_t ahead = 16;  // names: memory that will be needed is loaded in time
        for (std::size_t i = 0; i < count; ++i) {
            if (i + ahead < count) by_slot_.prefetch(hashes[i + ahead] & mask_);
            if (i + ahead / 2 < count) {
                const std::size_t entry = by_slot_.first_place(hashes[i + ahead / 2] & mask_);
                if (entry != NONE) __builtin_prefetch(&hashes_[entry]);
            }
            add_one(hashes[i], name(i));
        }
    }

    static std::uint32_t checked_mask(int bits) {
        if (bits < 1 || bits > 30) throw std::invalid_argument("names: bits must be between 1 and 30");
        return (std::uint32_t{1} << bits) - 1;
    }

    std::string_view text_of(std::size_t entry) const {
        const std::size_t begin = entry ? ends_[entry - 1] : 0;
        return std::string_view(text_).substr(begin, ends_[entry] - begin);
    }

    std::int32_t slot_of(std::size_t entry) const { return static_cast<std::int32_t>(hashes_[entry] & mask_); }

    std::size_t first_of(std::int32_t slot) const {
        if (slot < 0) return NONE;
        return by_slot_.find(static_cast<std::uint32_t>(slot), [&](std::size_t entry) { return slot_of(entry) == slot; });
    }

    static std::size_t bytes_with(std::size_t names, std::size_t colliding, std::size_t text) {
        return (names + colliding) * (sizeof(std::uint32_t) + sizeof(std::uint64_t)) + text +
               EntryIndex::bytes_with(names) + EntryIndex::bytes_with(colliding);
    }

    void add_one(std::uint32_t hash, std::string_view name) {
        const std::uint32_t slot = hash & mask_;
        const std::size_t first = first_of(static_cast<std::int32_t>(slot));
        if (first != NONE) {
            add_colliding(first, hash);
        } else if (!name.empty()) {  // a name that collided in another table has no text
            full_ = full_ || bytes_with(by_slot_.used() + 1, colliding_.used(), text_.size() + name.size()) > limit_;
            if (full_) return mark_lost(slot);
            append(hash, name);
            by_slot_.add(slot, hashes_.size() - 1, [this](std::size_t entry) { return hashes_[entry] & mask_; });
        }
    }

    // They take no more than a quarter of the memory, so that names in very few slots do not crowd out each other.
    void add_colliding(std::size_t first, std::uint32_t hash) {
        const auto same = [&](std::size_t entry) { return hashes_[entry] == hash; };
        if (same(first) || full_ || colliding_.find(hash, same) != NONE) return;
        const std::size_t more = colliding_.used() + 1;
        if (bytes_with(0, more, 0) > limit_ / 4 || bytes_with(by_slot_.used(), more, text_.size()) > limit_) return;
        append(hash, {});
        colliding_.add(hash, hashes_.size() - 1, [this](std::size_t entry) { return hashes_[entry]; });
        ++collisions_;
    }

    void append(std::uint32_t hash, std::string_view name) {
        hashes_.push_back(hash);
        text_.append(name);
        ends_.push_back(text_.size());
    }

    template <class Function>
    void each_lost(Function&& f) const {
        for (std::size_t word = 0; word < unnamed_.size(); ++word)
            for (std::uint64_t bits = unnamed_[word]; bits; bits &= bits - 1)
                f(static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))));
    }

    void mark_lost(std::uint32_t slot) {
        if (first_of(static_cast<std::int32_t>(slot)) != NONE) return;
        if (unnamed_.empty()) unnamed_.assign((std::size_t{mask_} + 64) / 64, 0);
        const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
        if (unnamed_[slot / 64] & bit) return;
        ++lost_;
        if (recording_) newly_lost_.push_back(static_cast<std::int32_t>(slot));
        unnamed_[slot / 64] |= bit;
    }
};

}  // namespace rarestream::features
