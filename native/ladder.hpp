// Which of many numbers are among the largest few in size, kept up while they change, at O(1) a change.
//
// A ladder has 512 rungs from any number to its double, evenly spaced. It knows how many numbers stand on each rung, and so
// the lowest rung that at most `most` numbers reach: its level. Those that reach it live. A rung lives or dies as a whole.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

class Ladder {
public:
    static constexpr int FINE = 9;  // bits: so many rungs from a number to its double
    static constexpr std::int32_t RUNGS = 1 << (8 + FINE);  // up to the largest float32; rung 0 is for numbers next to nothing

    struct Counts {  // owned by NumPy
        std::int32_t level, living;
        std::int32_t on[RUNGS];
    };
    static constexpr std::int32_t NUMBERS = 2 + RUNGS;  // in Counts

    Ladder(void* counts, double most) : counts_(*static_cast<Counts*>(counts)), most_(most) {}

    // From the start, with these numbers; all others are zero.
    template <class Real>
    void stand(const Real* numbers, std::size_t size) const {
        std::memset(&counts_, 0, sizeof counts_);
        counts_.level = 1;
        for (std::size_t i = 0; i < size; ++i) moved(Real(0), numbers[i]);
        settle();
    }

    template <class Real>
    RARESTREAM_INLINE void moved(Real from, Real to) const {
        const std::int32_t before = rung(from), after = rung(to);
        --counts_.on[before];
        ++counts_.on[after];
        counts_.living += (after >= counts_.level) - (before >= counts_.level);
    }

    // To be called when numbers have moved.
    void settle() const {
        while (counts_.living > most_) counts_.living -= counts_.on[counts_.level++];
        while (counts_.level > 1 && counts_.living + counts_.on[counts_.level - 1] <= most_)
            counts_.living += counts_.on[--counts_.level];
    }

    // The smallest size of a number that lives.
    template <class Real>
    Real least() const {
        if (counts_.level == RUNGS) return static_cast<Real>(INFINITY);
        using L = Look<Real>;
        const typename L::Bits bits = (static_cast<typename L::Bits>(counts_.level + L::FIRST) << L::SHIFT) - L::OFFSET;
        Real size;
        std::memcpy(&size, &bits, sizeof size);
        return size;
    }

private:
    // A rung begins off the numbers of few digits, by the golden ratio: what is equal but for its last bit shares a rung.
    template <class Real>
    struct Look;

    template <class Real>
    static RARESTREAM_INLINE std::int32_t rung(Real number) {
        using L = Look<Real>;
        const Real size = std::fabs(number);
        typename L::Bits bits;
        std::memcpy(&bits, &size, sizeof bits);
        const std::int64_t found = static_cast<std::int64_t>((bits + L::OFFSET) >> L::SHIFT) - L::FIRST;
        return static_cast<std::int32_t>(found < 0 ? 0 : found < RUNGS ? found : RUNGS - 1);
    }

    Counts& counts_;
    const double most_;
};

template <>
struct Ladder::Look<float> {
    using Bits = std::uint32_t;
    static constexpr int SHIFT = 23 - FINE, FIRST = 0;
    static constexpr Bits OFFSET = 10126;  // of 2^14
};

template <>
struct Ladder::Look<double> {
    using Bits = std::uint64_t;
    static constexpr int SHIFT = 52 - FINE, FIRST = (1023 - 127) << FINE;  // the rungs of float32
    static constexpr Bits OFFSET = Bits{10126} << 29;
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
