// Random numbers as a function of a seed and a counter: the same on every machine, and wherever a stream is cut into
// blocks.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// The number after `count` steps of splitmix64 (Steele, Lea, Flood 2014) from `seed`.
RARESTREAM_ALWAYS_INLINE std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t count) {
    std::uint64_t z = seed + count * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
