// Sums of very many rows in float32. Rounded to the nearest, the sum of a million numbers of one size is off by percents,
// as every addition errs to the same side, and in the end it stands still. Rounded up or down by chance, in proportion to
// what is left over, it errs by a part in ten thousand after ten million rows.
#pragma once

#include <cstdint>
#include <cstring>

#include "chance.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Coins for the coordinates of one row. No two rows see the same counts.
class Chance {
    std::uint64_t seed_;

public:
    explicit Chance(const Tally& tally) {
        const double t = tally.n_pos + tally.n_neg;
        std::memcpy(&seed_, &t, sizeof seed_);
    }
    std::uint64_t of(std::int32_t j) const { return splitmix64(seed_, static_cast<std::uint64_t>(j)); }
};

template <class Real>
RARESTREAM_INLINE Real rounded(double sum, std::uint64_t coin) {
    if constexpr (sizeof(Real) == 4) {
        constexpr std::uint64_t BEYOND = (1ull << 29) - 1;  // the bits a float32 does not have
        std::uint64_t bits;
        std::memcpy(&bits, &sum, sizeof bits);
        bits = (bits + (coin & BEYOND)) & ~BEYOND;
        std::memcpy(&sum, &bits, sizeof bits);
    }
    return static_cast<Real>(sum);
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
