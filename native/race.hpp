// The border between the binding of a race and its kernel, which is compiled three times: race_body.hpp says what it does.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace rarestream {

constexpr int RACE_WIDTH = 8;   // lanes come in groups of so many
constexpr int RACE_MOST = 64;

struct RaceSettings {  // a number a lane; what is 1 or 0 says whether
    float minus_gamma[RACE_MOST], lam[RACE_MOST], beta[RACE_MOST];
    float pull[RACE_MOST];   // 1 in FTRL, which holds weights back to where they were; 0 in dual averaging
    double hinge[RACE_MOST];     // a pair beyond the margin teaches nothing
    double logistic[RACE_MOST];  // the logistic loss in place of one on pairs
    double rate[RACE_MOST], start[RACE_MOST];  // gamma and beta of the intercept; rate 0: none
    double power[RACE_MOST];  // r: v grows with |c|^r; 2 in FTRL
    std::int32_t shape[RACE_MOST];  // 0, 1, 2 for those powers, 3 for 1/2, -1 for any other
    int lanes;  // a multiple of RACE_WIDTH; those to spare repeat the first
    bool any_l1, any_proximal, any_odd;
    bool group_has_logistic[RACE_MOST / RACE_WIDTH];
};

// Owned by NumPy.
struct RaceState {
    float* table;  // [size][2 lanes]: z of sixteen lanes, their n, and so on; the last group may be eight
    std::int64_t size;
    float* largest;
    double *counts, *means;  // n_pos, n_neg; [a, b, w0, n0][lanes]
};

// scores is [rows][lanes]; `leans` has room for [longest row][lanes] where a lane is proximal. Returns the number of rows
// learned, as `learn` of learn.hpp does: what is too much for one lane is learned by none.
using RaceLearn = std::int64_t (*)(const RaceSettings&, const RaceState&, const Rows&, Scale, float* scores,
                                   const Scratch<float>&, float* leans);

// Scores as a Model made of one lane does, to the bit.
using RaceScore = void (*)(const RaceSettings&, const RaceState&, int lane, const Rows&, Scale, double* scores,
                           const Scratch<float>&);

struct RaceKernels {
    RaceLearn learn;
    RaceScore score;
};

}  // namespace rarestream
