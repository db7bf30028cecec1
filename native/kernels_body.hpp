// Included by kernels_portable.cpp and kernels_avx2.cpp, which name RARESTREAM_ISA.
#pragma once

#include <cstring>

#include "kernels.hpp"
#include "learn.hpp"
#include "learners/all.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A learner's header is a struct of doubles in the order of its Python module's `settings`.
template <class Learner>
Learner from_settings(const double* settings) {
    Learner learner;
    std::memcpy(&learner, settings, sizeof learner);
    return learner;
}

template <class Learner, class Real>
Kernels<Real> kernels() {
    return {
        [](const double* settings, const Table<Real>& table, double* tally, const Rows& rows, Scale scale,
           double* scores, const Scratch<Real>& scratch) {
            return learn(from_settings<Learner>(settings), table, tally, rows, scale, scores, scratch);
        },
        [](const double* settings, const Table<Real>& table, const Rows& rows, Scale scale, double* scores,
           const Scratch<Real>& scratch) {
            score(from_settings<Learner>(settings), table, rows, scale, scores, scratch);
        },
        [](const double* settings, const Table<Real>& table, Real* out) {
            weights(from_settings<Learner>(settings), table.pairs, table.size, out);
        },
    };
}

LearnerKernels find_kernels(const char* name) {
#define RARESTREAM_FIND(Learner)                                                                       \
    if (std::strcmp(name, #Learner) == 0)                                                              \
        return {sizeof(Learner) / sizeof(double), kernels<Learner, float>(), kernels<Learner, double>()};
    RARESTREAM_LEARNERS(RARESTREAM_FIND)
#undef RARESTREAM_FIND
    return {};
}

ScoreWeights<float> score_weights_f32() { return &score<float>; }
ScoreWeights<double> score_weights_f64() { return &score<double>; }

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
