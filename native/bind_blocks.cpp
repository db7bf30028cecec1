#include "arrays.hpp"
#include "csr.hpp"

#include <nanobind/stl/tuple.h>

#include <limits>

namespace rarestream {

// (fault, row, position, width, canonical) of CSR rows of any index and value type.
template <class Index, class Value>
nb::tuple survey_rows(In<std::int64_t> indptr, In<Index> indices, In<Value> values) {
    Survey found;
    {
        nb::gil_scoped_release released;
        found = survey(indptr.data(), static_cast<std::int64_t>(indptr.size()) - 1, indices.data(), values.data(),
                       static_cast<std::int64_t>(indices.size()));
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
    m.def("survey_rows", &survey_rows<std::int32_t, float>);
    m.def("survey_rows", &survey_rows<std::int64_t, float>);
    m.def("survey_rows", &survey_rows<std::int32_t, double>);
    m.def("survey_rows", &survey_rows<std::int64_t, double>);
    m.def("canonicalise_rows", &canonicalise_rows);
}

}  // namespace rarestream
