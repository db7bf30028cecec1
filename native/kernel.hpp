// A learner's kernels as Python calls them: with its settings, and a state that NumPy owns.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "calibration_numbers.hpp"
#include "kernel_arguments.hpp"
#include "kernels.hpp"

namespace rarestream {

inline namespace portable {
LearnerKernels find_kernels(const char* name);
Scorers<float> scorers_f32();
Scorers<double> scorers_f64();
Calibrate calibrator();
}  // namespace portable

#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
LearnerKernels find_kernels(const char* name);
Scorers<float> scorers_f32();
Scorers<double> scorers_f64();
Calibrate calibrator();
}  // namespace avx2
#endif

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

public:
    // Those of this machine for a state, which must be one of this learner's.
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

    const double* settings() const { return settings_.data(); }

private:
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
                       const BlockArgument& block, Scale scale, InOut<double> scores, double repeats) const {
        BorrowedRows borrowed(block, table.shape(0));
        borrowed.borrow_labels(block);
        borrowed.repeat(repeats);
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

// Functions of this machine that score with weights in an array.
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

// The function of this machine that adds rows to a calibration.
inline Calibrate calibrator_here() {
#ifdef RARESTREAM_HAS_AVX2
    if (use_avx2) return avx2::calibrator();
#endif
    return portable::calibrator();
}

}  // namespace rarestream
