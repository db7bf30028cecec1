// What methods keep of the products x x' of each class: their sum in full, or a sketch of it.
#pragma once

#include <cstdint>
#include <cstring>

#include "updater.hpp"
#include "low_rank_weights.hpp"
#include "stochastic_rounding.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// r = size times random signs, for the row counted last. With Z the sum of x r', E[Z Z'] is size^2 rank times the sum of
// x x'.
inline void draw_signs(std::uint64_t seed, const Tally& tally, double size, int rank, double* r) {
    const double t = tally.n_pos + tally.n_neg;
    std::uint64_t bits, word = 0;
    std::memcpy(&bits, &t, sizeof bits);
    bits = splitmix64(seed, bits);
    for (int b = 0; b < rank; ++b, word >>= 1) {
        if (b % 64 == 0) word = splitmix64(bits, static_cast<std::uint64_t>(b / 64 + 1));
        r[b] = word & 1 ? size : -size;
    }
}

// The sums of x x' over negatives and over positives, in full; in Python, learners/pairs.py.
template <class Real>
class SecondMoments {
    using V = Vector<Real>;
    Real* const pairs_;                   // (2, capacity, capacity)
    const std::int64_t capacity_, size_;  // size: coordinates of the state within the capacity
    const Workspace<Real> w_, y_;

    Real* of(bool positive, std::int64_t j) const { return pairs_ + ((positive ? capacity_ : 0) + j) * capacity_; }

public:
    static bool fits(const ExtraArray& array) {
        return array.shape[0] == 2 && array.shape[1] == array.shape[2] && array.shape[1] % LANES == 0;
    }

    SecondMoments(const ExtraArray& array, std::int64_t slots)
        : pairs_(static_cast<Real*>(array.data)), capacity_(array.shape[1]), size_(slots < capacity_ ? slots : capacity_),
          w_(capacity_), y_(capacity_) {}

    std::int64_t size() const { return size_; }

    // An upper bound on the norm of the matrix: the sum of x x' has no negative eigenvalue.
    double trace(bool positive) const {
        double total = 0;
        for (std::int64_t j = 0; j < size_; ++j) total += of(positive, j)[j];
        return total;
    }

    // Scale::max
    void rescale(std::int32_t j, Real factor) {
        for (int c = 0; c < 2; ++c)
            for (std::int64_t i = 0; i < size_; ++i) {
                of(c, j)[i] *= factor;
                of(c, i)[j] *= factor;
            }
    }

    // += h x x'
    void add(const ScaledRow<Real>& row, bool positive, double h, const RoundingBits& rounding) {
        for (std::int64_t p = 0; p < row.k; ++p) {
            Real* const to = of(positive, row.at[p]);
            const double x = h * row.x[p];
            for (std::int64_t q = 0; q < row.k; ++q) {
                Real& pair = to[row.at[q]];
                pair = stochastic_round<Real>(pair + x * row.x[q], rounding.bits(row.at[p]) + rounding.bits(row.at[q]));
            }
        }
    }

    // The sum of x x', times w; of the first size() coordinates.
    template <class Weight>
    const Real* times(bool positive, Weight&& w) const {
        for (std::int64_t j = 0; j < capacity_; ++j) w_[j] = j < size_ ? w(static_cast<std::int32_t>(j)) : Real(0);
        for (std::int64_t j = 0; j < size_; ++j) {
            const Real* const from = of(positive, j);
            V sums = V::all(0);
            if (from[j] != 0)  // else the class has no row with this feature
                for (std::int64_t i = 0; i < capacity_; i += LANES) sums = sums + load(from + i) * load(w_ + i);
            y_[j] = static_cast<Real>(sum(sums));
        }
        return y_;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
