// Which weight reaches zero next, where all weights shrink by the same amount: a heap of coordinates by the level at which
// each becomes zero. The arrays belong to the state. A model file keeps the heap in its order, so that resuming gives the
// same bits.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "simd.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

template <class Real>
class ZeroingHeap {
    static constexpr std::int64_t ARITY = 4;  // children of an entry: a flat heap touches fewer cache lines
    std::int32_t* heap_;                      // coordinates; none becomes zero before its parent
    Real* level_;                             // their levels, a copy of those in the table, to stay in the cache
    std::int32_t* place_;                     // position of every coordinate in the heap plus 1; 0: its weight is zero
    double& size_;

public:
    static bool fits(const State<Real>& state) {
        bool wide = state.n_extra == 3;
        for (int i = 0; wide && i < 3; ++i) wide = state.extra[i].shape[0] >= state.first + state.size;
        return wide;
    }
    ZeroingHeap(const State<Real>& state, double& size) : heap_(nullptr), level_(nullptr), place_(nullptr), size_(size) {
        if (state.n_extra == 0) return;  // without l1 no weight is shrunk to zero
        heap_ = static_cast<std::int32_t*>(state.extra[0].data);
        level_ = static_cast<Real*>(state.extra[1].data);
        place_ = static_cast<std::int32_t*>(state.extra[2].data);
    }

    // Whether some weight becomes zero at or below this level, and the coordinate of the first that does.
    bool zero_at(double level) const { return size_ > 0 && level_[0] <= level; }
    std::int32_t first() const { return heap_[0]; }

    // Sets the level at which a coordinate becomes zero; it may be in the heap or not.
    void set(std::int32_t j, Real level) {
        std::int64_t i = place_[j] - 1;
        if (i < 0) {
            i = static_cast<std::int64_t>(size_);
            size_ += 1;
        }
        sift(i, j, level);
    }

    void remove(std::int32_t j) {
        const std::int64_t i = place_[j] - 1;
        if (i < 0) return;
        place_[j] = 0;
        size_ -= 1;
        const std::int64_t last = static_cast<std::int64_t>(size_);
        if (i < last) sift(i, heap_[last], level_[last]);
    }

    // Sets all levels to level(j), which must have the order of the old ones; removes those that are zero.
    template <class Level>
    void set_all(Level&& level) {
        for (std::int64_t i = 0; i < size_; ++i) level_[i] = level(heap_[i]);
        while (zero_at(0)) remove(first());
    }

private:
    // Places a coordinate at position i, then moves it up or down until the heap is in order.
    void sift(std::int64_t i, std::int32_t j, Real level) {
        const std::int64_t size = static_cast<std::int64_t>(size_);
        for (; i > 0; i = (i - 1) / ARITY) {
            const std::int64_t above = (i - 1) / ARITY;
            if (!(level < level_[above])) break;
            place_at(i, heap_[above], level_[above]);
        }
        for (;;) {
            const std::int64_t first = i * ARITY + 1, stop = first + ARITY < size ? first + ARITY : size;
            std::int64_t least = i;
            Real lowest = level;
            for (std::int64_t below = first; below < stop; ++below) {
                if (!(level_[below] < lowest)) continue;
                least = below;
                lowest = level_[below];
            }
            if (least == i) break;
            place_at(i, heap_[least], lowest);
            i = least;
        }
        place_at(i, j, level);
    }

    void place_at(std::int64_t i, std::int32_t j, Real level) {
        heap_[i] = j;
        level_[i] = level;
        place_[j] = static_cast<std::int32_t>(i + 1);
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
