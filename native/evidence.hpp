// Evidence: how unequally the two classes have a feature, from the number of rows of each class that have it. Maths:
// src/rarestream/learners/dual_averaging.py.
#pragma once

#include <cstdint>

#include "rows.hpp"
#include "simd.hpp"
#include "stochastic_rounding.hpp"
#include "tally.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// |a - b| / sqrt(a b), where a and b are the shares of positives and of negatives that have the feature, each with one row
// more that has it.
template <class Real>
class Evidence {
    Real positives_ = 1, negatives_ = 1;  // of all rows, and one more

public:
    Evidence() = default;
    Evidence(double positives, double negatives)
        : positives_(static_cast<Real>(positives + 1)), negatives_(static_cast<Real>(negatives + 1)) {}

    // Divided, not multiplied by an inverse: where the shares are equal, so are a and b, and nothing is left of a - b.
    template <class V>
    RARESTREAM_ALWAYS_INLINE V of(const V& positives, const V& negatives) const {
        const V one = V::all(1), a = (positives + one) / V::all(positives_), b = (negatives + one) / V::all(negatives_);
        V apart = a - b;
        for (auto& part : apart.part) part = part < 0 ? -part : part;
        return apart / square_root(a * b);
    }
};

// Whether a row of importance h adds exactly 1 to the counts of its features; `rows`: the rows of its class before.
template <class Real>
RARESTREAM_ALWAYS_INLINE bool counts_are_whole(double h, double rows) {
    constexpr double ODD_LIMIT = 1 << 24;
    return h == 1 && (sizeof(Real) == 8 || rows < ODD_LIMIT);
}

// Counts with h added where the value x of an entry is not 0.
template <class V>
RARESTREAM_ALWAYS_INLINE V counted(const V& counts, const V& x, const V& h) {
    return map_registers(
        counts,
        map_registers(x, h, [](auto value, auto one) RARESTREAM_INLINE_LAMBDA { return value != 0 ? one : one - one; }),
        [](auto count, auto one) RARESTREAM_INLINE_LAMBDA { return count + one; });
}

// Counts a row of importance h in the counts {of positives, of negatives} of its features, which are `Stride` pairs apart.
// Entries of value 0 do not count. `rows`: the rows of its class before. A float32 holds no odd number above 2^24 and few
// fractions: such sums are rounded up or down at random, so that counts go on growing. The random bits depend on the number
// of rows alone.
template <int Stride, class Real>
RARESTREAM_ALWAYS_INLINE void count_features(Pair<Real>* counts, const Row<Real>& row, bool positive, double h, double rows,
                                             const RoundingBits& rounding) {
    using V = Vector<Real>;
    const bool exact = sizeof(Real) == 8 || counts_are_whole<Real>(h, rows);
    const auto one = V::all(static_cast<Real>(h));
    row.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
        V classes[2];
        gather<Stride>(counts, at, classes[0], classes[1]);
        V& mine = classes[positive ? 0 : 1];
        if (exact) {
            mine = counted(mine, x, one);
        } else {
            Real count[LANES], value[LANES];
            store(count, mine);
            store(value, x);
            for (int l = 0; l < LANES; ++l)
                if (value[l] != 0) count[l] = stochastic_round<Real>(double(count[l]) + h, rounding.bits(0));
            mine = load(count);
        }
        scatter<Stride>(counts, at, classes[0], classes[1], row.k - p);
    });
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
