#include "arrays.hpp"
#include "csr.hpp"

#include <stdexcept>

namespace rarestream {

// A contiguous array whose type is looked up here: finding the right one of several overloads costs as much as a row.
using Untyped = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Index>
Survey copy_rows(const std::int64_t* indptr, std::int64_t rows, const Untyped& indices, const Untyped& values,
                 std::int32_t* to_indices, float* to_values) {
    const std::int64_t nonzeros = static_cast<std::int64_t>(indices.size());
    const Index* const at = static_cast<const Index*>(indices.data());
    if (values.dtype() == nb::dtype<double>())
        return copy_rows(indptr, rows, at, static_cast<const double*>(values.data()), nonzeros, to_indices, to_values);
    return copy_rows(indptr, rows, at, static_cast<const float*>(values.data()), nonzeros, to_indices, to_values);
}

// Sorts every row and sums duplicates, in place; indptr is rewritten; returns the number of entries left.
std::int64_t canonicalise(std::int64_t* indptr, std::int64_t rows, std::int32_t* indices, float* values) {
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
    return kept;
}

// (fault, row, position, width, indptr, indices, values): CSR rows with int32 or int64 pointers and indices, float32 or float64
// values, copied into arrays of the one type of each that nobody can write to; sorted within rows, duplicates summed.
// With `share`, rows that are in order already are only looked at, and None stands in place of the copies.
nb::tuple own_rows(Untyped pointers, Untyped indices, Untyped values, bool share) {
    const bool wide = pointers.dtype() == nb::dtype<std::int64_t>();
    if (pointers.size() < 1 || indices.size() != values.size())
        throw std::invalid_argument("own_rows: indptr, indices and values do not belong together");
    if (!wide && pointers.dtype() != nb::dtype<std::int32_t>())
        throw std::invalid_argument("own_rows: row pointers are int32 or int64");
    const bool far = indices.dtype() == nb::dtype<std::int64_t>();
    if (!far && indices.dtype() != nb::dtype<std::int32_t>())
        throw std::invalid_argument("own_rows: indices are int32 or int64");
    if (values.dtype() != nb::dtype<double>() && values.dtype() != nb::dtype<float>())
        throw std::invalid_argument("own_rows: values are float32 or float64");
    const std::int64_t rows = static_cast<std::int64_t>(pointers.size()) - 1;
    const std::int64_t nonzeros = static_cast<std::int64_t>(indices.size());
    auto to_indptr = pooled<std::int64_t>(pointers.size());
    PooledArray<std::int32_t> to_indices;
    PooledArray<float> to_values;
    std::int64_t kept = nonzeros;
    Survey found;
    {
        nb::gil_scoped_release released;
        found = wide ? copy_pointers(static_cast<const std::int64_t*>(pointers.data()), rows, nonzeros, to_indptr.get())
                     : copy_pointers(static_cast<const std::int32_t*>(pointers.data()), rows, nonzeros, to_indptr.get());
        const auto copy = [&] {
            return far ? copy_rows<std::int64_t>(to_indptr.get(), rows, indices, values, to_indices.get(), to_values.get())
                       : copy_rows<std::int32_t>(to_indptr.get(), rows, indices, values, to_indices.get(), to_values.get());
        };
        if (found.fault == Fault::none && share) found = copy();
        share = share && (found.fault != Fault::none || found.canonical);
        if (found.fault == Fault::none && !share) {
            to_indices = pooled<std::int32_t>(indices.size());
            to_values = pooled<float>(indices.size());
            found = copy();
        }
        if (found.fault == Fault::none && !found.canonical) {
            kept = canonicalise(to_indptr.get(), rows, to_indices.get(), to_values.get());
            for (std::int64_t p = 0; p < kept; ++p)
                if (!std::isfinite(to_values[p])) found.fault = Fault::sum;
        }
    }
    if (share || found.fault != Fault::none)
        return nb::make_tuple(static_cast<int>(found.fault), found.row, found.position, found.width, nb::none(), nb::none(),
                              nb::none());
    return nb::make_tuple(static_cast<int>(found.fault), found.row, found.position, found.width,
                          sealed(std::move(to_indptr), pointers.size()),
                          sealed(std::move(to_indices), static_cast<std::size_t>(kept)),
                          sealed(std::move(to_values), static_cast<std::size_t>(kept)));
}

void bind_blocks(nb::module_& m) {
    m.def("own_rows", &own_rows, exact("indptr"), exact("indices"), exact("values"), exact("share"));
}

}  // namespace rarestream
