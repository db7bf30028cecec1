// Weights in the l1 ball |w|_1 <= r. Projecting them is shrinking them all by one threshold, and thresholds add up: a
// weight shrunk by t, then by t', is shrunk by t + t'. So a weight is kept as u = sign(w) (|w| + theta), theta the sum of
// all thresholds so far, and a projection moves theta, not the weights. What it has to find are the weights it brings to
// zero: the sizes |u| of those that live stand side by side, in no order, to be compared with theta eight at a time.
//
// The threshold is that of Michelot (1986) as Condat (2016) runs it: of all that live, the mean excess is a lower bound of
// it; those below it die, which raises the bound, until none does.
#pragma once

#include <cstdint>

#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
struct L1Ball {
    std::int32_t* at;     // the coordinates that live
    Real* size;           // their |u|
    std::int32_t* place;  // of every coordinate: 1 + where it stands among them, or 0
    double &theta, &sizes, &living;  // the threshold; the sum of all `size`, and their number: owned by NumPy

    // |u| of a coordinate becomes `to`, 0 being the end of it.
    RARESTREAM_INLINE void put(std::int32_t j, Real to) {
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

    // Raises theta until the weights are in the ball. For each coordinate it brings to zero it calls look(j), and a little
    // later die(j), before theta moves.
    template <class Look, class Die>
    void project(double r, Look&& look, Die&& die) {
        double to = theta;
        for (bool died = true; died && living > 0 && sizes - living * theta > r;) {
            to = (sizes - r) / living;
            died = bury(static_cast<Real>(to), look, die);
        }
        if (living == 0) sizes = 0;
        if (to > theta) theta = to;
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

    template <class Look, class Die>
    bool bury(Real least, Look&& look, Die&& die) {
        constexpr std::int64_t RUN = 8 * LANES;
        bool died = false;
        for (std::int64_t p = 0; p < living;) {
            const std::int64_t left = static_cast<std::int64_t>(living) - p, run = left < RUN ? left : RUN;
            std::int32_t dead = 0;
            for (std::int64_t l = 0; l < run; ++l) dead += size[p + l] <= least;
            if (dead == 0) {
                p += run;
                continue;
            }
            died = true;
            for (std::int64_t l = 0; l < run; ++l)
                if (size[p + l] <= least) look(at[p + l]);
            for (const std::int64_t end = p + run; p < end && p < living;) {
                if (size[p] > least) {
                    ++p;
                    continue;
                }
                sizes -= size[p];
                die(at[p]);
                remove(p);
            }
        }
        return died;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
