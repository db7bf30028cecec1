// Names of features on their way from the threads that parse to the name table of a feature space.
//
// Parsing runs on several threads, but the first name of a slot must not depend on which thread is quicker. So a
// thread only collects the names that are new to itself, chunk by chunk, and the reader adds them to the table in the order
// of the chunks. A thread parses chunks in that order too: a name is in the list of the first chunk that has it, or in that
// of an earlier one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "platform.hpp"

namespace rarestream::features {

constexpr char NAMESPACE_END = '^';        // between namespace and name, as in device^phone
constexpr std::size_t LONGEST_NAME = 255;  // bytes of a name that are remembered; the hash is of all of it

// Bytes of names that the rows of a request may bring, as much as a name table takes by default: a short text can have
// many features with the same long namespace.
constexpr std::size_t MOST_NAMES_OF_REQUEST = std::size_t{64} << 20;

// Names in the order in which a thread first saw them.
struct NewNames {
    std::vector<std::uint32_t> hashes;  // all 32 bits; the slot is the low ones
    std::vector<std::size_t> ends;      // of each name in `text`
    std::string text;                   // namespace^name of each, one after the other
    std::size_t most_text = std::numeric_limits<std::size_t>::max();

    std::size_t size() const { return hashes.size(); }

    std::string_view name(std::size_t i) const {
        const std::size_t begin = i ? ends[i - 1] : 0;
        return std::string_view(text).substr(begin, ends[i] - begin);
    }

    // Cut within the limit, and not in the middle of a UTF-8 character.
    static std::string_view shortened(std::string_view name) {
        if (name.size() <= LONGEST_NAME) return name;
        std::size_t size = LONGEST_NAME;
        while (size > 0 && (static_cast<unsigned char>(name[size]) & 0xC0) == 0x80) --size;
        return name.substr(0, size);
    }

    // False: there is no room for more text, and it was not added.
    bool add(std::uint32_t hash, std::string_view space, std::string_view name) {
        if (text.size() > most_text) return false;
        if (hashes.empty()) {  // those of a row that comes alone
            hashes.reserve(64);
            ends.reserve(64);
            text.reserve(1024);
        }
        hashes.push_back(hash);
        text.append(shortened(space));
        text.push_back(NAMESPACE_END);
        text.append(shortened(name));
        ends.push_back(text.size());
        return true;
    }
};

// What one thread knows: of each group of hashes that end alike, the one it has seen last.
class NameFilter {
public:
    NameFilter() {
        // Zeros from calloc need no memory until they are used. Large pages: every name is looked up here.
        last_.reset(static_cast<std::uint16_t*>(std::calloc(SIZE, sizeof(std::uint16_t))));
        if (!last_) throw std::bad_alloc();
        prefer_huge_pages(last_.get(), SIZE * sizeof(std::uint16_t));
        for (std::uint32_t i = 0; i < RECENT; ++i) recent_[i] = ~i;  // no hash has its place here
    }

    void prefetch(std::uint32_t hash) const { __builtin_prefetch(&last_[hash & (SIZE - 1)], 1); }

    // Whether the name with this hash must be collected. Two names that take turns in a place are new again and again.
    bool is_new(std::uint32_t hash) {
        std::uint32_t& recent = recent_[hash & (RECENT - 1)];
        if (recent == hash) return false;
        recent = hash;
        const std::uint16_t mark = static_cast<std::uint16_t>((hash >> BITS) + 1);  // with the place, all of the hash
        std::uint16_t& last = last_[hash & (SIZE - 1)];
        if (last == mark) return false;
        last = mark;
        return true;
    }

    // The name with this hash was not collected after all.
    void forget(std::uint32_t hash) {
        last_[hash & (SIZE - 1)] = 0;
        recent_[hash & (RECENT - 1)] = ~hash;
    }

private:
    static constexpr int BITS = 21;
    static constexpr std::size_t SIZE = std::size_t{1} << BITS;

    static constexpr std::size_t RECENT = std::size_t{1} << 14;

    struct Free {
        void operator()(std::uint16_t* memory) const noexcept { std::free(memory); }
    };

    std::unique_ptr<std::uint16_t[], Free> last_;
    std::uint32_t recent_[RECENT];  // hashes that were seen lately: few enough for a cache near the processor
};

}  // namespace rarestream::features
