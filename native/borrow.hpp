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

using MaybeLargest = std::optional<InOut<float>>;

// Room for the longest of the rows, 64 bytes aligned.
template <class Real>
class RowMemory {
    std::vector<Real> reals_;

public:
    Scratch<Real> scratch{};
    std::size_t longest = 0;  // non-zeros of a row

    explicit RowMemory(const Rows& rows) {
        for (std::int64_t i = 0; i < rows.size; ++i)
            longest = std::max(longest, static_cast<std::size_t>(rows.indptr[i + 1] - rows.indptr[i]));
        const std::size_t room = (longest / 16 + 1) * 16;
        reals_.resize(6 * room + 16);
        auto address = reinterpret_cast<std::uintptr_t>(reals_.data());
        Real* base = reinterpret_cast<Real*>((address + 63) / 64 * 64);
        scratch = {base, base + room, base + 2 * room, base + 3 * room, base + 4 * room,
                   base + 5 * room};
    }
};

inline Rows borrow(In<std::int64_t> indptr, In<std::int32_t> indices, In<float> values) {
    if (indptr.size() < 1 || indices.size() != values.size() ||
        indptr.data()[indptr.size() - 1] != static_cast<std::int64_t>(indices.size()))
        throw std::invalid_argument("rows: indptr, indices and values do not belong together");
    return {indptr.data(), indices.data(), values.data(), nullptr, nullptr,
            static_cast<std::int64_t>(indptr.size()) - 1};
}

// Values of 1e38 that are not scaled down can give scores beyond float32, and sums of them that are no number at all.
inline std::int64_t first_not_finite(const double* scores, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i)
        if (!std::isfinite(scores[i])) return i;
    return -1;
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
