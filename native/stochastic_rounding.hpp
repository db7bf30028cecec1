// Stochastic rounding, for sums of very many rows in float32. With rounding to nearest, a sum of a million equal
// numbers is off by percents, as every addition is rounded in the same direction, and in the end it stops growing. Rounded
// up or down at random, in proportion to the remainder, its relative error is 1e-4 after ten million rows.
#pragma once

#include <cstdint>
#include <cstring>

#include "splitmix64.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Random bits for every coordinate of one row. The seed is the number of rows so far, so no two rows share it.
class RoundingBits {
    std::uint64_t seed_;

public:
    explicit RoundingBits(const Tally& tally) : RoundingBits(tally.n_pos + tally.n_neg) {}
    explicit RoundingBits(double rows) { std::memcpy(&seed_, &rows, sizeof seed_); }
    std::uint64_t bits(std::int32_t j) const { return splitmix64(seed_, static_cast<std::uint64_t>(j)); }
};

template <class Real>
RARESTREAM_ALWAYS_INLINE Real stochastic_round(double sum, std::uint64_t random) {
    if constexpr (sizeof(Real) == 4) {
        constexpr std::uint64_t DROPPED = (1ull << 29) - 1;  // the bits a float32 does not have
        std::uint64_t bits;
        std::memcpy(&bits, &sum, sizeof bits);
        bits = (bits + (random & DROPPED)) & ~DROPPED;
        std::memcpy(&sum, &bits, sizeof bits);
    }
    return static_cast<Real>(sum);
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
