// Which coordinate's weight reaches zero next, where all weights shrink alike: a heap of coordinates by the level at which
// each dies. The arrays are the state's; a file keeps the heap in its order, so that going on gives the same bits.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "lanes.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
class Deaths {
    static constexpr std::int64_t CHILDREN = 4;  // of an entry: a flat heap looks at fewer places
    std::int32_t* heap_;   // coordinates; none dies before the one above it
    Real* level_;          // their levels, once more beside them: the table is far
    std::int32_t* place_;  // of every coordinate, where in the heap it stands, counted from 1; 0: it is not living
    double& size_;

public:
    static bool fits(const State<Real>& state) {
        bool wide = state.arrays == 3;
        for (int i = 0; wide && i < 3; ++i) wide = state.more[i].shape[0] >= state.first + state.size;
        return wide;
    }
    Deaths(const State<Real>& state, double& size)
        : heap_(nullptr), level_(nullptr), place_(nullptr), size_(size) {
        if (state.arrays == 0) return;  // nothing ever dies
        heap_ = static_cast<std::int32_t*>(state.more[0].data);
        level_ = static_cast<Real*>(state.more[1].data);
        place_ = static_cast<std::int32_t*>(state.more[2].data);
    }

    // Whether the next to die does so at or below this level.
    bool due(double level) const { return size_ > 0 && level_[0] <= level; }
    std::int32_t next() const { return heap_[0]; }

    // The coordinate dies at this level, whether it was living or not.
    void put(std::int32_t j, Real level) {
        std::int64_t i = place_[j] - 1;
        if (i < 0) {
            i = static_cast<std::int64_t>(size_);
            size_ += 1;
        }
        settle(i, j, level);
    }

    void drop(std::int32_t j) {
        const std::int64_t i = place_[j] - 1;
        if (i < 0) return;
        place_[j] = 0;
        size_ -= 1;
        const std::int64_t last = static_cast<std::int64_t>(size_);
        if (i < last) settle(i, heap_[last], level_[last]);
    }

    // New levels for all, level(j), in the order of the old ones.
    template <class Level>
    void renew(Level&& level) {
        for (std::int64_t i = 0; i < size_; ++i) level_[i] = level(heap_[i]);
        while (due(0)) drop(next());
    }

private:
    // Fills the gap at i with a coordinate, or with one above or below it that belongs there, and so on.
    void settle(std::int64_t i, std::int32_t j, Real level) {
        const std::int64_t size = static_cast<std::int64_t>(size_);
        for (; i > 0; i = (i - 1) / CHILDREN) {
            const std::int64_t above = (i - 1) / CHILDREN;
            if (!(level < level_[above])) break;
            enter(i, heap_[above], level_[above]);
        }
        for (;;) {
            const std::int64_t first = i * CHILDREN + 1, stop = first + CHILDREN < size ? first + CHILDREN : size;
            std::int64_t least = i;
            Real lowest = level;
            for (std::int64_t below = first; below < stop; ++below) {
                if (!(level_[below] < lowest)) continue;
                least = below;
                lowest = level_[below];
            }
            if (least == i) break;
            enter(i, heap_[least], lowest);
            i = least;
        }
        enter(i, j, level);
    }

    void enter(std::int64_t i, std::int32_t j, Real level) {
        heap_[i] = j;
        level_[i] = level;
        place_[j] = static_cast<std::int32_t>(i + 1);
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
