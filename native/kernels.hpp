// The types that the bindings and the kernels share, and the table of a learner's functions. The kernels are compiled
// twice, for any machine and with AVX2; each build looks up its functions by the name of a learner.
#pragma once

#include <atomic>
#include <cstdint>

namespace rarestream {

enum class Scale : int { none = 0, unit = 1, max = 2 };

// What copy_rows.hpp found while it copied rows.
struct CopyResult {
    bool valid;          // indices fit in int32 and are not negative, values are finite
    bool ascending;      // the indices of every row
    std::int64_t width;  // largest index + 1
};

// The evidence of entries (evidence.hpp), its root, and how many rows of the row's class had the feature before the row.
struct EvidenceArrays {
    float *evidence, *root, *before;

    EvidenceArrays from(std::int64_t entry) const { return {evidence + entry, root + entry, before + entry}; }
};

// Rows of a Block in CSR form, borrowed for one call: indices ascend within a row, values are finite.
struct RowsView {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* values;
    const std::int8_t* labels;  // null when only scoring
    const double* importances;  // null: 1 each
    std::int64_t size;
    const std::int32_t* classes = nullptr;  // in place of labels where lanes are classes: lanes/types.hpp
    double repeats = 1;      // what the steps of z and v are multiplied by, but no count: for groups of rows, merge.hpp
    std::int64_t first = 0;  // the row to begin with; only lanes look at it and what follows
    const EvidenceArrays* evidence = nullptr;          // of all entries, if rows were counted already
    const std::atomic<std::int64_t>* ready = nullptr;  // the number of entries that can be read by now; null: all
};

// The two numbers of a coordinate are adjacent, so that one cache line brings both. n is the square root of v.
template <class Real>
struct Pair {
    Real z, n;
};

// An array of the state that is neither per coordinate nor a single number.
struct ExtraArray {
    void* data;
    std::int64_t shape[3];
};

// The state of a model, borrowed from NumPy for one call. In Python: State in learners/state.py.
template <class Real>
struct State {
    Real* table;                             // a few numbers for each coordinate
    std::int64_t size, columns;              // coordinates, numbers of each
    std::int64_t row_stride, column_stride;  // of the table, in numbers
    std::int64_t first;                      // the coordinate the table starts with
    float* largest;                          // |x| of every coordinate, for Scale::max; else null
    double* tally;                           // a Tally, then the learner's own scalars
    std::int64_t n_scalars;                  // in `tally`
    const ExtraArray* extra;
    std::int64_t n_extra;

    Pair<Real>* pairs() const { return reinterpret_cast<Pair<Real>*>(table); }
};

// Memory for one row, owned by the caller: as long as the longest row of the block, rounded up to whole vectors.
template <class Real>
struct RowScratch {
    Real *x, *z, *n, *w;
    Real* scaled;   // values of a row that had to be scaled before they were read
    Real* rescale;  // Scale::max: factors for the coordinates' older numbers
};

template <class Real>
struct Kernels {
    bool (*fits)(const double* settings, const State<Real>&);  // whether the state is one of this learner's
    std::int64_t (*learn)(const double* settings, const State<Real>&, const RowsView&, Scale, double* scores,
                          const RowScratch<Real>&);
    void (*score)(const double* settings, const State<Real>&, const RowsView&, Scale, double* scores,
                  const RowScratch<Real>&);
    void (*weights)(const double* settings, const State<Real>&, Real* out);
};

struct LearnerKernels {
    std::int64_t settings = 0;  // number of settings; 0: no learner of that name
    Kernels<float> in_float32;
    Kernels<double> in_float64;
};

// Functions that score with weights in an array.
template <class Real>
struct Scorers {
    void (*score)(const Real* weights, std::int64_t size, const float* largest, const RowsView&, Scale, double* scores,
                  const RowScratch<Real>&);
    void (*path)(const Real* weights, const std::uint16_t* classes, std::int64_t size, std::int64_t sizes,
                 const float* largest, RowsView, Scale, double* scores, RowScratch<Real>);
};

}  // namespace rarestream
