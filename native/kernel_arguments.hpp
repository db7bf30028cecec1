// What the bindings of kernels share: the rows and the memory that a kernel borrows for one call, and which build of the
// kernels is used.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include <nanobind/stl/optional.h>

#include "arrays.hpp"
#include "kernels.hpp"
#include "platform.hpp"

namespace rarestream {

inline bool avx2_available() {
#ifdef RARESTREAM_HAS_AVX2
    return cpu_has_avx2();
#else
    return false;
#endif
}

extern bool use_avx2;  // defined in bind_learners.cpp

constexpr double LARGEST_REPEATS = 1e6;

using OptionalLargest = std::optional<InOut<float>>;

// Memory for the longest of some rows, aligned to 64 bytes.
template <class Real>
class RowScratchBuffer {
    std::vector<Real> reals_;

public:
    std::size_t longest;  // non-zeros of a row

    RowScratch<Real> scratch(const RowsView& rows) {
        std::int64_t maximum = 0;
        for (std::int64_t i = 0; i < rows.size; ++i) maximum = std::max(maximum, rows.indptr[i + 1] - rows.indptr[i]);
        longest = static_cast<std::size_t>(maximum);
        const std::size_t size = (longest / 16 + 1) * 16;
        reals_.resize(6 * size + 16);
        auto address = reinterpret_cast<std::uintptr_t>(reals_.data());
        Real* base = reinterpret_cast<Real*>((address + 63) / 64 * 64);
        return {base, base + size, base + 2 * size, base + 3 * size, base + 4 * size, base + 5 * size};
    }
};

// A Block of blocks.py, as Python passes it to a kernel. The caster below reads its fields.
struct BlockArgument {
    nb::handle block;  // valid for the call
    In<std::int64_t> indptr;
    In<std::int32_t> indices;
    In<float> values;
    std::int64_t width = 0;  // largest index + 1
    bool sealed = false;     // nobody can write to indptr and indices

    bool read_rows(nb::handle from) noexcept {
        block = from;
        const FieldNames& names = field_names();
        return read(names.indptr, indptr) && read(names.indices, indices) && read(names.values, values) &&
               read(names.width, width) && read(names.sealed, sealed);
    }

    // Only learning needs these.
    In<std::int8_t> labels() const {
        In<std::int8_t> found;
        if (!read(field_names().labels, found)) throw std::invalid_argument("learn: labels must be int8");
        return found;
    }
    std::optional<In<double>> importances() const {
        std::optional<In<double>> found;
        if (!read(field_names().importances, found))
            throw std::invalid_argument("learn: importances must be None or float64");
        return found;
    }

private:
    struct FieldNames {
        PyObject* const indptr = PyUnicode_InternFromString("indptr");
        PyObject* const indices = PyUnicode_InternFromString("indices");
        PyObject* const values = PyUnicode_InternFromString("values");
        PyObject* const width = PyUnicode_InternFromString("width");
        PyObject* const sealed = PyUnicode_InternFromString("sealed");
        PyObject* const labels = PyUnicode_InternFromString("labels");
        PyObject* const importances = PyUnicode_InternFromString("importances");
    };
    // Never destroyed: the interpreter may end first.
    static const FieldNames& field_names() {
        static const FieldNames* const names = new FieldNames;
        return *names;
    }

    // False where the block has no such field, or one of another type: nothing is converted.
    template <class T>
    bool read(PyObject* name, T& out) const noexcept {
        const nb::object field = nb::steal(PyObject_GetAttr(block.ptr(), name));
        if (field.is_valid()) return nb::try_cast(field, out, false);
        PyErr_Clear();
        return false;
    }
};

// The rows of a Block, borrowed by a kernel for one call. Indices that are not sealed may be written to by others at any
// time: they are copied and checked, so that no index is outside of the state. Values may change: a row with a NaN in it is
// not learned.
class BorrowedRows {
    const std::int64_t nonzeros_, slots_;
    const bool sealed_;
    std::vector<std::int64_t> indptr_;
    std::vector<std::int32_t> indices_;
    In<std::int8_t> labels_;
    std::optional<In<double>> importances_;

public:
    RowsView rows;

    BorrowedRows(const BlockArgument& block, std::size_t slots)
        : nonzeros_(static_cast<std::int64_t>(block.indices.size())), slots_(static_cast<std::int64_t>(slots)),
          sealed_(block.sealed), rows{block.indptr.data(),
                                      block.indices.data(),
                                      block.values.data(),
                                      nullptr,
                                      nullptr,
                                      static_cast<std::int64_t>(block.indptr.size()) - 1} {
        if (rows.size < 0 || block.indices.size() != block.values.size() ||
            (sealed_ && rows.indptr[rows.size] != nonzeros_))
            throw std::invalid_argument("rows: the sizes of indptr, indices and values do not match");
        if (block.width < 0 || block.width > slots_)
            throw std::invalid_argument("rows: an index is beyond the end of the state");
    }

    // For learning.
    void borrow_labels(const BlockArgument& block) {
        labels_ = block.labels();
        importances_ = block.importances();
        const std::size_t n = static_cast<std::size_t>(rows.size);
        if (labels_.size() != n || (importances_ && importances_->size() != n))
            throw std::invalid_argument("learn: labels and importances must have one entry per row");
        rows.labels = labels_.data();
        rows.importances = importances_ ? importances_->data() : nullptr;
    }

    // For learning as one of several groups.
    void repeat(double repeats) {
        if (!(repeats >= 1 && repeats <= LARGEST_REPEATS))
            throw std::invalid_argument("learn: rows are repeated 1 to 1e6 times");
        rows.repeats = repeats;
    }

    // For learning classes, which are passed beside the block.
    void borrow_classes(const BlockArgument& block, const In<std::int32_t>& classes) {
        importances_ = block.importances();
        const std::size_t n = static_cast<std::size_t>(rows.size);
        if (classes.size() != n || (importances_ && importances_->size() != n))
            throw std::invalid_argument("learn: classes and importances must have one entry per row");
        rows.classes = classes.data();
        rows.importances = importances_ ? importances_->data() : nullptr;
    }

    // To be called before a kernel reads the rows. Drops the first row that has an index outside of the state, and all
    // that follow.
    void copy_unless_sealed() {
        if (sealed_) return;
        indptr_.assign(rows.indptr, rows.indptr + rows.size + 1);
        indices_.assign(rows.indices, rows.indices + nonzeros_);
        rows.indptr = indptr_.data();
        rows.indices = indices_.data();
        const bool from_zero = indptr_[0] == 0;
        for (std::int64_t i = 0; i < rows.size; ++i)
            if (!from_zero || !inside_state(indptr_[i], indptr_[i + 1])) rows.size = i;
    }

private:
    bool inside_state(std::int64_t begin, std::int64_t end) const {
        bool inside = begin <= end && end <= nonzeros_;
        for (std::int64_t p = begin; inside && p < end; ++p) inside = 0 <= indices_[p] && indices_[p] < slots_;
        return inside;
    }
};

// The first row whose score is not finite, or that was not scored; -1 if there is none. Values of 1e38 that are not scaled
// down can give infinite scores, and sums of those are NaN.
inline std::int64_t first_without_score(const double* scores, std::int64_t scored, std::int64_t rows) {
    // In integers, so that the compiler vectorises it: where all bits of the exponent are set, adding one carries.
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

inline void check_scale(Scale scale, const OptionalLargest& largest, std::size_t slots) {
    if (scale == Scale::max && !(largest && largest->size() >= slots))
        throw std::invalid_argument("Scale.max needs the largest values of all coordinates");
}

}  // namespace rarestream

// One argument for all of a Block: a kernel call for a single row is short, and reading the fields here costs less than
// passing them one by one. Whatever has these fields is accepted; anything else is a TypeError.
template <>
struct nanobind::detail::type_caster<rarestream::BlockArgument> {
    NB_TYPE_CASTER(rarestream::BlockArgument, const_name("Block"))
    bool from_python(handle from, std::uint32_t, cleanup_list*) noexcept { return value.read_rows(from); }
};
