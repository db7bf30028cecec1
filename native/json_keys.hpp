// The keys of JSON objects that were seen before, with their columns. Keys mostly come in the same order, so the one that
// followed last time is tried first. A parser of requests keeps them from one row to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rarestream::json {

class KnownKeys {
public:
    struct Known {
        std::string name;
        int column;
        bool plain;            // whether it is written as it is, without escapes
        std::int64_t row = 0;  // where it came last
        int next = -1;         // the key that followed
    };

    int first = -1;        // the key that came first
    std::int64_t row = 0;  // the number of the current row, which never comes again

    Known& operator[](int k) { return known_[static_cast<std::size_t>(k)]; }

    // To be called before a text: whoever sends new keys again and again must not fill the memory.
    void begin_text() {
        if (!full()) return;
        by_name_.clear();
        known_.clear();
        first = -1;
    }

    bool full() const { return known_.size() >= MOST; }

    // The number of a key; -1: it is not known.
    int find(std::string_view name) const {
        const auto found = by_name_.find(name);
        return found == by_name_.end() ? -1 : found->second;
    }

    // -1: it is not remembered.
    int add(std::string_view name, int column, bool plain) {
        if (full() || name.size() > LONGEST) return -1;
        known_.push_back({std::string(name), column, plain});
        const int k = static_cast<int>(known_.size()) - 1;
        by_name_.emplace(known_.back().name, k);
        return k;
    }

private:
    static constexpr std::size_t MOST = 1 << 13, LONGEST = 1 << 10;
    std::deque<Known> known_;  // whose elements stay where they are
    std::unordered_map<std::string_view, int> by_name_;
};

}  // namespace rarestream::json
