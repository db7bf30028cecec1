// The slots of features, given out in the order in which features first come. Looks up several features at a time, as
// nearly all have a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "isa.hpp"

namespace rarestream {

class SlotTable {
    static constexpr std::size_t TOGETHER = 8;

public:
    // slots: of each feature below `limit`, which is at most 2^31 - 1; 0: none. names: the feature of each slot, with room
    // for slots below `room`. `used` slots are given out, from 1 on. `add`: whether a feature that has none gets one.
    SlotTable(std::int32_t* slots, std::size_t limit, std::int32_t* names, std::size_t room, std::int64_t used, bool add)
        : slots_(slots), names_(names), limit_(static_cast<std::uint32_t>(limit)), room_(room), used_(used), add_(add),
          far_(limit > IN_CACHE), avx2_(uses_avx2(best_isa())) {}

    std::int64_t used() const { return used_; }

    // The slot of a feature below the limit; -1 if there is no room for a new one.
    std::int32_t slot(std::uint32_t feature) {
        std::int32_t found = slots_[feature];
        if (found || !add_) return found;
        if (static_cast<std::size_t>(used_) + 1 >= room_) return -1;
        found = slots_[feature] = static_cast<std::int32_t>(++used_);
        names_[found] = static_cast<std::int32_t>(feature);
        return found;
    }

    // Writes the slots of features from the i-th to the n-th, up to one that is not below the limit, or for which there is
    // no room. Returns how far that was.
    std::size_t find(const std::int32_t* features, std::size_t i, std::size_t n, std::int32_t* out) {
        while (i < n) {
            i = look_up(features, i, n, out);
            for (const std::size_t stop = i + TOGETHER < n ? i + TOGETHER : n; i < stop; ++i) {
                const std::uint32_t feature = static_cast<std::uint32_t>(features[i]);  // a negative one is too large
                if (feature >= limit_ || (out[i] = slot(feature)) < 0) return i;
            }
        }
        return n;
    }

private:
    static constexpr std::size_t AHEAD = 32;           // entries: memory that will be needed is loaded in time
    static constexpr std::size_t IN_CACHE = 1u << 17;  // slots that a core's cache holds anyway

    // The same, but it stops before the first of some that are looked up together, and before the last few of n.
    std::size_t look_up(const std::int32_t* features, std::size_t i, std::size_t n, std::int32_t* out) {
#if defined(__x86_64__)
        if (avx2_) return look_up_avx2(features, i, n, out);
#endif
        for (; i + TOGETHER <= n; i += TOGETHER) {
            std::uint32_t index[TOGETHER];  // read once: they may change
            std::int32_t found[TOGETHER];
            std::memcpy(index, features + i, sizeof index);
            prefetch(features, i, n);
            int beyond = 0, missing = 0;
            for (std::size_t l = 0; l < TOGETHER; ++l) beyond |= index[l] >= limit_;
            if (beyond) return i;
            for (std::size_t l = 0; l < TOGETHER; ++l) found[l] = slots_[index[l]];
            for (std::size_t l = 0; l < TOGETHER; ++l) missing |= (found[l] == 0) << l;
            if (add_ && missing && !add_missing(index, found, static_cast<unsigned>(missing))) return i;
            std::memcpy(out + i, found, sizeof found);
        }
        return i;
    }

    // Gives slots to those of some features whose bits are set; false if there is no room for all of them.
    bool add_missing(const std::uint32_t* index, std::int32_t* found, unsigned missing) {
        for (; missing; missing &= missing - 1) {
            const int l = __builtin_ctz(missing);
            found[l] = slot(index[l]);
            if (found[l] < 0) return false;
        }
        return true;
    }

    void prefetch(const std::int32_t* features, std::size_t i, std::size_t n) const {
        if (far_ && i + AHEAD + TOGETHER <= n)
            for (std::size_t l = 0; l < TOGETHER; ++l)
                __builtin_prefetch(slots_ + static_cast<std::uint32_t>(features[i + AHEAD + l]));
    }

#if defined(__x86_64__)
    RARESTREAM_AVX2 std::size_t look_up_avx2(const std::int32_t* features, std::size_t i, std::size_t n,
                                             std::int32_t* out) {
        if (!limit_) return i;
        const __m256i last = _mm256_set1_epi32(static_cast<std::int32_t>(limit_ - 1)), none = _mm256_setzero_si256();
        for (; i + TOGETHER <= n; i += TOGETHER) {
            const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(features + i));
            prefetch(features, i, n);
            // Compared as numbers without a sign, so that a negative one is too large.
            const __m256i within = _mm256_cmpeq_epi32(_mm256_min_epu32(index, last), index);
            if (_mm256_movemask_epi8(within) != -1) return i;
            const __m256i found = _mm256_i32gather_epi32(slots_, index, 4);
            const int missing = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(found, none)));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), found);
            if (add_ && missing) {
                std::uint32_t own[TOGETHER];
                std::memcpy(own, &index, sizeof own);
                if (!add_missing(own, out + i, static_cast<unsigned>(missing))) return i;
            }
        }
        return i;
    }
#endif

    std::int32_t *const slots_, *const names_;
    const std::uint32_t limit_;
    const std::size_t room_;
    std::int64_t used_;
    const bool add_, far_, avx2_;
};

}  // namespace rarestream
