#include "arrays.hpp"
#include "borrow.hpp"
#include "csr.hpp"

#include <stdexcept>

namespace rarestream {

// Defined in copy_rows.hpp, for the types that are taken, in each build of the kernels.
namespace portable {
template <class Index, class Value>
CopiedRows copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values);
}
#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
template <class Index, class Value>
CopiedRows copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values);
}
#endif

namespace {

// A contiguous array whose type is looked up here: finding the right one of several overloads costs as much as a row.
using Untyped = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// CSR rows as they are given: int32 or int64 pointers and indices, float32 or float64 values.
class GivenRows {
    const Untyped pointers_, indices_, values_;

public:
    const std::int64_t rows, nonzeros;

    GivenRows(Untyped pointers, Untyped indices, Untyped values)
        : pointers_(pointers), indices_(indices), values_(values), rows(static_cast<std::int64_t>(pointers.size()) - 1),
          nonzeros(static_cast<std::int64_t>(indices.size())) {
        if (pointers.size() < 1 || indices.size() != values.size())
            throw std::invalid_argument("rows: indptr, indices and values do not belong together");
        for (const Untyped& whole : {pointers, indices})
            if (whole.dtype() != nb::dtype<std::int64_t>() && whole.dtype() != nb::dtype<std::int32_t>())
                throw std::invalid_argument("rows: indptr and indices are int32 or int64");
        if (values.dtype() != nb::dtype<double>() && values.dtype() != nb::dtype<float>())
            throw std::invalid_argument("rows: values are float32 or float64");
    }

    // Copies them to where there is a place, and looks at what was copied, or at what stands where there is none. int32 pointers
    // need one.
    Survey copy(std::int64_t* to_indptr, std::int32_t* to_indices, float* to_values, CopiedRows& found) const {
        const std::int64_t* indptr = to_indptr;
        if (pointers_.dtype() == nb::dtype<std::int32_t>()) {
            if (!to_indptr) throw std::invalid_argument("rows: indptr that is not copied is int64");
            std::copy_n(static_cast<const std::int32_t*>(pointers_.data()), rows + 1, to_indptr);
        } else if (to_indptr) {
            std::copy_n(static_cast<const std::int64_t*>(pointers_.data()), rows + 1, to_indptr);
        } else {
            indptr = static_cast<const std::int64_t*>(pointers_.data());
        }
        const Survey pointers = check_pointers(indptr, rows, nonzeros);
        if (pointers.fault != Fault::none) return pointers;
        if (indices_.dtype() == nb::dtype<std::int64_t>()) return copied<std::int64_t>(indptr, to_indices, to_values, found);
        return copied<std::int32_t>(indptr, to_indices, to_values, found);
    }

private:
    template <class Index>
    Survey copied(const std::int64_t* indptr, std::int32_t* to_indices, float* to_values, CopiedRows& found) const {
        const Index* const at = static_cast<const Index*>(indices_.data());
        if (values_.dtype() == nb::dtype<double>())
            return copied(indptr, at, static_cast<const double*>(values_.data()), to_indices, to_values, found);
        return copied(indptr, at, static_cast<const float*>(values_.data()), to_indices, to_values, found);
    }

    template <class Index, class Value>
    Survey copied(const std::int64_t* indptr, const Index* at, const Value* x, std::int32_t* to_indices, float* to_values,
                  CopiedRows& found) const {
        auto* copy = portable::copy_rows<Index, Value>;
#ifdef RARESTREAM_HAS_AVX2
        if (use_avx2) copy = avx2::copy_rows<Index, Value>;
#endif
        found = copy(indptr, rows, at, x, nonzeros, to_indices, to_values);
        return found.sound ? Survey{} : first_fault(indptr, rows, at, x, nonzeros);
    }
};

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

enum class Copy : int { nothing = 0, indices = 1, all = 2 };

// (fault, row, position, width, indptr, indices, values): rows checked, sorted, duplicates summed, in arrays that nobody can
// write to. Of rows that are in order already only so much is copied as is asked for; None stands for what is not.
nb::tuple own_rows(Untyped pointers, Untyped indices, Untyped values, int how) {
    const GivenRows given(pointers, indices, values);
    PooledArray<std::int64_t> to_indptr;
    PooledArray<std::int32_t> to_indices;
    PooledArray<float> to_values;
    std::int64_t kept = given.nonzeros;
    CopiedRows found{};
    Survey survey;
    {
        nb::gil_scoped_release released;
        for (Copy copy = static_cast<Copy>(how);; copy = Copy::all) {
            if (copy != Copy::nothing && !to_indptr) {
                to_indptr = pooled<std::int64_t>(pointers.size());
                to_indices = pooled<std::int32_t>(indices.size());
            }
            if (copy == Copy::all) to_values = pooled<float>(indices.size());
            survey = given.copy(to_indptr.get(), to_indices.get(), to_values.get(), found);
            if (copy == Copy::all || survey.fault != Fault::none || found.ascending) break;
        }
        if (survey.fault == Fault::none && !found.ascending)
            kept = canonicalise(to_indptr.get(), given.rows, to_indices.get(), to_values.get(), survey);
    }
    const auto array = [&](auto&& data, std::size_t size) {
        return data && survey.fault == Fault::none ? nb::cast(sealed(std::move(data), size)) : nb::object(nb::none());
    };
    const std::size_t size = static_cast<std::size_t>(kept);
    return nb::make_tuple(static_cast<int>(survey.fault), survey.row, survey.position, found.width,
                          array(to_indptr, pointers.size()), array(to_indices, size), array(to_values, size));
}

// The same into arrays of the caller's, of the one type of each: making arrays here costs as much as learning a short row.
// (fault, row, position, width, entries left)
nb::tuple own_rows_in(Untyped pointers, Untyped indices, Untyped values, InOut<std::int64_t> to_indptr,
                      InOut<std::int32_t> to_indices, InOut<float> to_values) {
    const GivenRows given(pointers, indices, values);
    if (to_indptr.size() != pointers.size() || to_indices.size() != indices.size() || to_values.size() != indices.size())
        throw std::invalid_argument("own_rows_in: the arrays do not belong together");
    std::int64_t kept = given.nonzeros;
    CopiedRows found{};
    Survey survey = given.copy(to_indptr.data(), to_indices.data(), to_values.data(), found);
    if (survey.fault == Fault::none && !found.ascending)
        kept = canonicalise(to_indptr.data(), given.rows, to_indices.data(), to_values.data(), survey);
    return nb::make_tuple(static_cast<int>(survey.fault), survey.row, survey.position, found.width, kept);
}

}  // namespace

void bind_blocks(nb::module_& m) {
    m.def("own_rows_in", &own_rows_in, exact(), exact(), exact(), exact(), exact(), exact());
    m.def("own_rows", &own_rows, exact("indptr"), exact("indices"), exact("values"), exact("copy"));
}

}  // namespace rarestream
