// The keys of dicts that were seen before, with their columns. Those of a stream of dicts mostly come in the same order, so
// that a key is recognised by comparing it with the one that followed last time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "features/murmur3.hpp"

namespace rarestream::dicts {

class Keys {
public:
    struct Known {
        std::string name;
        std::uint32_t hash;  // of the name
        int column;          // -1: it is ignored; below: it is not in the plan
        int next = -1;       // the key that followed last time
    };

    const Known& operator[](int k) const { return known_[static_cast<std::size_t>(k)]; }

    // The number of the key that follows key `previous`, or is the first (-1); -1 if it is not known.
    int find(int previous, std::string_view name) {
        int& next = next_of(previous);
        if (next < 0 || (*this)[next].name != name) {
            const auto found = by_name_.find(name);
            if (found == by_name_.end()) return -1;
            next = found->second;
        }
        return next;
    }

    // -1: there is no room.
    int add(int previous, std::string_view name, int column) {
        if (known_.size() >= MOST) return -1;
        known_.push_back({std::string(name), features::murmur3(name, 0), column});
        const int k = static_cast<int>(known_.size()) - 1;
        by_name_.emplace(known_.back().name, k);
        return next_of(previous) = k;
    }

private:
    static constexpr std::size_t MOST = 1 << 12;
    std::deque<Known> known_;  // whose elements stay where they are
    std::unordered_map<std::string_view, int> by_name_;
    int first_ = -1;

    int& next_of(int k) { return k < 0 ? first_ : known_[static_cast<std::size_t>(k)].next; }
};

}  // namespace rarestream::dicts
