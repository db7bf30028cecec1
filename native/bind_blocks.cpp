#include "arrays.hpp"
#include "csr.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>

namespace rarestream {

// A contiguous array whose type is looked up here: finding the right one of several overloads costs as much as a row.
using Untyped = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value>
Survey survey_of(const In<std::int64_t>& indptr, const Untyped& indices, const Untyped& values) {
    const std::int64_t rows = static_cast<std::int64_t>(indptr.size()) - 1;
    const std::int64_t nonzeros = static_cast<std::int64_t>(indices.size());
    const Value* x = static_cast<const Value*>(values.data());
    if (indices.dtype() == nb::dtype<std::int32_t>())
        return survey(indptr.data(), rows, static_cast<const std::int32_t*>(indices.data()), x, nonzeros);
    if (indices.dtype() == nb::dtype<std::int64_t>())
        return survey(indptr.data(), rows, static_cast<const std::int64_t*>(indices.data()), x, nonzeros);
    throw std::invalid_argument("survey_rows: indices are int32 or int64");
}

// (fault, row, position, width, canonical) of CSR rows with int32 or int64 indices, float32 or float64 values.
nb::tuple survey_rows(In<std::int64_t> indptr, Untyped indices, Untyped values) {
    if (indptr.size() < 1 || indices.size() != values.size())
        throw std::invalid_argument("survey_rows: indptr, indices and values do not belong together");
    const bool wide = values.dtype() == nb::dtype<double>();
    if (!wide && values.dtype() != nb::dtype<float>())
        throw std::invalid_argument("survey_rows: values are float32 or float64");
    Survey found;
    {
        nb::gil_scoped_release released;
        found = wide ? survey_of<double>(indptr, indices, values) : survey_of<float>(indptr, indices, values);
    }
    return nb::make_tuple(static_cast<int>(found.fault), found.row, found.position, found.width, found.canonical);
}

// Sorts every row and sums duplicates, in place; indptr is rewritten; returns the number of entries left.
std::int64_t canonicalise_rows(InOut<std::int64_t> indptr, InOut<std::int32_t> indices, InOut<float> values) {
    nb::gil_scoped_release released;
    std::vector<std::pair<std::int32_t, float>> scratch;
    std::int64_t* ptr = indptr.data();
    std::int64_t kept = 0, begin = 0;
    for (std::size_t i = 0; i + 1 < indptr.size(); ++i) {
        const std::int64_t end = ptr[i + 1];
        const std::int64_t size = canonicalise_row(indices.data() + begin, values.data() + begin, end - begin, scratch);
        std::copy(indices.data() + begin, indices.data() + begin + size, indices.data() + kept);
        std::copy(values.data() + begin, values.data() + begin + size, values.data() + kept);
        kept += size;
        begin = end;
        ptr[i + 1] = kept;
    }
    return kept;
}

void bind_blocks(nb::module_& m) {
    m.def("survey_rows", &survey_rows);
    m.def("canonicalise_rows", &canonicalise_rows);
}

}  // namespace rarestream
