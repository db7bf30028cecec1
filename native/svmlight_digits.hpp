// Eight decimal digits at once, in one 64-bit word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rarestream::svmlight {

inline constexpr std::uint64_t every_byte(std::uint8_t b) { return 0x0101010101010101ull * b; }

// Eight bytes as a number whose lowest byte is the first, on any machine.
inline std::uint64_t load_eight(const char* p) {
    std::uint64_t x;
    std::memcpy(&x, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

// The same with '0' to '9' as 0 to 9; every other byte comes out above 9.
inline std::uint64_t load_digits(const char* p) { return load_eight(p) ^ every_byte('0'); }

// The top bit of every byte above 9. Exact up to and including the first such byte.
inline std::uint64_t beyond_nine(std::uint64_t digits) {
    return ((digits + every_byte(0x7f - 9)) | digits) & every_byte(0x80);
}

// How many digits come first: 0 to 8.
inline unsigned leading_digits(std::uint64_t digits) {
    const std::uint64_t other = beyond_nine(digits);
    return other ? static_cast<unsigned>(__builtin_ctzll(other)) >> 3 : 8;
}

// The number of eight digits, the first in the lowest byte.
inline std::uint32_t eight_digits(std::uint64_t x) {
    x = x * 10 + (x >> 8);
    const std::uint64_t pairs = 0x000000ff000000ffull;
    return static_cast<std::uint32_t>(
        ((x & pairs) * (100 + (1000000ull << 32)) + ((x >> 16) & pairs) * (1 + (10000ull << 32))) >> 32);
}

// Only the first n digits (1 to 8): as they are read, and followed by zeros. With n = 0 the result means nothing.
inline std::uint64_t aligned_right(std::uint64_t digits, unsigned n) { return digits << ((64 - 8 * n) & 63); }
inline std::uint64_t aligned_left(std::uint64_t digits, unsigned n) { return digits & (~0ull >> ((64 - 8 * n) & 63)); }

}  // namespace rarestream::svmlight
