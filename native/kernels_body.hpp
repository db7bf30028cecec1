// The kernels of all learners by name. Included by kernels_portable.cpp and kernels_avx2.cpp, which define RARESTREAM_ISA.
#pragma once

#include <cstring>

#include "calibration.hpp"
#include "kernels.hpp"
#include "learn.hpp"
#include "learners/all.hpp"
#include "pruning_path.hpp"
#include "updater.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A learner is a struct of doubles, in the order of `kernel_settings()` of its Python module.
template <class Learner>
Learner from_settings(const double* settings) {
    Learner learner;
    std::memcpy(&learner, settings, sizeof learner);
    return learner;
}

// Whether the learner has an Updater (updater.hpp); otherwise it has `rule` and `slope` (learn.hpp).
template <class Learner>
constexpr auto has_updater(int) -> decltype(sizeof(typename Learner::template Updater<float>), true) {
    return true;
}
template <class Learner>
constexpr bool has_updater(...) {
    return false;
}

template <class Learner, class Real>
Kernels<Real> kernels() {
    if constexpr (has_updater<Learner>(0)) {
        using Updater = typename Learner::template Updater<Real>;
        return {
            [](const double* settings, const State<Real>& state) {
                return Updater::fits(from_settings<Learner>(settings), state);
            },
            [](const double* settings, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
               const RowScratch<Real>& scratch) {
                const Learner learner = from_settings<Learner>(settings);
                Updater updater(learner, state);
                return learn_with_updater(updater, state, rows, scale, scores, scratch);
            },
            [](const double* settings, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
               const RowScratch<Real>& scratch) {
                const Learner learner = from_settings<Learner>(settings);
                score_with_updater(Updater(learner, state), state, rows, scale, scores, scratch);
            },
            [](const double* settings, const State<Real>& state, Real* out) {
                const Learner learner = from_settings<Learner>(settings);
                const Updater updater(learner, state);
                for (std::int32_t j = 0; j < state.size; ++j) out[j] = updater.weight(j) + Real(0);  // no negative zeros
            },
        };
    } else {
        return {
            [](const double*, const State<Real>& state) {
                constexpr int columns = 2 * pairs_of<decltype(Learner{}.template rule<Real>())>(0);
                return state.columns == columns && state.row_stride == columns &&
                       state.n_scalars * sizeof(double) == sizeof(Tally);
            },
            [](const double* settings, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
               const RowScratch<Real>& scratch) {
                return learn(from_settings<Learner>(settings), state, rows, scale, scores, scratch);
            },
            [](const double* settings, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
               const RowScratch<Real>& scratch) {
                score(from_settings<Learner>(settings), state, rows, scale, scores, scratch);
            },
            [](const double* settings, const State<Real>& state, Real* out) {
                weights(from_settings<Learner>(settings), state, out);
            },
        };
    }
}

LearnerKernels find_kernels(const char* name) {
#define RARESTREAM_FIND(Learner)          \
    if (std::strcmp(name, #Learner) == 0) \
        return {sizeof(Learner) / sizeof(double), kernels<Learner, float>(), kernels<Learner, double>()};
    RARESTREAM_LEARNERS(RARESTREAM_FIND)
#undef RARESTREAM_FIND
    return {};
}

Scorers<float> scorers_f32() { return {&score<float>, &score_path<float>}; }
Scorers<double> scorers_f64() { return {&score<double>, &score_path<double>}; }

Calibrate calibrator() {
    return [](double* numbers, const std::int8_t* labels, const double* scores, const double* importances, std::size_t n) {
        Calibration(numbers).add(labels, scores, importances, n);
    };
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
