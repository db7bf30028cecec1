// The types that the binding of lanes and their kernels share. The kernels are compiled three times: lanes/learn.hpp.
#pragma once

#include <cstdint>

#include "../kernels.hpp"

namespace rarestream {

constexpr int LANE_GROUP = 8;  // lanes come in groups of this many
constexpr int MAX_LANES = 64;

enum class Loss : int { pairwise_square = 0, pairwise_hinge = 1, logistic = 2 };

// The powers r in use, which need no exp and log; power_code of LaneSettings.
constexpr std::int32_t POWER_0 = 0, POWER_1 = 1, POWER_2 = 2, POWER_HALF = 3, POWER_OTHER = -1;

struct LaneHalfLives {  // one number per lane; rows 0: none, the others are not used
    double rows[MAX_LANES];
    double gamma[MAX_LANES], lam[MAX_LANES], beta[MAX_LANES];  // of LaneSettings, which has them in the units of a row
};

// The powers q of weights that lanes have: only 0; 0 and 1; 1/2 too, which takes a square root.
enum class WeightPowers : int { none, whole, half };

struct LaneSettings {  // one number per lane; flags are 1 or 0, so that they can be multiplied
    float minus_gamma[MAX_LANES], lam[MAX_LANES], beta[MAX_LANES];
    float proximal[MAX_LANES];                                    // kappa: 1 in FTRL, 0 in plain dual averaging
    float weight_power[MAX_LANES];                                // q: 0, 1/2 or 1
    float evidence[MAX_LANES];                                    // p: 0, 1/2 or 1
    double hinge[MAX_LANES];                                      // 1: a pair beyond the margin has slope 0
    double logistic[MAX_LANES];                                   // 1: the logistic loss in place of a pairwise one
    double intercept_rate[MAX_LANES], intercept_beta[MAX_LANES];  // rate 0: no intercept
    double power[MAX_LANES];                                      // r: v grows with |c|^r; 2 in FTRL
    std::int32_t power_code[MAX_LANES];
    bool mean_gradient[MAX_LANES];  // its Model multiplies z / (beta + n) by gamma, not gamma z: other last bits
    int lanes;  // a multiple of LANE_GROUP; where there are fewer settings, the last lanes repeat the first
    bool any_l1, any_proximal, any_weight_power, any_evidence, any_other_power, any_mean_gradient;
    bool group_has_logistic[MAX_LANES / LANE_GROUP];
    WeightPowers group_powers[MAX_LANES / LANE_GROUP];
    bool any_half_life;
    LaneHalfLives half_lives;
};

// Lanes are settings, which share the labels of the rows; or, where RowsView::classes is not null, they are classes with
// the same settings: row i is positive in lane classes[i] and negative in all others, and in all if there is no such lane.
//
// Where v grows by the same amount whatever the slope is (r = 0), n is the same for all classes: they have equal rates.
// Then a coordinate holds z of all lanes, in whole cache lines, and its n is in LaneState::rates.
enum class LaneKind { settings, classes, equal_rates };

// Owned by NumPy.
struct LaneState {
    float* table;  // [size][2 lanes]: z of sixteen lanes, their n, and so on; the last group may be of eight
    std::int64_t size;
    Pair<float>* having;  // how many positives and negatives have the feature; null where no lane has evidence
    float* largest;
    double *counts, *means;  // n_pos, n_neg, or [n_pos, n_neg][lanes] of classes; [a, b, w0, n0][lanes]
    float* rates;            // n of every coordinate, for classes with equal rates; else null
};

// Where z and n of a lane are in the numbers of a coordinate.
struct LaneColumns {
    int z, n;
};
inline LaneColumns columns_of(int lanes, int lane) {
    const int first = lane / 16 * 16, width = lanes - first < 16 ? lanes - first : 16;
    return {first + lane, first + lane + width};
}

// The scores of some rows under the first lanes, as many as are wanted.
struct LaneScores {
    float* first;
    std::int64_t stride;  // numbers from one row to the next
    int wanted;
};

// scaled_weights has space for [longest row][lanes] where a lane is proximal. Returns the number
// of rows learned, as `learn` of learn.hpp does: a row that is too large for one lane is learned by none.
using LaneLearn = std::int64_t (*)(const LaneSettings&, const LaneState&, const RowsView&, Scale, const LaneScores&,
                                   const RowScratch<float>&, float* scaled_weights);

// Gives the scores of a Model with the state of this lane, bit for bit.
using LaneScore = void (*)(const LaneSettings&, const LaneState&, int lane, const RowsView&, Scale, double* scores,
                           const RowScratch<float>&);

// Adds the weights of n coordinates from the first on under one lane, times its share; the weights are those of a Model.
using LaneAddWeights = void (*)(const LaneSettings&, const LaneState&, int lane, double share, std::int64_t first,
                                std::int64_t n, double* out);

// Writes the evidence of the entries of some rows, which are counted: lanes/prepare.hpp.
using LaneEvidence = void (*)(Pair<float>* having, std::int64_t slots, double* counts, const RowsView&, std::int64_t first,
                              std::int64_t stop, const EvidenceArrays&);

// Waits until so many entries are ready, and returns how many are; -1 if there will be fewer.
std::int64_t wait_for_entries(const std::atomic<std::int64_t>& ready, std::int64_t wanted);

struct LaneKernels {
    LaneLearn learn;
    LaneScore score;
    LaneAddWeights add_weights;
    LaneEvidence evidence_of_rows;
};

}  // namespace rarestream
