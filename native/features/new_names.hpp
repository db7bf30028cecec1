// Names of features on their way from the threads that parse to the name table of a feature space.
//
// Parsing runs on several threads, but the first name of a slot must not depend on which thread is quicker. So a
// thread only collects the names that are new to itself, chunk by chunk, and the reader adds them to the table in the order
// of the chunks. A thread parses chunks in that order too: a name is in the list of the first chunk that has it, or in that
// of an earlier one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace rarestream::features {

constexpr char NAMESPACE_END = '^';        // between namespace and name, as in device^phone
constexpr std::size_t LONGEST_NAME = 255;  // bytes of a name that are remembered; the hash is of all of it

// Names in the order in which a thread first saw them.
struct NewNames {
    std::vector<std::uint32_t> hashes;  // all 32 bits; the slot is the low ones
    std::vector<std::size_t> ends;      // of each name in `text`
    std::string text;                   // namespace^name of each, one after the other

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

    void add(std::uint32_t hash, std::string_view space, std::string_view name) {
        hashes.push_back(hash);
        text.append(shortened(space));
        text.push_back(NAMESPACE_END);
        text.append(shortened(name));
        ends.push_back(text.size());
    }
};

// What one thread knows: the last hash it has seen in each slot.
class NameFilter {
public:
    explicit NameFilter(int bits) : mask_((std::uint32_t{1} << std::min(bits, MOST_BITS)) - 1) {
        // Zeros from calloc need no memory until they are used.
        last_.reset(static_cast<std::uint32_t*>(std::calloc(std::size_t{mask_} + 1, sizeof(std::uint32_t))));
        if (!last_) throw std::bad_alloc();
    }

    // Whether the name with this hash must be collected. Two names that take turns in a slot may be new again and again.
    bool is_new(std::uint32_t hash) {
        const std::uint32_t mark = hash ? hash : 1;
        std::uint32_t& recent = recent_[hash >> (32 - RECENT_BITS)];
        if (recent == mark) return false;
        recent = mark;
        std::uint32_t& last = last_[hash & mask_];
        if (last == mark) return false;
        last = mark;
        return true;
    }

    // To be called some time before `is_new`: the entry is then in a cache.
    void prefetch(std::uint32_t hash) const { __builtin_prefetch(&last_[hash & mask_], 1); }

private:
    static constexpr int RECENT_BITS = 12;  // 16 KB: frequent names are found in the fastest cache
    static constexpr int MOST_BITS = 22;    // 16 MB; in a larger space, slots share an entry, and more names are new again

    struct Free {
        void operator()(std::uint32_t* memory) const noexcept { std::free(memory); }
    };

    std::uint32_t mask_;
    std::unique_ptr<std::uint32_t[], Free> last_;
    std::array<std::uint32_t, std::size_t{1} << RECENT_BITS> recent_{};
};

}  // namespace rarestream::features
