// Python bindings of blocks: rows from outside checked, sorted and copied.
#include "arrays.hpp"
#include "kernel_arguments.hpp"
#include "csr.hpp"

#include <stdexcept>

namespace rarestream {

// Defined in copy_rows.hpp, for the types that are accepted, in each build of the kernels.
namespace portable {
template <class Index, class Value>
CopyResult copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values);
}
#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
template <class Index, class Value>
CopyResult copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values);
}
#endif

namespace {

// A contiguous array of any type. Its type is examined here, because choosing between overloads would cost as much as
// learning a row.
using Untyped = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// CSR rows from outside: int32 or int64 pointers and indices, float32 or float64 values.
class InputRows {
    const Untyped pointers_, indices_, values_;

public:
    const std::int64_t rows, nonzeros;

    InputRows(Untyped pointers, Untyped indices, Untyped values)
        : pointers_(pointers), indices_(indices), values_(values), rows(static_cast<std::int64_t>(pointers.size()) - 1),
          nonzeros(static_cast<std::int64_t>(indices.size())) {
        if (pointers.size() < 1 || indices.size() != values.size())
            throw std::invalid_argument("rows: the sizes of indptr, indices and values do not match");
        for (const Untyped& array : {pointers, indices})
            if (array.dtype() != nb::dtype<std::int64_t>() && array.dtype() != nb::dtype<std::int32_t>())
                throw std::invalid_argument("rows: indptr and indices must be int32 or int64");
        if (values.dtype() != nb::dtype<double>() && values.dtype() != nb::dtype<float>())
            throw std::invalid_argument("rows: values must be float32 or float64");
    }

    // Copies and checks the rows; an array without a destination is checked where it is. An int32 indptr needs a
    // destination.
    CsrCheck copy(std::int64_t* to_indptr, std::int32_t* to_indices, float* to_values, CopyResult& found) const {
        const std::int64_t* indptr = to_indptr;
        if (pointers_.dtype() == nb::dtype<std::int32_t>()) {
            if (!to_indptr) throw std::invalid_argument("rows: indptr must be int64 where it is not copied");
            std::copy_n(static_cast<const std::int32_t*>(pointers_.data()), rows + 1, to_indptr);
        } else if (to_indptr) {
            std::copy_n(static_cast<const std::int64_t*>(pointers_.data()), rows + 1, to_indptr);
        } else {
            indptr = static_cast<const std::int64_t*>(pointers_.data());
        }
        const CsrCheck pointers = check_indptr(indptr, rows, nonzeros);
        if (pointers.fault != CsrFault::none) return pointers;
        if (indices_.dtype() == nb::dtype<std::int64_t>())
            return copied<std::int64_t>(indptr, to_indices, to_values, found);
        return copied<std::int32_t>(indptr, to_indices, to_values, found);
    }

private:
    template <class Index>
    CsrCheck copied(const std::int64_t* indptr, std::int32_t* to_indices, float* to_values, CopyResult& found) const {
        const Index* const at = static_cast<const Index*>(indices_.data());
        if (values_.dtype() == nb::dtype<double>())
            return copied(indptr, at, static_cast<const double*>(values_.data()), to_indices, to_values, found);
        return copied(indptr, at, static_cast<const float*>(values_.data()), to_indices, to_values, found);
    }

    template <class Index, class Value>
    CsrCheck copied(const std::int64_t* indptr, const Index* at, const Value* x, std::int32_t* to_indices, float* to_values,
                    CopyResult& found) const {
        auto* copy = portable::copy_rows<Index, Value>;
#ifdef RARESTREAM_HAS_AVX2
        if (use_avx2) copy = avx2::copy_rows<Index, Value>;
#endif
        found = copy(indptr, rows, at, x, nonzeros, to_indices, to_values);
        return found.valid ? CsrCheck{} : first_fault(indptr, rows, at, x, nonzeros);
    }
};

// Sorts every row and sums duplicates, in place; indptr is rewritten; returns the number of entries left. A sum that is too
// large goes into `found`.
std::int64_t canonicalise(std::int64_t* indptr, std::int64_t rows, std::int32_t* indices, float* values, CsrCheck& found) {
    std::vector<std::pair<std::int32_t, float>> scratch;
    std::int64_t kept = 0, begin = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t end = indptr[i + 1];
        const std::int64_t size = canonicalise_row(indices + begin, values + begin, end - begin, scratch);
        std::copy(indices + begin, indices + begin + size, indices + kept);
        std::copy(values + begin, values + begin + size, values + kept);
        kept += size;
        begin = end;
        indptr[i + 1] = kept;
    }
    for (std::int64_t p = 0; p < kept; ++p)
        if (!std::isfinite(values[p])) found.fault = CsrFault::sum;
    return kept;
}

enum class CopyMode : int { nothing = 0, indices = 1, all = 2 };

// (fault, row, position, width, indptr, indices, values): rows checked, sorted, duplicates summed, in arrays that nobody
// can write to. Of rows that are in order already only what `mode` says is copied; the others are None.
nb::tuple own_rows(Untyped pointers, Untyped indices, Untyped values, CopyMode mode) {
    const InputRows input(pointers, indices, values);
    PooledArray<std::int64_t> to_indptr;
    PooledArray<std::int32_t> to_indices;
    PooledArray<float> to_values;
    std::int64_t kept = input.nonzeros;
    CopyResult found{};
    CsrCheck check;
    {
        nb::gil_scoped_release released;
        for (CopyMode copy = mode;; copy = CopyMode::all) {
            if (copy != CopyMode::nothing && !to_indptr) {
                to_indptr = pooled<std::int64_t>(pointers.size());
                to_indices = pooled<std::int32_t>(indices.size());
            }
            if (copy == CopyMode::all) to_values = pooled<float>(indices.size());
            check = input.copy(to_indptr.get(), to_indices.get(), to_values.get(), found);
            if (copy == CopyMode::all || check.fault != CsrFault::none || found.ascending) break;
        }
        if (check.fault == CsrFault::none && !found.ascending)
            kept = canonicalise(to_indptr.get(), input.rows, to_indices.get(), to_values.get(), check);
    }
    const auto array = [&](auto&& data, std::size_t size) {
        return data && check.fault == CsrFault::none ? nb::cast(read_only(std::move(data), size)) : nb::object(nb::none());
    };
    const std::size_t size = static_cast<std::size_t>(kept);
    return nb::make_tuple(check.fault, check.row, check.position, found.width, array(to_indptr, pointers.size()),
                          array(to_indices, size), array(to_values, size));
}

// The same, written to arrays of the caller: making arrays here costs as much as learning a short row.
// (fault, row, position, width, entries left)
nb::tuple own_rows_in(Untyped pointers, Untyped indices, Untyped values, InOut<std::int64_t> to_indptr,
                      InOut<std::int32_t> to_indices, InOut<float> to_values) {
    const InputRows input(pointers, indices, values);
    if (to_indptr.size() != pointers.size() || to_indices.size() != indices.size() || to_values.size() != indices.size())
        throw std::invalid_argument("own_rows_in: the sizes of the arrays do not match");
    std::int64_t kept = input.nonzeros;
    CopyResult found{};
    CsrCheck check = input.copy(to_indptr.data(), to_indices.data(), to_values.data(), found);
    if (check.fault == CsrFault::none && !found.ascending)
        kept = canonicalise(to_indptr.data(), input.rows, to_indices.data(), to_values.data(), check);
    return nb::make_tuple(check.fault, check.row, check.position, found.width, kept);
}

}  // namespace

void bind_blocks(nb::module_& m) {
    nb::enum_<CopyMode>(m, "CopyMode")
        .value("nothing", CopyMode::nothing)
        .value("indices", CopyMode::indices)
        .value("all", CopyMode::all);
    nb::enum_<CsrFault>(m, "CsrFault", nb::is_arithmetic())  // arithmetic: `none` is false
        .value("none", CsrFault::none)
        .value("indptr", CsrFault::indptr)
        .value("index", CsrFault::index)
        .value("value", CsrFault::value)
        .value("changed", CsrFault::changed)
        .value("sum", CsrFault::sum);
    m.def("own_rows_in", &own_rows_in, no_convert(), no_convert(), no_convert(), no_convert(), no_convert(), no_convert());
    m.def("own_rows", &own_rows, no_convert("indptr"), no_convert("indices"), no_convert("values"), enum_arg("copy"));
}

}  // namespace rarestream
