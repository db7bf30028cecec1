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
#include "kernel_arguments.hpp"
#include "csr.hpp"
#include "gate.hpp"
#include "kernels.hpp"
#include "magnitude_histogram.hpp"
#include "weight_order.hpp"

namespace rarestream {

inline namespace portable {
LearnerKernels find_kernels(const char* name);
Scorers<float> scorers_f32();
Scorers<double> scorers_f64();
}  // namespace portable

#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
LearnerKernels find_kernels(const char* name);
Scorers<float> scorers_f32();
Scorers<double> scorers_f64();
}  // namespace avx2
#endif

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

template <class Real>
using TableArray = nb::ndarray<Real, nb::ndim<2>, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::c_contig, nb::device::cpu>;

// The state of a model, borrowed for one call.
template <class Real>
class StateArgument {
    std::vector<ExtraArray> extra_;

public:
    State<Real> state{};

    StateArgument(const TableArray<Real>& table, const InOut<double>& tally, const OptionalLargest& largest,
                  const std::vector<AnyArray>& extra, std::int64_t first = 0) {
        for (const AnyArray& array : extra) {
            ExtraArray borrowed{array.data(), {1, 1, 1}};
            if (array.ndim() > 3) throw std::invalid_argument("state: an array has more than three axes");
            for (std::size_t axis = 0; axis < array.ndim(); ++axis)
                borrowed.shape[axis] = static_cast<std::int64_t>(array.shape(axis));
            extra_.push_back(borrowed);
        }
        const std::int64_t size = static_cast<std::int64_t>(table.shape(0));
        const std::int64_t columns = static_cast<std::int64_t>(table.shape(1));
        // NumPy may give any stride for an axis of length 1.
        state = {table.data(),
                 size,
                 columns,
                 size > 1 ? table.stride(0) : columns,
                 size > 0 && columns > 1 ? table.stride(1) : 1,
                 first,
                 largest ? largest->data() : nullptr,
                 tally.data(),
                 static_cast<std::int64_t>(tally.size()),
                 extra_.data(),
                 static_cast<std::int64_t>(extra_.size())};
    }
};

// A learner's kernels with its settings: everything but the state, which NumPy owns.
class Kernel {
    LearnerKernels portable_, avx2_;
    std::vector<double> settings_;

    template <class Real>
    const Kernels<Real>& kernels(const State<Real>& state) const {
        const LearnerKernels& all = use_avx2 ? avx2_ : portable_;
        const Kernels<Real>* found;
        if constexpr (sizeof(Real) == 4)
            found = &all.in_float32;
        else
            found = &all.in_float64;
        if (!found->fits(settings_.data(), state))
            throw std::invalid_argument("state: its columns, scalars or arrays are not those of this learner");
        return *found;
    }

    // Calls f(kernels, state, scratch) on rows that are safe to read, without the GIL.
    template <class Real, class Function>
    std::int64_t run(const TableArray<Real>& table, const InOut<double>& tally, const OptionalLargest& largest,
                     const std::vector<AnyArray>& extra, BorrowedRows& borrowed, Scale scale, const InOut<double>& scores,
                     Function&& f) const {
        if (scores.size() != static_cast<std::size_t>(borrowed.rows.size))
            throw std::invalid_argument("scores must have one entry per row");
        check_scale(scale, largest, table.shape(0));
        const StateArgument<Real> argument(table, tally, largest, extra);
        const Kernels<Real>& kernel = kernels(argument.state);
        nb::gil_scoped_release released;
        borrowed.copy_unless_sealed();
        RowScratchBuffer<Real> memory;
        return f(kernel, argument.state, memory.scratch(borrowed.rows));
    }

public:
    Kernel(const std::string& name, std::vector<double> settings) : settings_(std::move(settings)) {
        portable_ = portable::find_kernels(name.c_str());
#ifdef RARESTREAM_HAS_AVX2
        avx2_ = avx2::find_kernels(name.c_str());
#endif
        if (portable_.settings != static_cast<std::int64_t>(settings_.size()))
            throw std::invalid_argument(name + ": no such kernel, or the wrong number of settings");
    }

    // Returns the number of rows learned.
    template <class Real>
    std::int64_t learn(TableArray<Real> table, InOut<double> tally, OptionalLargest largest, std::vector<AnyArray> extra,
                       const BlockArgument& block, Scale scale, InOut<double> scores) const {
        BorrowedRows borrowed(block, table.shape(0));
        borrowed.borrow_labels(block);
        return run(table, tally, largest, extra, borrowed, scale, scores,
                   [&](const Kernels<Real>& kernel, const State<Real>& state, const RowScratch<Real>& scratch) {
                       return kernel.learn(settings_.data(), state, borrowed.rows, scale, scores.data(), scratch);
                   });
    }

    // Returns the first row that has no score, -1 if all have.
    template <class Real>
    std::int64_t score(TableArray<Real> table, InOut<double> tally, OptionalLargest largest, std::vector<AnyArray> extra,
                       const BlockArgument& block, Scale scale, InOut<double> scores) const {
        BorrowedRows borrowed(block, table.shape(0));
        return run(table, tally, largest, extra, borrowed, scale, scores,
                   [&](const Kernels<Real>& kernel, const State<Real>& state, const RowScratch<Real>& scratch) {
                       kernel.score(settings_.data(), state, borrowed.rows, scale, scores.data(), scratch);
                       return first_without_score(scores.data(), borrowed.rows.size,
                                                  static_cast<std::int64_t>(scores.size()));
                   });
    }

    // The weights of the coordinates first, first + 1, ... whose part of the table this is.
    template <class Real>
    nb::ndarray<nb::numpy, Real, nb::ndim<1>> weights(TableArray<Real> table, InOut<double> tally,
                                                      std::vector<AnyArray> extra, std::int64_t first) const {
        const StateArgument<Real> argument(table, tally, std::nullopt, extra, first);
        const auto& kernel = kernels(argument.state);
        std::unique_ptr<Real[]> out(new Real[table.shape(0) + 1]);
        {
            nb::gil_scoped_release released;
            kernel.weights(settings_.data(), argument.state, out.get());
        }
        return owned(std::move(out), table.shape(0));
    }
};

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
Scorers<Real> scorers() {
#ifdef RARESTREAM_HAS_AVX2
    if (use_avx2) {
        if constexpr (sizeof(Real) == 4)
            return avx2::scorers_f32();
        else
            return avx2::scorers_f64();
    }
#endif
    if constexpr (sizeof(Real) == 4)
        return portable::scorers_f32();
    else
        return portable::scorers_f64();
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
                   no_convert());
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
