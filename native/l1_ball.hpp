// Weights in the l1 ball |w|_1 <= r. Projecting them is shrinking them all by one threshold, and thresholds add up: a
// weight shrunk by t, then by t', is shrunk by t + t'. So a weight is kept as u = sign(w) (|w| + theta), theta the sum of
// all thresholds so far, and a projection moves theta, not the weights. What it has to find are the weights it brings to
// zero: the sizes |u| of the nonzero weights are in one array, in any order, and compared with theta eight at a time.
//
// The threshold is found as by Michelot (1986) and Condat (2016): the mean excess of the nonzero weights is a lower bound
// of it; weights below this bound become zero, which raises the bound, until none does.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
struct L1Ball {
    std::int32_t* at;                // coordinates whose weight is not zero
    Real* size;                      // their |u|
    std::int32_t* place;             // position of every coordinate among them plus 1, or 0
    double &theta, &sizes, &living;  // the threshold; the sum of all `size`, and their number: owned by NumPy

    // Sets |u| of a coordinate; 0 removes it.
    RARESTREAM_ALWAYS_INLINE void set(std::int32_t j, Real to) {
        std::int64_t p = place[j] - 1;
        if (p < 0) {
            if (to == 0) return;
            p = static_cast<std::int64_t>(living++);
            place[j] = static_cast<std::int32_t>(p + 1);
            at[p] = j;
            size[p] = 0;
        }
        sizes += double(to) - size[p];
        size[p] = to;
        if (to == 0) remove(p);
    }

    // Raises theta until the weights are in the ball. For each coordinate that becomes zero it calls prefetch(j), and a
    // little later on_zero(j), before theta changes.
    template <class Prefetch, class OnZero>
    void project(double r, Prefetch&& prefetch, OnZero&& on_zero) {
        double raised = theta;
        for (bool removed = true; removed && living > 0 && sizes - living * theta > r;) {
            raised = (sizes - r) / living;
            removed = remove_up_to(static_cast<Real>(raised), prefetch, on_zero);
        }
        if (living == 0) sizes = 0;
        if (raised > theta) theta = raised;
    }

private:
    void remove(std::int64_t p) {
        const std::int64_t last = static_cast<std::int64_t>(--living);
        place[at[p]] = 0;
        if (p == last) return;
        at[p] = at[last];
        size[p] = size[last];
        place[at[p]] = static_cast<std::int32_t>(p + 1);
    }

    template <class Prefetch, class OnZero>
    bool remove_up_to(Real limit, Prefetch&& prefetch, OnZero&& on_zero) {
        constexpr std::int64_t CHUNK = 8 * LANES;
        bool removed = false;
        for (std::int64_t p = 0; p < living;) {
            const std::int64_t left = static_cast<std::int64_t>(living) - p, run = left < CHUNK ? left : CHUNK;
            std::int32_t zeros = 0;
            for (std::int64_t l = 0; l < run; ++l) zeros += size[p + l] <= limit;
            if (zeros == 0) {
                p += run;
                continue;
            }
            removed = true;
            for (std::int64_t l = 0; l < run; ++l)
                if (size[p + l] <= limit) prefetch(at[p + l]);
            for (const std::int64_t end = p + run; p < end && p < living;) {
                if (size[p] > limit) {
                    ++p;
                    continue;
                }
                sizes -= size[p];
                on_zero(at[p]);
                remove(p);
            }
        }
        return removed;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
