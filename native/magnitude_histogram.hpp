// Which of many numbers are the largest few in magnitude, maintained while they change, at O(1) per change: a histogram of
// magnitudes with 512 bins from any number to its double. The threshold bin is the lowest one such that at most `budget`
// numbers are in it or above; these are kept. The numbers of one bin are kept or dropped together.
//
// In a model's state it is the array `ladder`.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

class MagnitudeHistogram {
public:
    static constexpr int BITS_PER_OCTAVE = 9;  // 2^9 bins from a number to its double
    // Up to the largest float32. Bin 0 is for zero and the smallest numbers.
    static constexpr std::int32_t BINS = 1 << (8 + BITS_PER_OCTAVE);

    struct Counts {  // owned by NumPy
        std::int32_t threshold_bin, kept;
        std::int32_t on[BINS];
    };
    static constexpr std::int32_t COUNTS = 2 + BINS;  // in Counts

    MagnitudeHistogram(void* counts, double budget) : counts_(*static_cast<Counts*>(counts)), budget_(budget) {}

    // Counts these numbers from scratch; all others are zero.
    template <class Real>
    void fill(const Real* numbers, std::size_t size) const {
        std::memset(&counts_, 0, sizeof counts_);
        counts_.threshold_bin = 1;
        for (std::size_t i = 0; i < size; ++i) move(Real(0), numbers[i]);
        update_threshold();
    }

    // A number changes from one value to another.
    template <class Real>
    RARESTREAM_ALWAYS_INLINE void move(Real from, Real to) const {
        const std::int32_t before = bin_of(from), after = bin_of(to);
        --counts_.on[before];
        ++counts_.on[after];
        counts_.kept += (after >= counts_.threshold_bin) - (before >= counts_.threshold_bin);
    }

    // To be called after numbers have changed.
    void update_threshold() const {
        while (counts_.kept > budget_) counts_.kept -= counts_.on[counts_.threshold_bin++];
        while (counts_.threshold_bin > 1 && counts_.kept + counts_.on[counts_.threshold_bin - 1] <= budget_)
            counts_.kept += counts_.on[--counts_.threshold_bin];
    }

    // The smallest magnitude that is kept.
    template <class Real>
    Real smallest_kept() const {
        if (counts_.threshold_bin == BINS) return static_cast<Real>(INFINITY);
        using L = Layout<Real>;
        const typename L::Bits bits =
            (static_cast<typename L::Bits>(counts_.threshold_bin + L::FIRST) << L::SHIFT) - L::OFFSET;
        Real size;
        std::memcpy(&size, &bits, sizeof size);
        return size;
    }

private:
    // Bins are offset by the golden ratio, so that round numbers are not at their edges: numbers that differ in the last
    // bit only then share a bin.
    template <class Real>
    struct Layout;

    template <class Real>
    static RARESTREAM_ALWAYS_INLINE std::int32_t bin_of(Real number) {
        using L = Layout<Real>;
        const Real size = std::fabs(number);
        typename L::Bits bits;
        std::memcpy(&bits, &size, sizeof bits);
        const std::int64_t found = static_cast<std::int64_t>((bits + L::OFFSET) >> L::SHIFT) - L::FIRST;
        return static_cast<std::int32_t>(found < 0 ? 0 : found < BINS ? found : BINS - 1);
    }

    Counts& counts_;
    const double budget_;
};

template <>
struct MagnitudeHistogram::Layout<float> {
    using Bits = std::uint32_t;
    static constexpr int SHIFT = 23 - BITS_PER_OCTAVE, FIRST = 0;
    static constexpr Bits OFFSET = 10126;  // of 2^14
};

template <>
struct MagnitudeHistogram::Layout<double> {
    using Bits = std::uint64_t;
    static constexpr int SHIFT = 52 - BITS_PER_OCTAVE, FIRST = (1023 - 127) << BITS_PER_OCTAVE;  // the bins of float32
    static constexpr Bits OFFSET = Bits{10126} << 29;
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
