// Python bindings of what groups of rows need that are learned apart: merging states, and which features rows have.
#include <stdexcept>
#include <tuple>
#include <vector>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "merge.hpp"

namespace rarestream {

namespace {

template <class Real>
using Table = nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// parts: the index, the numbers and the share of each group.
template <class Real>
void merge_into(Table<Real> table, In<std::int8_t> rules,
                const std::vector<std::tuple<In<std::int32_t>, Table<const Real>, double>>& parts) {
    const std::size_t columns = table.shape(1);
    const std::int64_t slots = static_cast<std::int64_t>(table.shape(0));
    if (rules.size() != columns) throw std::invalid_argument("merge_tables: there must be a rule for each column");
    for (std::size_t c = 0; c < columns; ++c)
        if (rules.data()[c] < 0 || rules.data()[c] > 2) throw std::invalid_argument("merge_tables: no such rule");
    std::vector<GroupPart<Real>> groups;
    for (const auto& [index, numbers, share] : parts) {
        if (numbers.shape(0) != index.size() || numbers.shape(1) != columns)
            throw std::invalid_argument("merge_tables: a part has other columns, or not one row for each index");
        for (std::size_t i = 0; i < index.size(); ++i)
            if (index.data()[i] < 0 || index.data()[i] >= slots || (i > 0 && index.data()[i] <= index.data()[i - 1]))
                throw std::invalid_argument("merge_tables: an index is beyond the table, or not above the one before");
        groups.push_back({index.data(), numbers.data(), static_cast<std::int64_t>(index.size()), share});
    }
    nb::gil_scoped_release released;
    merge_tables(table.data(), static_cast<std::int64_t>(columns), reinterpret_cast<const MergeRule*>(rules.data()),
                 groups);
}

// Writes 1 to the marks of some features.
void mark_features(In<std::int32_t> indices, InOut<std::uint8_t> marks) {
    const std::size_t slots = marks.size();
    std::uint8_t* const marked = marks.data();
    bool inside = true;
    {
        nb::gil_scoped_release released;
        for (std::size_t i = 0; inside && i < indices.size(); ++i) {
            const std::size_t j = static_cast<std::size_t>(indices.data()[i]);  // a negative one becomes very large
            inside = j < slots;
            if (inside) marked[j] = 1;
        }
    }
    if (!inside) throw std::invalid_argument("mark_features: an index is beyond the marks");
}

}  // namespace

void bind_merge(nb::module_& m) {
    m.def("merge_tables", &merge_into<float>, no_convert(), no_convert(), no_convert());
    m.def("merge_tables", &merge_into<double>, no_convert(), no_convert(), no_convert());
    m.def("mark_features", &mark_features, no_convert(), no_convert());
}

}  // namespace rarestream
