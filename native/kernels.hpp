// The border between the bindings and the kernels: plain types and a table of functions. The kernels are compiled twice,
// for any machine and with AVX2; each of the two finds its functions by a learner's name.
#pragma once

#include <cstdint>

namespace rarestream {

enum class Scale : int { none = 0, unit = 1, max = 2 };

struct Rows {  // borrowed from a Block: sorted, unique, finite
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* values;
    const std::int8_t* labels;  // null when only scoring
    const double* importances;  // null: 1 each
    std::int64_t size;
};

// A coordinate's two numbers stand side by side: one cache line access brings both. n is the root of v.
template <class Real>
struct Pair {
    Real z, n;
};

template <class Real>
struct Table {  // owned by NumPy
    Pair<Real>* pairs;
    std::int64_t size;
    float* largest;  // |x| of every coordinate, for Scale::max; else null
};

// Memory for one row, lent by the caller: as long as the block's longest row, rounded up to whole lanes.
template <class Real>
struct Scratch {
    Real *x, *z, *n, *w, *ready, *shrink;
};

template <class Real>
struct Kernels {
    std::int64_t (*learn)(const double* settings, const Table<Real>&, double* tally, const Rows&, Scale, double* scores,
                          const Scratch<Real>&);
    void (*score)(const double* settings, const Table<Real>&, const Rows&, Scale, double* scores, const Scratch<Real>&);
    void (*weights)(const double* settings, const Table<Real>&, Real* out);
};

struct LearnerKernels {
    std::int64_t settings = 0;  // how many; 0: no learner of that name
    Kernels<float> in_float32;
    Kernels<double> in_float64;
};

template <class Real>
using ScoreWeights = void (*)(const Real* weights, std::int64_t size, const float* largest, const Rows&, Scale,
                              double* scores, const Scratch<Real>&);

}  // namespace rarestream
