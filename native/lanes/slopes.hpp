// The slopes of the losses of several lanes at their scores, with the class means and intercepts that go with them.
//
// The formulas of the losses are those of losses.hpp. Counting a row, the intercept and |c|^r are written a second time
// here, because their scalar forms in tally.hpp and portable_math.hpp branch, and would round differently as vectors.
// test_every_lane_learns_what_a_model_of_its_learner_does (tests/engines/test_lanes.py) compares the two.
#pragma once

#include "../losses.hpp"
#include "../portable_math.hpp"
#include "../simd.hpp"
#include "half_life.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

RARESTREAM_ALWAYS_INLINE F32 narrowed(const F64& v) {
    F32 out;
#if defined(__AVX2__)
    out.part[0] = (FloatRegister)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)v.part[1]), _mm256_cvtpd_ps((__m256d)v.part[0]));
#else
    double wide[LANES];
    float narrow[LANES];
    store(wide, v);
    for (int l = 0; l < LANES; ++l) narrow[l] = static_cast<float>(wide[l]);
    out = load(narrow);
#endif
    return out;
}

// What the slopes depend on besides the scores of the row.
struct LossInput {
    bool positive;
    double h;      // importance
    double n;      // rows of its class by importance, this one included
    double all;    // rows of both classes
    double share;  // of the other class among all rows
    double u;      // scale of the row
};

// For eight lanes from g on: writes by how much the row changes z (z_slopes x) and v (v_slopes x^2), and updates the class
// means and intercepts. `decay` is read where some lane has a half-life.
template <bool HalfLives>
inline void loss_slopes(const LaneSettings& settings, const LaneState& state, int g, const LossInput& row,
                        const DecayFactors* decay, const float* scores, float* z_slopes, float* v_slopes) {
    using D = DoubleRegister;
    constexpr int STEP = F64::PER_REGISTER;
    const auto at = [](const double* p, int i) RARESTREAM_INLINE_LAMBDA { return load_register<D>(p + i * STEP); };
    double* const own_means = state.means + (row.positive ? 0 : settings.lanes) + g;
    const double* const other_means = state.means + (row.positive ? settings.lanes : 0) + g;
    const double y = row.positive ? 1 : -1, part = row.h / row.n;
    const F64 s = widened<double>(load(scores + g));
    F64 c;
    for (int i = 0; i < F64::PARTS; ++i) {
        const D mean = at(own_means, i), error = margin_error(s.part[i], at(other_means, i), y);
        if constexpr (HalfLives)
            store_register(own_means + i * STEP,
                           mean + shares_in_means(part, row.all, at(decay->half_life + g, i)) * (s.part[i] - mean));
        else
            store_register(own_means + i * STEP, mean + part * (s.part[i] - mean));
        c.part[i] = pairwise_slope(row.share, error) * (y * error > 0 ? 1.0 - at(settings.hinge + g, i) : broadcast(1.0));
    }
    if (settings.group_has_logistic[g / LANE_GROUP]) {
        double *const w0 = state.means + 2 * settings.lanes + g, *const n0 = w0 + settings.lanes;
        F64 weight, squares;
        for (int i = 0; i < F64::PARTS; ++i) {
            weight.part[i] = at(w0, i);
            const D slope = logistic_slope(s.part[i] + weight.part[i], row.positive);
            c.part[i] = at(settings.logistic + g, i) > 0 ? slope : c.part[i];
            D root = at(n0, i);
            if constexpr (HalfLives) root = root * at(decay->n0 + g, i);
            squares.part[i] = root * root + (at(settings.intercept_rate + g, i) > 0 ? row.h * slope * slope : D{});
        }
        const F64 roots = square_root(squares);
        for (int i = 0; i < F64::PARTS; ++i) {
            const D step = at(settings.intercept_rate + g, i) * row.h * c.part[i] /
                           (at(settings.intercept_beta + g, i) + roots.part[i]);
            store_register(n0 + i * STEP, roots.part[i]);
            store_register(w0 + i * STEP, weight.part[i] - step);
        }
    }
    const double hu = row.h * row.u;
    F64 z_slope = c * hu;
    if constexpr (HalfLives) z_slope = z_slope * F64::load(decay->per_s + g);
    store(z_slopes + g, narrowed(z_slope));
    // v grows with |c|^r: the powers in use without a branch. Where the slope is 0 it does not grow, whatever r.
    const F32 slopes = narrowed(c);
    F32 size, powers;
    for (int i = 0; i < F32::PARTS; ++i) size.part[i] = slopes.part[i] < 0 ? -slopes.part[i] : slopes.part[i];
    const F32 roots = square_root(size);
    const float huu = static_cast<float>(hu * row.u);
    for (int i = 0; i < F32::PARTS; ++i) {
        const auto code = load_register<MaskRegister>(settings.power_code + g + i * F32::PER_REGISTER);
        const FloatRegister a = size.part[i], high = code == POWER_2 ? a * a : roots.part[i];
        const FloatRegister low = code == POWER_0 ? broadcast(1.0f) : a;
        powers.part[i] = a > 0 ? (code < POWER_2 ? low : high) * huu : FloatRegister{};
    }
    store(v_slopes + g, powers);
    if (settings.any_other_power) {
        float all[LANES];
        store(all, slopes);
        for (int l = 0; l < LANES; ++l)
            if (settings.power_code[g + l] == POWER_OTHER && all[l] != 0)
                v_slopes[g + l] = power(all[l], settings.power[g + l]) * huu;
    }
    if constexpr (HalfLives) store(v_slopes + g, load(v_slopes + g) * narrowed(F64::load(decay->per_s + g)));
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
