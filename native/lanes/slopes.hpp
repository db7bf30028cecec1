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
    double h;                           // importance
    double n;                           // rows of its class by importance, this one included
    double all;                         // rows of both classes
    double share;                       // of the other class among all rows
    double u;                           // scale of the row
    double repeated;                    // importance times RowsView::repeats
    const double* positives = nullptr;  // where lanes are classes, in place of all that differs then: 1 or 0 for each lane
};

// The same for the lanes of one register.
struct LossInputs {
    using D = DoubleRegister;
    D own_mean, mean_of_others, y, target, part, share;  // part: of the row among the rows of its class

    // Lanes that share their labels.
    RARESTREAM_ALWAYS_INLINE LossInputs(const LossInput& row, const D& own, const D& others)
        : own_mean(own), mean_of_others(others), y(broadcast(row.positive ? 1.0 : -1.0)),
          target(broadcast(row.positive ? 1.0 : 0.0)), part(broadcast(row.h / row.n)), share(broadcast(row.share)) {}

    // Lanes that are classes: a and b are the mean scores of positives and negatives, n_pos and n_neg the rows so far.
    RARESTREAM_ALWAYS_INLINE LossInputs(const D& positive, const D& a, const D& b, const D& n_pos, const D& n_neg, double h)
        : own_mean(positive > 0 ? a : b), mean_of_others(positive > 0 ? b : a),
          y(positive > 0 ? broadcast(1.0) : broadcast(-1.0)), target(positive), part(h / (positive > 0 ? n_pos : n_neg)),
          share((positive > 0 ? n_neg : n_pos) / (n_pos + n_neg)) {}
};

// Counts the row in the lanes of the register from l on, which are classes, and returns what its slopes depend on there.
template <class D>
RARESTREAM_ALWAYS_INLINE LossInputs counted(const LaneSettings& settings, const LaneState& state, int l,
                                            const LossInput& row) {
    double *const positives = state.counts + l, *const negatives = positives + settings.lanes;
    const double* const a = state.means + l;
    const D positive = load_register<D>(row.positives + l);
    const D n_pos = load_register<D>(positives) + row.h * positive;
    const D n_neg = load_register<D>(negatives) + row.h * (1.0 - positive);
    store_register(positives, n_pos);
    store_register(negatives, n_neg);
    return {positive, load_register<D>(a), load_register<D>(a + settings.lanes), n_pos, n_neg, row.h};
}

// For eight lanes from g on: writes by how much the row changes z (z_slopes x) and v (v_slopes x^2), and updates the class
// means and intercepts. `decay` is read where some lane has a half-life.
template <LaneKind Kind, bool HalfLives>
inline void loss_slopes(const LaneSettings& settings, const LaneState& state, int g, const LossInput& row,
                        const DecayFactors* decay, const float* scores, float* z_slopes, float* v_slopes) {
    using D = DoubleRegister;
    constexpr int STEP = F64::PER_REGISTER;
    const auto at = [](const double* p, int i) RARESTREAM_INLINE_LAMBDA { return load_register<D>(p + i * STEP); };
    constexpr bool Classes = Kind != LaneKind::settings, EqualRates = Kind == LaneKind::equal_rates;
    static_assert(!(Classes && HalfLives), "the time of a lane with a half-life is that of all lanes");
    double* const own_means = state.means + (row.positive ? 0 : settings.lanes) + g;
    const double* const other_means = state.means + (row.positive ? settings.lanes : 0) + g;
    const F64 s = widened<double>(load(scores + g));
    F64 c, targets;
    for (int i = 0; i < F64::PARTS; ++i) {
        const LossInputs input = [&]() RARESTREAM_INLINE_LAMBDA {
            if constexpr (Classes)
                return counted<D>(settings, state, g + i * STEP, row);
            else
                return LossInputs(row, at(own_means, i), at(other_means, i));
        }();
        const D mean = input.own_mean;
        D part = input.part;
        if constexpr (HalfLives) part = shares_in_means(part, row.all, at(decay->half_life + g, i));
        const D moved = mean + part * (s.part[i] - mean);
        if constexpr (Classes) {
            double *const a = state.means + g + i * STEP, *const b = a + settings.lanes;
            store_register(a, input.target > 0 ? moved : input.mean_of_others);
            store_register(b, input.target > 0 ? input.mean_of_others : moved);
        } else {
            store_register(own_means + i * STEP, moved);
        }
        targets.part[i] = input.target;
        if constexpr (EqualRates) continue;  // the loss is logistic
        const D error = margin_error(s.part[i], input.mean_of_others, input.y);
        c.part[i] =
            pairwise_slope(input.share, error) * (input.y * error > 0 ? 1.0 - at(settings.hinge + g, i) : broadcast(1.0));
    }
    if (EqualRates || settings.group_has_logistic[g / LANE_GROUP]) {
        double *const w0 = state.means + 2 * settings.lanes + g, *const n0 = w0 + settings.lanes;
        F64 weight, squares;
        for (int i = 0; i < F64::PARTS; ++i) {
            weight.part[i] = at(w0, i);
            const D slope = logistic_slope(s.part[i] + weight.part[i], targets.part[i]);
            if constexpr (EqualRates)
                c.part[i] = slope;
            else
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
    const double hu = row.repeated * row.u;
    F64 z_slope = c * hu;
    if constexpr (HalfLives) z_slope = z_slope * F64::load(decay->per_s + g);
    store(z_slopes + g, narrowed(z_slope));
    if constexpr (EqualRates) return;  // v grows by the same amount in all lanes
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
