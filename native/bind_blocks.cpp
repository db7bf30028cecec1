// Python bindings of blocks: rows from outside checked, sorted and copied.
#include "arrays.hpp"
#include "kernel_arguments.hpp"
#include "csr.hpp"

#include <stdexcept>
#include <type_traits>

namespace rarestream {

// Defined in copy_rows.hpp and dense_rows.hpp, for the types that are accepted, in each build.
namespace portable {
template <class Index, class Value>
CopyResult copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values);
template <class Real>
std::int64_t drop_zeros(const Real* row, std::int64_t columns, std::int32_t* at, float* to, bool& finite);
}  // namespace portable
#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
template <class Index, class Value>
CopyResult copy_rows(const std::int64_t* indptr, std::int64_t rows, const Index* indices, const Value* values,
                     std::int64_t nonzeros, std::int32_t* to_indices, float* to_values);
template <class Real>
std::int64_t drop_zeros(const Real* row, std::int64_t columns, std::int32_t* at, float* to, bool& finite);
}  // namespace avx2
#endif

namespace {

// A contiguous array of any type. Its type is examined here, because choosing between overloads would cost as much as
// learning a row.
using Untyped = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

// copy_rows of the build that is in use.
template <class Index, class Value>
auto* kernel_copy() {
#ifdef RARESTREAM_HAS_AVX2
    if (use_avx2) return avx2::copy_rows<Index, Value>;
#endif
    return portable::copy_rows<Index, Value>;
}

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
        found = kernel_copy<Index, Value>()(indptr, rows, at, x, nonzeros, to_indices, to_values);
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

// The width of CSR rows that need no change: int32 or int64 pointers, int32 indices that ascend, finite float32 values, all
// contiguous; -1 for any other. For a few rows that are used at once, of which nothing is copied.
std::int64_t width_if_canonical(AnyArray pointers, AnyArray indices, AnyArray values) {
    constexpr std::size_t MOST_ROWS = 64;  // FEW_ROWS of blocks.py
    std::int64_t indptr[MOST_ROWS + 1];
    for (const AnyArray& array : {pointers, indices, values})
        if (array.ndim() != 1 || (array.stride(0) != 1 && array.size() > 1)) return -1;
    if (pointers.size() < 1 || pointers.size() > MOST_ROWS + 1 || indices.size() != values.size() ||
        indices.dtype() != nb::dtype<std::int32_t>() || values.dtype() != nb::dtype<float>())
        return -1;
    if (pointers.dtype() == nb::dtype<std::int32_t>())
        std::copy_n(static_cast<const std::int32_t*>(pointers.data()), pointers.size(), indptr);
    else if (pointers.dtype() == nb::dtype<std::int64_t>())
        std::copy_n(static_cast<const std::int64_t*>(pointers.data()), pointers.size(), indptr);
    else
        return -1;
    const std::int64_t rows = static_cast<std::int64_t>(pointers.size()) - 1;
    const std::int64_t nonzeros = static_cast<std::int64_t>(indices.size());
    if (check_indptr(indptr, rows, nonzeros).fault != CsrFault::none) return -1;
    const CopyResult found =
        kernel_copy<std::int32_t, float>()(indptr, rows, static_cast<const std::int32_t*>(indices.data()),
                                           static_cast<const float*>(values.data()), nonzeros, nullptr, nullptr);
    return found.valid && found.ascending ? found.width : -1;
}

// The rows of a dense array without its zeros. Every number is read once; memory for the result grows with what is found.
class DenseRows {
    static constexpr std::int64_t FIRST = 65536;  // entries there is room for before their number can be guessed
    // Numbers that are put in order or converted at a time: they fit in the L1 cache, and where they come by columns in
    // the L2 cache, so that long pieces of each column are read.
    static constexpr std::int64_t ROW_TILE = 2048, COLUMN_TILE = 16384;
    static constexpr std::int64_t LINE = 8;  // numbers of a cache line

    std::int64_t capacity_ = 0;

public:
    const std::int64_t rows, columns;
    std::int64_t kept = 0, width = 0;
    PooledArray<std::int64_t> indptr;
    PooledArray<std::int32_t> indices;
    PooledArray<float> values;
    CsrCheck check;  // `position` is the column

    DenseRows(std::int64_t n, std::int64_t d) : rows(n), columns(d), indptr(pooled<std::int64_t>(n + 1)) {
        indptr[0] = 0;
        grow(0);
    }

    // Strides are in numbers.
    template <class Number>
    void convert(const Number* data, std::int64_t row_stride, std::int64_t column_stride) {
        if constexpr (std::is_floating_point_v<Number>) {
            if (column_stride == 1 || columns <= 1) {
                for (std::int64_t i = 0; i < rows && check.fault == CsrFault::none; ++i) add(i, data + i * row_stride);
                return;
            }
        }
        // Whole numbers become float64 first, as NumPy converts them: rounded twice.
        using Real = std::conditional_t<std::is_floating_point_v<Number>, Number, double>;
        const bool by_row = std::abs(column_stride) <= std::abs(row_stride);
        const std::int64_t fitting = (by_row ? ROW_TILE : COLUMN_TILE) / std::max<std::int64_t>(columns, 1);
        const std::int64_t tile_rows = std::min(rows, std::max(fitting, by_row ? 1 : LINE));
        const PooledArray<Real> tile = pooled<Real>(tile_rows * columns);
        const std::int64_t together = by_row ? columns : LINE;  // columns of a row that are copied before the next row
        for (std::int64_t first = 0; first < rows; first += tile_rows) {
            const std::int64_t size = std::min(tile_rows, rows - first);
            const Number* const from = data + first * row_stride;
            for (std::int64_t left = 0; left < columns; left += together) {
                const std::int64_t right = std::min(columns, left + together);
                for (std::int64_t i = 0; i < size; ++i)
                    for (std::int64_t j = left; j < right; ++j)
                        tile[i * columns + j] = static_cast<Real>(from[i * row_stride + j * column_stride]);
            }
            for (std::int64_t i = 0; i < size; ++i) {
                add(first + i, tile.get() + i * columns);
                if (check.fault != CsrFault::none) return;
            }
        }
    }

private:
    template <class Real>
    void add(std::int64_t i, const Real* row) {
        if (kept + columns > capacity_) grow(i);
        auto* drop = portable::drop_zeros<Real>;
#ifdef RARESTREAM_HAS_AVX2
        if (use_avx2) drop = avx2::drop_zeros<Real>;
#endif
        bool finite = true;
        const std::int64_t count = drop(row, columns, indices.get() + kept, values.get() + kept, finite);
        if (!finite) {
            std::int64_t j = 0;
            while (j < columns && std::isfinite(static_cast<float>(row[j]))) ++j;
            check = {j < columns ? CsrFault::value : CsrFault::changed, i, j};
            return;
        }
        kept += count;
        if (count > 0) width = std::max<std::int64_t>(width, indices[kept - 1] + 1);
        indptr[i + 1] = kept;
    }

    // Makes room for row i, and for the rows that follow it if they have as many entries as those before.
    void grow(std::int64_t i) {
        const std::int64_t all = rows * columns;
        const double guess = i > 0 ? 1.05 * static_cast<double>(kept) / static_cast<double>(i) * static_cast<double>(rows)
                                   : static_cast<double>(FIRST);
        const std::int64_t wanted = static_cast<std::int64_t>(std::min(guess, static_cast<double>(all)));
        capacity_ = std::max({wanted, kept + columns, std::min(all, capacity_ + capacity_ / 4)});
        auto more_indices = pooled<std::int32_t>(capacity_);
        auto more_values = pooled<float>(capacity_);
        std::copy_n(indices.get(), kept, more_indices.get());
        std::copy_n(values.get(), kept, more_values.get());
        indices = std::move(more_indices);
        values = std::move(more_values);
    }
};

using DenseArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

// A boolean of NumPy: any byte that is not 0 is true. A bool of C++ must be 0 or 1.
struct Truth {
    std::uint8_t byte;
    explicit operator double() const { return byte != 0; }
};
static_assert(sizeof(Truth) == 1);

// Calls f with a pointer to the numbers; false if they are of another type.
template <class Number, class... Others, class Function>
bool with_numbers(const DenseArray& array, Function&& f) {
    if (array.dtype() == nb::dtype<Number>()) {
        using Stored = std::conditional_t<std::is_same_v<Number, bool>, Truth, Number>;
        f(static_cast<const Stored*>(array.data()));
        return true;
    }
    if constexpr (sizeof...(Others) > 0) return with_numbers<Others...>(array, f);
    return false;
}

// (fault, row, column, width, indptr, indices, values) of a dense array with strides of any kind.
nb::tuple own_dense(DenseArray array) {
    DenseRows dense(static_cast<std::int64_t>(array.shape(0)), static_cast<std::int64_t>(array.shape(1)));
    if (dense.columns > INT32_MAX - 1) throw std::invalid_argument("own_dense: too many columns");
    bool known;
    {
        nb::gil_scoped_release released;
        known = with_numbers<double, float, bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                             std::uint16_t, std::uint32_t, std::uint64_t>(
            array, [&](const auto* data) { dense.convert(data, array.stride(0), array.stride(1)); });
    }
    if (!known) throw std::invalid_argument("own_dense: the array must be of float32, float64, whole numbers or booleans");
    if (dense.check.fault != CsrFault::none)
        return nb::make_tuple(dense.check.fault, dense.check.row, dense.check.position, 0, nb::none(), nb::none(),
                              nb::none());
    const std::size_t kept = static_cast<std::size_t>(dense.kept);
    return nb::make_tuple(dense.check.fault, 0, 0, dense.width,
                          read_only(std::move(dense.indptr), static_cast<std::size_t>(dense.rows) + 1),
                          read_only(std::move(dense.indices), kept), read_only(std::move(dense.values), kept));
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
    m.def("own_dense", &own_dense, no_convert());
    m.def("width_if_canonical", &width_if_canonical, no_convert(), no_convert(), no_convert());
    m.def("own_rows_in", &own_rows_in, no_convert(), no_convert(), no_convert(), no_convert(), no_convert(), no_convert());
    m.def("own_rows", &own_rows, no_convert("indptr"), no_convert("indices"), no_convert("values"), enum_arg("copy"));
}

}  // namespace rarestream
