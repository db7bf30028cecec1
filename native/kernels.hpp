// The border between the bindings and the kernels: plain types and a table of functions. The kernels are compiled twice,
// for any machine and with AVX2; each of the two finds its functions by a learner's name.
#pragma once

#include <cstdint>

namespace rarestream {

enum class Scale : int { none = 0, unit = 1, max = 2 };

// What was found while copying rows: copy_rows.hpp.
struct CopiedRows {
    bool sound;          // indices fit in int32 and are not negative, values are finite
    bool ascending;      // indices, in every row
    std::int64_t width;  // largest index + 1
};

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

// What NumPy lends of a model's state: learners/base.py says which part is which.
struct Array {  // neither per coordinate nor a single number
    void* data;
    std::int64_t shape[3];
};

template <class Real>
struct State {
    Real* table;                // a few numbers for each coordinate
    std::int64_t size, columns;  // coordinates, numbers of each
    std::int64_t step, apart;   // from a coordinate to the next, from a column to the next
    std::int64_t first;         // which coordinate the table starts with
    float* largest;             // |x| of every coordinate, for Scale::max; else null
    double* tally;              // a Tally, then the learner's own numbers
    std::int64_t numbers;       // how many in all
    const Array* more;
    std::int64_t arrays;        // how many in `more`

    Pair<Real>* pairs() const { return reinterpret_cast<Pair<Real>*>(table); }
};

// Memory for one row, lent by the caller: as long as the block's longest row, rounded up to whole lanes.
template <class Real>
struct Scratch {
    Real *x, *z, *n, *w, *ready, *shrink;
};

template <class Real>
struct Kernels {
    bool (*fits)(const double* settings, const State<Real>&);  // whether the state is one of this learner's
    std::int64_t (*learn)(const double* settings, const State<Real>&, const Rows&, Scale, double* scores,
                          const Scratch<Real>&);
    void (*score)(const double* settings, const State<Real>&, const Rows&, Scale, double* scores, const Scratch<Real>&);
    void (*weights)(const double* settings, const State<Real>&, Real* out);
};

struct LearnerKernels {
    std::int64_t settings = 0;  // how many; 0: no learner of that name
    Kernels<float> in_float32;
    Kernels<double> in_float64;
};

// With weights that stand in a plain array, whatever learner they are from.
template <class Real>
struct Scorers {
    void (*score)(const Real* weights, std::int64_t size, const float* largest, const Rows&, Scale, double* scores,
                  const Scratch<Real>&);
    void (*path)(const Real* weights, const std::uint16_t* classes, std::int64_t size, std::int64_t sizes,
                 const float* largest, Rows, Scale, double* scores, Scratch<Real>);
};

}  // namespace rarestream
