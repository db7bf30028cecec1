// Python bindings of learners: learning, scoring and reading weights, and what pruning and model files need of them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "kernel.hpp"
#include "kernel_arguments.hpp"
#include "csr.hpp"
#include "gate.hpp"
#include "kernels.hpp"
#include "magnitude_histogram.hpp"
#include "weight_order.hpp"

namespace rarestream {

namespace {

bool avx2_wanted() {
    const char* chosen = std::getenv("RARESTREAM_ISA");
    return avx2_available() && !(chosen && std::string(chosen) == "portable");
}

}  // namespace

bool use_avx2 = avx2_wanted();

namespace {

std::string isa() { return use_avx2 ? "avx2" : "portable"; }

void set_isa(const std::string& name) {
    if (name != "portable" && !(name == "avx2" && avx2_available()))
        throw std::invalid_argument("this machine has no instruction set called '" + name + "'");
    use_avx2 = name == "avx2";
}

inline std::uint64_t bits(double number) {
    std::uint64_t found;
    std::memcpy(&found, &number, sizeof found);
    return found;
}
inline std::uint32_t bits(float number) {
    std::uint32_t found;
    std::memcpy(&found, &number, sizeof found);
    return found;
}

// Whether so many numbers are all zero bits.
template <class Real>
bool all_zero(const Real* numbers, std::int64_t count) {
    typedef std::uint64_t TwoWords __attribute__((vector_size(16)));
    constexpr std::int64_t STEP = 4 * sizeof(TwoWords) / sizeof(Real);
    std::int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        TwoWords words[4];
        std::memcpy(words, numbers + i, sizeof words);
        const TwoWords all = (words[0] | words[1]) | (words[2] | words[3]);
        if (all[0] | all[1]) return false;
    }
    for (; i < count; ++i)
        if (bits(numbers[i])) return false;
    return true;
}

// The coordinates of which some number is not all zero bits (-0.0 is not, so that a state read back from a file has the
// same bits), and their numbers, column by column: what a model file keeps.
template <class Real>
nb::tuple touched(TableArray<Real> table) {
    const std::int64_t slots = static_cast<std::int64_t>(table.shape(0));
    const std::int64_t columns = static_cast<std::int64_t>(table.shape(1));
    const std::int64_t row_stride = slots > 1 ? table.stride(0) : columns;
    const std::int64_t column_stride = columns > 1 ? table.stride(1) : 1;
    const Real* all = table.data();
    std::vector<std::int32_t> index;
    std::unique_ptr<Real[]> kept;
    {
        nb::gil_scoped_release released;
        constexpr std::int64_t CHUNK = 32;  // coordinates, collected without a branch: it would be mispredicted
        const bool dense = row_stride == columns && column_stride == 1;
        std::int32_t chunk[CHUNK];
        for (std::int64_t start = 0; start < slots; start += CHUNK) {
            // Most of a large table is zero: many rows are touched by few features.
            if (dense && all_zero(all + start * columns, std::min(slots - start, CHUNK) * columns)) continue;
            std::size_t count = 0;
            for (std::int64_t j = start; j < std::min(slots, start + CHUNK); ++j) {
                bool any = false;
                for (std::int64_t c = 0; c < columns; ++c) any |= bits(all[j * row_stride + c * column_stride]) != 0;
                chunk[count] = static_cast<std::int32_t>(j);
                count += any;
            }
            index.insert(index.end(), chunk, chunk + count);
        }
        kept.reset(new Real[index.size() * columns + 1]);
        for (std::size_t i = 0; i < index.size(); ++i)  // column by column: each becomes an array of the file
            for (std::int64_t c = 0; c < columns; ++c)
                kept[c * index.size() + i] = all[index[i] * row_stride + c * column_stride];
    }
    const std::size_t size = index.size() * columns;
    return nb::make_tuple(copied(index), owned(std::move(kept), size));
}

// The counts of a MagnitudeHistogram of these numbers.
template <class Real>
nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> ladder(In<Real> numbers, double budget) {
    std::vector<std::int32_t> counts(MagnitudeHistogram::COUNTS);
    MagnitudeHistogram(counts.data(), budget).fill(numbers.data(), numbers.size());
    return copied(counts);
}

template <class Real>
std::int64_t score_weights(In<Real> weights, OptionalLargest largest, const BlockArgument& block, Scale scale,
                           InOut<double> scores) {
    BorrowedRows borrowed(block, weights.size());
    RowsView& rows = borrowed.rows;
    if (scores.size() != static_cast<std::size_t>(rows.size))
        throw std::invalid_argument("scores must have one entry per row");
    check_scale(scale, largest, weights.size());
    const float* largest_data = largest ? largest->data() : nullptr;
    const std::int64_t size = static_cast<std::int64_t>(weights.size());
    nb::gil_scoped_release released;
    borrowed.copy_unless_sealed();
    RowScratchBuffer<Real> memory;
    scorers<Real>().score(weights.data(), size, largest_data, rows, scale, scores.data(), memory.scratch(rows));
    return first_without_score(scores.data(), rows.size, static_cast<std::int64_t>(scores.size()));
}

template <class Real>
nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> ranked_weights(In<Real> weights) {
    std::vector<std::int32_t> order;
    {
        nb::gil_scoped_release released;
        order = ranked(weights.data(), static_cast<std::int64_t>(weights.size()));
    }
    return copied(order);
}

// `scores` has one row per model size and one column per row of the block. Returns the first row that has no scores, -1 if
// all have.
template <class Real>
std::int64_t path_scores(In<Real> weights, In<std::uint16_t> classes, OptionalLargest largest, const BlockArgument& block,
                         Scale scale, nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> scores) {
    BorrowedRows borrowed(block, weights.size());
    RowsView& rows = borrowed.rows;
    if (scores.shape(1) != static_cast<std::size_t>(rows.size))
        throw std::invalid_argument("scores must have one column per row");
    if (classes.size() != weights.size()) throw std::invalid_argument("classes must have one entry per weight");
    check_scale(scale, largest, weights.size());
    const float* largest_data = largest ? largest->data() : nullptr;
    const std::int64_t d = static_cast<std::int64_t>(weights.size()), sizes = static_cast<std::int64_t>(scores.shape(0));
    nb::gil_scoped_release released;
    borrowed.copy_unless_sealed();
    if (rows.size < static_cast<std::int64_t>(scores.shape(1))) return rows.size;
    RowScratchBuffer<Real> memory;
    scorers<Real>().path(weights.data(), classes.data(), d, sizes, largest_data, rows, scale, scores.data(),
                         memory.scratch(rows));
    return -1;
}

}  // namespace

void bind_learners(nb::module_& m) {
    m.def("isa", &isa);
    m.def("set_isa", &set_isa, no_convert());
    nb::class_<Gate>(m, "Gate")
        .def(nb::init<>())
        .def("begin_learning", &Gate::begin_learning)
        .def("end_learning", &Gate::end_learning)
        .def("begin_scoring", &Gate::begin_scoring)
        .def("end_scoring", &Gate::end_scoring);
    nb::enum_<Scale>(m, "Scale", nb::is_arithmetic())
        .value("none", Scale::none)
        .value("unit", Scale::unit)
        .value("max", Scale::max);
    const auto learn_args = [](auto& kernel, auto method) {
        kernel.def("learn", method, no_convert(), no_convert(), no_convert().none(), no_convert(), no_convert(), enum_arg(),
                   no_convert(), no_convert() = 1.0);
    };
    const auto score_args = [](auto& kernel, auto method) {
        kernel.def("score", method, no_convert(), no_convert(), no_convert().none(), no_convert(), no_convert(), enum_arg(),
                   no_convert());
    };
    auto kernel = nb::class_<Kernel>(m, "Kernel")
                      .def(nb::init<const std::string&, std::vector<double>>(), no_convert(), no_convert());
    learn_args(kernel, &Kernel::learn<float>);
    learn_args(kernel, &Kernel::learn<double>);
    score_args(kernel, &Kernel::score<float>);
    score_args(kernel, &Kernel::score<double>);
    const auto weights_args = [](auto& kernel, auto method) {
        kernel.def("weights", method, no_convert(), no_convert(), no_convert(), no_convert());
    };
    weights_args(kernel, &Kernel::weights<float>);
    weights_args(kernel, &Kernel::weights<double>);
    m.def("touched", &touched<float>, no_convert());
    m.def("touched", &touched<double>, no_convert());
    m.def("score_weights", &score_weights<float>, no_convert(), no_convert().none(), no_convert(), enum_arg(),
          no_convert());
    m.def("score_weights", &score_weights<double>, no_convert(), no_convert().none(), no_convert(), enum_arg(),
          no_convert());
    m.def("ladder", &ladder<float>, no_convert(), no_convert());
    m.def("ladder", &ladder<double>, no_convert(), no_convert());
    m.def("ranked", &ranked_weights<float>, no_convert());
    m.def("ranked", &ranked_weights<double>, no_convert());
    m.def("score_path", &path_scores<float>, no_convert(), no_convert(), no_convert().none(), no_convert(), enum_arg(),
          no_convert());
    m.def("score_path", &path_scores<double>, no_convert(), no_convert(), no_convert().none(), no_convert(), enum_arg(),
          no_convert());
}

}  // namespace rarestream
