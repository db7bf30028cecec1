#include "arrays.hpp"
#include "csr.hpp"

#include <stdexcept>

namespace rarestream {

// A contiguous array whose type is looked up here: finding the right one of several overloads costs as much as a row.
using Untyped = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_types(const Untyped& indices, const Untyped& values) {
    if (indices.dtype() != nb::dtype<std::int64_t>() && indices.dtype() != nb::dtype<std::int32_t>())
        throw std::invalid_argument("own_rows: indices are int32 or int64");
    if (values.dtype() != nb::dtype<double>() && values.dtype() != nb::dtype<float>())
        throw std::invalid_argument("own_rows: values are float32 or float64");
}

template <class Index>
Survey copy_rows_of(const std::int64_t* indptr, std::int64_t rows, const Untyped& indices, const Untyped& values,
                    std::int32_t* to_indices, float* to_values) {
    const std::int64_t nonzeros = static_cast<std::int64_t>(indices.size());
    const Index* const at = static_cast<const Index*>(indices.data());
    if (values.dtype() == nb::dtype<double>())
        return copy_rows(indptr, rows, at, static_cast<const double*>(values.data()), nonzeros, to_indices, to_values);
    return copy_rows(indptr, rows, at, static_cast<const float*>(values.data()), nonzeros, to_indices, to_values);
}

Survey copy_rows(const std::int64_t* indptr, std::int64_t rows, const Untyped& indices, const Untyped& values,
                 std::int32_t* to_indices, float* to_values) {
    if (indices.dtype() == nb::dtype<std::int64_t>())
        return copy_rows_of<std::int64_t>(indptr, rows, indices, values, to_indices, to_values);
    return copy_rows_of<std::int32_t>(indptr, rows, indices, values, to_indices, to_values);
}

// Sorts every row and sums duplicates, in place; indptr is rewritten; returns the number of entries left. A sum that is too
// large goes into `found`.
std::int64_t canonicalise(std::int64_t* indptr, std::int64_t rows, std::int32_t* indices, float* values, Survey& found) {
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
        if (!std::isfinite(values[p])) found.fault = Fault::sum;
    return kept;
}

// (fault, row, position, width, indptr, indices, values): CSR rows with int32 or int64 indices, float32 or float64 values,
// copied into arrays of the one type of each that nobody can write to; sorted within rows, duplicates summed.
// With `share`, rows that are in order already are only looked at, and None stands in place of the copies.
nb::tuple own_rows(In<std::int64_t> pointers, Untyped indices, Untyped values, bool share) {
    if (pointers.size() < 1 || indices.size() != values.size())
        throw std::invalid_argument("own_rows: indptr, indices and values do not belong together");
    check_types(indices, values);
    const std::int64_t rows = static_cast<std::int64_t>(pointers.size()) - 1;
    const std::int64_t nonzeros = static_cast<std::int64_t>(indices.size());
    PooledArray<std::int64_t> to_indptr;
    PooledArray<std::int32_t> to_indices;
    PooledArray<float> to_values;
    std::int64_t kept = nonzeros;
    Survey found;
    {
        nb::gil_scoped_release released;
        if (share) {
            found = check_pointers(pointers.data(), rows, nonzeros);
            if (found.fault == Fault::none) found = copy_rows(pointers.data(), rows, indices, values, nullptr, nullptr);
            share = found.fault != Fault::none || found.canonical;
        }
        if (!share) {
            to_indptr = pooled<std::int64_t>(pointers.size());
            to_indices = pooled<std::int32_t>(indices.size());
            to_values = pooled<float>(indices.size());
            found = copy_pointers(pointers.data(), rows, nonzeros, to_indptr.get());
            if (found.fault == Fault::none)
                found = copy_rows(to_indptr.get(), rows, indices, values, to_indices.get(), to_values.get());
        }
        if (found.fault == Fault::none && !found.canonical)
            kept = canonicalise(to_indptr.get(), rows, to_indices.get(), to_values.get(), found);
    }
    if (share || found.fault != Fault::none)
        return nb::make_tuple(static_cast<int>(found.fault), found.row, found.position, found.width, nb::none(), nb::none(),
                              nb::none());
    return nb::make_tuple(static_cast<int>(found.fault), found.row, found.position, found.width,
                          sealed(std::move(to_indptr), pointers.size()),
                          sealed(std::move(to_indices), static_cast<std::size_t>(kept)),
                          sealed(std::move(to_values), static_cast<std::size_t>(kept)));
}

// The same into arrays of the caller's, of the one type of each: making arrays here costs as much as learning a short row.
// (fault, row, position, width, entries left)
nb::tuple own_rows_in(In<std::int64_t> pointers, Untyped indices, Untyped values, InOut<std::int64_t> to_indptr,
                      InOut<std::int32_t> to_indices, InOut<float> to_values) {
    if (pointers.size() < 1 || indices.size() != values.size() || to_indptr.size() != pointers.size() ||
        to_indices.size() != indices.size() || to_values.size() != indices.size())
        throw std::invalid_argument("own_rows_in: the arrays do not belong together");
    check_types(indices, values);
    const std::int64_t rows = static_cast<std::int64_t>(pointers.size()) - 1;
    std::int64_t kept = static_cast<std::int64_t>(indices.size());
    Survey found = copy_pointers(pointers.data(), rows, kept, to_indptr.data());
    if (found.fault == Fault::none)
        found = copy_rows(to_indptr.data(), rows, indices, values, to_indices.data(), to_values.data());
    if (found.fault == Fault::none && !found.canonical)
        kept = canonicalise(to_indptr.data(), rows, to_indices.data(), to_values.data(), found);
    return nb::make_tuple(static_cast<int>(found.fault), found.row, found.position, found.width, kept);
}

void bind_blocks(nb::module_& m) {
    m.def("own_rows_in", &own_rows_in, exact(), exact(), exact(), exact(), exact(), exact());
    m.def("own_rows", &own_rows, exact("indptr"), exact("indices"), exact("values"), exact("share"));
}

}  // namespace rarestream
