// What the bindings of kernels share: rows and memory lent to a kernel for one call, and which build of it to take.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "kernels.hpp"

namespace rarestream {

inline bool avx2_available() {
#ifdef RARESTREAM_HAS_AVX2
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

extern bool use_avx2;

// Copies indices; whether all of them lie between 0 and the last that may be.
inline namespace portable {
bool copy_indices(const std::int32_t* from, std::int64_t count, std::int32_t last, std::int32_t* to);
}
#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
bool copy_indices(const std::int32_t* from, std::int64_t count, std::int32_t last, std::int32_t* to);
}
#endif

inline bool copied(const std::int32_t* from, std::int64_t count, std::int32_t last, std::int32_t* to) {
#ifdef RARESTREAM_HAS_AVX2
    if (use_avx2) return avx2::copy_indices(from, count, last, to);
#endif
    return portable::copy_indices(from, count, last, to);
}

using MaybeLargest = std::optional<InOut<float>>;

// Room for the longest of some rows, 64 bytes aligned.
template <class Real>
class RowMemory {
    std::vector<Real> reals_;

public:
    std::size_t longest = 0;  // non-zeros of a row, so far

    Scratch<Real> scratch(const Rows& rows) {
        for (std::int64_t i = 0; i < rows.size; ++i)
            longest = std::max(longest, static_cast<std::size_t>(rows.indptr[i + 1] - rows.indptr[i]));
        const std::size_t room = (longest / 16 + 1) * 16;
        if (reals_.size() < 6 * room + 16) reals_.resize(6 * room + 16);
        auto address = reinterpret_cast<std::uintptr_t>(reals_.data());
        Real* base = reinterpret_cast<Real*>((address + 63) / 64 * 64);
        return {base, base + room, base + 2 * room, base + 3 * room, base + 4 * room, base + 5 * room};
    }
};

// Some rows of a Block whose arrays somebody else may write to at any time: where they lead is copied and looked at, so that a
// kernel is led nowhere but into the state. Values may change at will: a row with a NaN in it is not learned.
class CopiedRows {
    static constexpr std::int64_t NONZEROS = 1 << 12, ROWS = 1 << 12;  // at a time: they stay in the nearest cache
    static constexpr std::int64_t AHEAD = 128;                          // as far as kernels look ahead, and a little more
    const Rows& all_;
    const std::int64_t nonzeros_;
    const std::uint32_t slots_;
    std::vector<std::int64_t> indptr_;
    std::vector<std::int32_t> indices_;

public:
    bool broken = false;  // the row after those copied last breaks a rule

    CopiedRows(const Rows& all, std::int64_t nonzeros, std::size_t slots)
        : all_(all), nonzeros_(nonzeros), slots_(static_cast<std::uint32_t>(std::min<std::size_t>(slots, INT32_MAX))) {}

    // Rows from number `first` on, as many as fit, and at least one if that is sound.
    Rows from(std::int64_t first) {
        const volatile std::int64_t* const starts = all_.indptr;  // each is read once
        const std::int64_t begin = starts[first];
        indptr_.assign(1, 0);
        broken = begin < 0 || begin > nonzeros_;
        for (std::int64_t i = first; !broken && i < all_.size && i < first + ROWS; ++i) {
            const std::int64_t end = starts[i + 1];
            if (end < begin + indptr_.back() || end > nonzeros_)
                broken = true;
            else if (end - begin > NONZEROS && i > first)
                break;
            else
                indptr_.push_back(end - begin);
        }
        if (broken && indptr_.size() == 1) return {indptr_.data(), nullptr, nullptr, nullptr, nullptr, 0, 0};
        const std::int64_t count = indptr_.back(), ahead = std::min(AHEAD, nonzeros_ - begin - count);
        if (indices_.size() < static_cast<std::size_t>(count + ahead)) indices_.resize(static_cast<std::size_t>(count + ahead));
        std::int32_t* const to = indices_.data();
        const std::int32_t last = static_cast<std::int32_t>(slots_) - 1;
        std::copy_n(all_.indices + begin + count, ahead, to + count);
        if (!copied(all_.indices + begin, count, last, to)) {
            const auto wrong = std::find_if(to, to + count, [=](std::int32_t j) { return j < 0 || j > last; });
            while (indptr_.size() > 1 && indptr_.back() > wrong - to) indptr_.pop_back();
            broken = true;
        }
        return {indptr_.data(),
                indices_.data(),
                all_.values + begin,
                all_.labels ? all_.labels + first : nullptr,
                all_.importances ? all_.importances + first : nullptr,
                static_cast<std::int64_t>(indptr_.size()) - 1,
                broken ? 0 : ahead};
    }
};

// Has `act(rows, number of the first)` deal with the rows, which returns how many it did; the number of all that were dealt with.
template <class Act>
std::int64_t in_safety(const Rows& rows, std::int64_t nonzeros, std::size_t slots, bool own, Act&& act) {
    if (own) return act(rows, std::int64_t{0});
    CopiedRows copies(rows, nonzeros, slots);
    std::int64_t done = 0;
    while (done < rows.size) {
        const Rows some = copies.from(done);
        const std::int64_t count = act(some, done);
        done += count;
        if (count < some.size || copies.broken) break;
    }
    return done;
}

inline Rows borrow(In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values, bool own) {
    if (indptr.size() < 1 || indices.size() != values.size() ||
        (own && indptr.data()[indptr.size() - 1] != static_cast<std::int64_t>(indices.size())))
        throw std::invalid_argument("rows: indptr, indices and values do not belong together");
    return {indptr.data(), indices.data(), values.data(), nullptr, nullptr,
            static_cast<std::int64_t>(indptr.size()) - 1, 0};
}

// The first row that has no score, -1 if all have. Values of 1e38 that are not scaled down can give scores beyond float32, and
// sums of them that are no number at all.
inline std::int64_t first_without_score(const double* scores, std::int64_t scored, std::int64_t rows) {
    for (std::int64_t i = 0; i < scored; ++i)
        if (!std::isfinite(scores[i])) return i;
    return scored < rows ? scored : -1;
}

inline Scale scale_of(int code, const MaybeLargest& largest, std::size_t slots) {
    if (code < 0 || code > 2) throw std::invalid_argument("scale: 0, 1 or 2");
    if (code == 2 && !(largest && largest->size() >= slots))
        throw std::invalid_argument("scale 2 needs the largest values of all coordinates");
    return static_cast<Scale>(code);
}

inline void check_width(std::int64_t width, std::size_t slots) {
    if (width < 0 || static_cast<std::size_t>(width) > slots)
        throw std::invalid_argument("rows: wider than the state");
}

}  // namespace rarestream
