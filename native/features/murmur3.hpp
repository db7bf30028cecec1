// MurmurHash3_x86_32, the hash of feature names. docs/features.md specifies it, with test vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rarestream::features {

inline std::uint32_t rotated_left(std::uint32_t x, int bits) { return (x << bits) | (x >> (32 - bits)); }

inline std::uint32_t murmur3_scrambled(std::uint32_t block) { return rotated_left(block * 0xcc9e2d51u, 15) * 0x1b873593u; }

// Four bytes as a little-endian number, whatever the machine.
inline std::uint32_t little_endian(const char* at) {
    std::uint32_t block;
    std::memcpy(&block, at, sizeof block);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    block = __builtin_bswap32(block);
#endif
    return block;
}

inline std::uint32_t murmur3_round(std::uint32_t h, const char* four) {
    return rotated_left(h ^ murmur3_scrambled(little_endian(four)), 13) * 5 + 0xe6546b64u;
}

inline std::uint32_t murmur3_finished(std::uint32_t h, std::size_t size) {
    h ^= static_cast<std::uint32_t>(size);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

// The size % 4 bytes at the end of a text as a little-endian number. There is no branch on how many there are, which would
// be mispredicted; of none, the number is 0, and scrambled it still is.
inline std::uint32_t last_bytes(const char* text, std::size_t size) {
    const unsigned rest = size & 3;
    if (size >= 4) return static_cast<std::uint32_t>(std::uint64_t{little_endian(text + size - 4)} >> (32 - 8 * rest));
    if (rest == 0) return 0;
    const auto byte = [&](unsigned i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    };
    return byte(0) | byte(rest / 2) | byte(rest - 1);
}

inline std::uint32_t murmur3(const char* text, std::size_t size, std::uint32_t seed) {
    std::uint32_t h = seed;
    const char* at = text;
    for (const char* const end = text + size / 4 * 4; at != end; at += 4) h = murmur3_round(h, at);
    return murmur3_finished(h ^ murmur3_scrambled(last_bytes(text, size)), size);
}

inline std::uint32_t murmur3(std::string_view text, std::uint32_t seed) { return murmur3(text.data(), text.size(), seed); }

// The same where 12 bytes after the text may be read. There are few branches, which would be mispredicted: of the last
// eight bytes all rounds are done, and those that are too many are masked out.
inline std::uint32_t murmur3_padded(const char* text, std::size_t size, std::uint32_t seed) {
    std::uint32_t h = seed;
    std::uint32_t n = static_cast<std::uint32_t>(size);
    for (; n > 8; n -= 8, text += 8) {
        h = murmur3_round(murmur3_round(h, text), text + 4);
    }
    h ^= (h ^ murmur3_round(h, text)) & (0u - ((3u - n) >> 31));      // all ones if n > 3
    h ^= (h ^ murmur3_round(h, text + 4)) & (0u - ((7u - n) >> 31));  // if n > 7
    const std::uint32_t last = little_endian(text + (n & ~3u)) & ((std::uint32_t{1} << (8 * (n & 3))) - 1);
    return murmur3_finished(h ^ murmur3_scrambled(last), size);
}

}  // namespace rarestream::features
