// What the bindings of kernels share: rows and memory lent to a kernel for one call, and which build of it to take.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
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

using MaybeLargest = std::optional<InOut<float>>;

// Room for the longest of some rows, 64 bytes aligned.
template <class Real>
class RowMemory {
    std::vector<Real> reals_;

public:
    std::size_t longest;  // non-zeros of a row

    Scratch<Real> scratch(const Rows& rows) {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < rows.size; ++i) most = std::max(most, rows.indptr[i + 1] - rows.indptr[i]);
        longest = static_cast<std::size_t>(most);
        const std::size_t room = (longest / 16 + 1) * 16;
        reals_.resize(6 * room + 16);
        auto address = reinterpret_cast<std::uintptr_t>(reals_.data());
        Real* base = reinterpret_cast<Real*>((address + 63) / 64 * 64);
        return {base, base + room, base + 2 * room, base + 3 * room, base + 4 * room, base + 5 * room};
    }
};

// The rows of a Block, lent to a kernel for one call. To those that are not the Block's own somebody else may write at any time:
// where they lead is copied and looked at, so that a kernel is led nowhere but into the state. Values may change at will: a row
// with a NaN in it is not learned.
class LentRows {
    const std::int64_t nonzeros_, slots_;
    const bool own_;
    std::vector<std::int64_t> indptr_;
    std::vector<std::int32_t> indices_;

public:
    Rows rows;

    LentRows(In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values, std::int64_t width, bool own,
             std::size_t slots)
        : nonzeros_(static_cast<std::int64_t>(indices.size())), slots_(static_cast<std::int64_t>(slots)), own_(own),
          rows{indptr.data(), indices.data(), values.data(), nullptr, nullptr, static_cast<std::int64_t>(indptr.size()) - 1} {
        if (rows.size < 0 || indices.size() != values.size() || (own && rows.indptr[rows.size] != nonzeros_))
            throw std::invalid_argument("rows: indptr, indices and values do not belong together");
        if (width < 0 || width > slots_) throw std::invalid_argument("rows: wider than the state");
    }

    // To be called before a kernel sees the rows. Leaves out those from the first on that leads somewhere else.
    void secure() {
        if (own_) return;
        indptr_.assign(rows.indptr, rows.indptr + rows.size + 1);
        indices_.assign(rows.indices, rows.indices + nonzeros_);
        rows.indptr = indptr_.data();
        rows.indices = indices_.data();
        const bool from_zero = indptr_[0] == 0;
        for (std::int64_t i = 0; i < rows.size; ++i)
            if (!from_zero || !leads_inside(indptr_[i], indptr_[i + 1])) rows.size = i;
    }

private:
    bool leads_inside(std::int64_t begin, std::int64_t end) const {
        bool inside = begin <= end && end <= nonzeros_;
        for (std::int64_t p = begin; inside && p < end; ++p) inside = 0 <= indices_[p] && indices_[p] < slots_;
        return inside;
    }
};

// The first row that has no score, -1 if all have. Values of 1e38 that are not scaled down can give scores beyond float32, and
// sums of them that are no number at all.
inline std::int64_t first_without_score(const double* scores, std::int64_t scored, std::int64_t rows) {
    // In whole numbers, so that the compiler does several at a time: where all bits of the exponent are set, one more carries.
    constexpr std::uint64_t LOWEST = std::uint64_t{1} << 52, EXPONENT = 0x7FF * LOWEST;
    std::uint64_t carried = 0;
    for (std::int64_t i = 0; i < scored; ++i) {
        std::uint64_t bits;
        std::memcpy(&bits, scores + i, sizeof bits);
        carried |= (bits & EXPONENT) + LOWEST;
    }
    for (std::int64_t i = 0; carried >> 63 && i < scored; ++i)
        if (!std::isfinite(scores[i])) return i;
    return scored < rows ? scored : -1;
}

inline Scale scale_of(int code, const MaybeLargest& largest, std::size_t slots) {
    if (code < 0 || code > 2) throw std::invalid_argument("scale: 0, 1 or 2");
    if (code == 2 && !(largest && largest->size() >= slots))
        throw std::invalid_argument("scale 2 needs the largest values of all coordinates");
    return static_cast<Scale>(code);
}

}  // namespace rarestream
