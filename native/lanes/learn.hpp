// Many settings of the FTRL and dual-averaging learners side by side, in one pass over the rows. A coordinate holds z of
// sixteen lanes, then their n, then those of the next sixteen (or the last eight): whole cache lines. Lanes do not depend
// on one another, so every build and every number of lanes gives a setting the same bits.
//
// A lane learns as learn.hpp does, except for the order in which a score is summed.
#pragma once

#include "../learn.hpp"
#include "../rows.hpp"
#include "half_life.hpp"
#include "prepare.hpp"
#include "slopes.hpp"
#include "step.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// A number of lanes, for functions that are templates of it.
template <int W>
struct Width {
    static constexpr int value = W;
};

// Calls f(Width, first lane) for every sixteen lanes, and for the last eight if there are such.
template <class Function>
RARESTREAM_ALWAYS_INLINE void for_each_group(int lanes, Function&& f) {
    int g = 0;
    for (; g + 16 <= lanes; g += 16) f(Width<16>{}, g);
    if (g < lanes) f(Width<LANE_GROUP>{}, g);
}

// Calls f(Width, Width, first lane) for lanes two groups at a time: sixteen and sixteen, eight or none, or eight.
template <class Function>
RARESTREAM_ALWAYS_INLINE void for_each_pair(int lanes, Function&& f) {
    int g = 0;
    for (; g + 32 <= lanes; g += 32) f(Width<16>{}, Width<16>{}, g);
    if (lanes - g == 24) f(Width<16>{}, Width<8>{}, g);
    if (lanes - g == 16) f(Width<16>{}, Width<0>{}, g);
    if (lanes - g == 8) f(Width<8>{}, Width<0>{}, g);
}

// The class of a row as numbers of lanes: 1 for its lane, 0 for all others.
class PositiveLane {
    double flags_[MAX_LANES] = {};
    std::int32_t lane_ = 0;

public:
    const double* of(std::int32_t lane, int lanes) {
        flags_[lane_] = 0;
        if (0 <= lane && lane < lanes) flags_[lane_ = lane] = 1;
        return flags_;
    }
};

// Whether the step of some lane would exceed STEP_LIMIT of learn.hpp. While all scores are moderate so are the class means,
// and then the row's length and importance alone decide.
class LaneStepLimit {
    static constexpr float MODERATE = 1e6f;
    const LaneSettings& settings_;
    const double *const a_, *const b_;
    bool moderate_ = true;

public:
    LaneStepLimit(const LaneSettings& settings, const LaneState& state)
        : settings_(settings), a_(state.means), b_(a_ + settings.lanes) {
        for (int l = 0; l < settings.lanes; ++l) moderate_ &= std::fabs(a_[l]) < MODERATE && std::fabs(b_[l]) < MODERATE;
    }

    // length: of the row, times its importance.
    bool exceeded(const float* scores, double length) {
        for (int g = 0; g < settings_.lanes; g += LANE_GROUP) moderate_ &= all_below(load(scores + g), MODERATE);
        const double largest = length * (2 + 3 * double(MODERATE));
        if (moderate_ && fits(largest, settings_.any_mean_gradient, settings_.any_half_life)) return false;
        for (int l = 0; l < settings_.lanes; ++l) {
            const double slope = 2 + std::fabs(double(scores[l])) + std::fabs(a_[l]) + std::fabs(b_[l]);
            if (!fits(length * slope, settings_.mean_gradient[l], settings_.half_lives.rows[l] > 0)) return true;
        }
        return false;
    }

private:
    // As exceeds_step_limit of learn.hpp: the rules that multiply z / (beta + n) by gamma are those that square steps.
    static bool fits(double step, bool squared, bool decays) {
        return (squared ? step * step : decays ? step * LARGEST_PER_ROOT : step) < STEP_LIMIT<float>;
    }
};

// Rows that another thread prepares while they are learned.
class RowsAwaited {
    const RowsView& rows_;
    const std::int64_t all_;
    std::int64_t ready_;  // entries

public:
    explicit RowsAwaited(const RowsView& rows)
        : rows_(rows), all_(rows.indptr[rows.size]), ready_(rows.ready ? 0 : INT64_MAX) {}

    // Waits for a row and for what is read ahead of it; false if it will not come.
    RARESTREAM_ALWAYS_INLINE bool row(std::int64_t i) {
        const std::int64_t ahead = rows_.indptr[i + 1] + Prefetcher::READ_AHEAD, wanted = ahead < all_ ? ahead : all_;
        if (ready_ < wanted) ready_ = wait_for_entries(*rows_.ready, wanted);
        return ready_ >= 0;
    }
};

template <LaneKind Kind, bool Proximal, bool L1, bool HasEvidence, bool HalfLives>
std::int64_t learn_lanes(const LaneSettings& settings_of_lanes, const LaneState& state, const RowsView& rows, Scale scale,
                         const LaneScores& scores, const RowScratch<float>& scratch, float* scaled_weights) {
    LaneDecay<HalfLives> decay(settings_of_lanes, state);
    const LaneSettings& settings = decay.settings();  // in the units of the row
    constexpr bool Classes = Kind != LaneKind::settings, EqualRates = Kind == LaneKind::equal_rates;
    const std::int64_t stride = EqualRates ? equal_rates_stride(settings) : 2 * settings.lanes;
    const Prefetcher prefetcher(state.table, stride * static_cast<std::int64_t>(sizeof(float)), state.size, rows);
    const Prefetcher count_prefetcher(state.having, sizeof(Pair<float>), HasEvidence ? state.size : 0, rows);
    LaneStepLimit limit(settings, state);
    float z_slopes[MAX_LANES], v_slopes[MAX_LANES], row_scores[MAX_LANES] = {};
    const std::size_t wanted_bytes = static_cast<std::size_t>(scores.wanted) * sizeof(float);
    PositiveLane positive_lane;
    RowsAwaited awaited(rows);
    for (std::int64_t i = rows.first; i < rows.size; ++i) {
        decay.begin_row();
        if (!awaited.row(i)) return i - rows.first;
        Row<float> row(rows, i);
        const Evidence<float> evidence(state.counts[0], state.counts[1]);
        const Dot dot =
            with_scaling(row, scale, state.largest, scratch, [&](const Row<float>& r) RARESTREAM_INLINE_LAMBDA -> Dot {
                F32 xx = F32::all(0);
                r.each([&](std::int64_t p, const F32& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
                    if (EqualRates) prefetcher.prefetch_all_lines(r.at + p);
                    xx = xx + x * x;
                    store(scratch.x + p, x);
                    if (EqualRates) {
                        const F32 n = gather_numbers(state.rates, at);
                        store(scratch.n + p, n);
                        store(scratch.z + p, x / (settings.beta[0] + n));
                    }
                    if (!HasEvidence || rows.evidence) return;
                    count_prefetcher.prefetch(r.at + p);
                    F32 positives, negatives;
                    gather(state.having, at, positives, negatives);
                    const F32 found = evidence.of(positives, negatives);
                    store(scratch.z + p, found);
                    store(scratch.w + p, square_root(found));
                });
                return {0, sum(xx), 1};
            });
        LaneRow values{scratch.x, scratch.z, scratch.w};
        if (HasEvidence && rows.evidence) {
            const EvidenceArrays own = rows.evidence->from(rows.indptr[i]);
            values.evidence = own.evidence;
            values.root = own.root;
        }
        const float u = static_cast<float>(dot.u);
        const std::int32_t* const ahead = prefetcher.ahead(row.at, row.k);
        const auto weights_of = [&](int g) { return Proximal ? scaled_weights + row.k * g : nullptr; };
        const auto score_all = [&] {
            if constexpr (EqualRates)
                for_each_pair(settings.lanes, [&](auto one, auto more, int g) {
                    score_equal_rates<decltype(one)::value, decltype(more)::value, L1>(settings, g, state.table, row,
                                                                                       scratch.z, u, row_scores);
                });
            else
                for_each_group(settings.lanes, [&](auto width, int g) {
                    constexpr int W = decltype(width)::value;
                    const auto score = pick_score<W, Proximal, L1, HasEvidence>(powers_of<W>(settings, g));
                    score(settings, g, state.table, row, ahead, values, u, weights_of(g), row_scores);
                });
        };
        score_all();
        std::memcpy(scores.first + (i - rows.first) * scores.stride, row_scores, wanted_bytes);
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) continue;  // such a row is scored, and changes nothing
        const double repeated = h * rows.repeats;
        const double length = scale == Scale::none && dot.xx > 1 ? std::sqrt(dot.xx) : 1;
        if (!(h >= SMALLEST_IMPORTANCE) || limit.exceeded(row_scores, length * (repeated > 1 ? repeated : 1)))
            return i - rows.first;
        const LossInput input = [&]() -> LossInput {
            if (Classes) return {false, h, 0, 0, 0, dot.u, repeated, positive_lane.of(rows.classes[i], settings.lanes)};
            const bool positive = rows.labels[i] > 0;
            double &n = state.counts[positive ? 0 : 1], others = state.counts[positive ? 1 : 0];
            if (HasEvidence && !rows.evidence)
                count_features<1>(state.having, row, positive, h, n, RoundingBits(n + others));
            n += h;
            return {positive, h, n, n + others, others / (n + others), dot.u, repeated};
        }();
        const DecayFactors* const factors = decay.factors(h);
        for (int g = 0; g < settings.lanes; g += LANE_GROUP)
            loss_slopes<Kind, HalfLives>(settings, state, g, input, factors, row_scores, z_slopes, v_slopes);
        if (row.exceeds_largest) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                if (scratch.rescale[p] == 1) continue;
                float* all = state.table + row.at[p] * stride;
                for (std::int64_t l = 0; l < stride; ++l) all[l] *= scratch.rescale[p];
                if (EqualRates) scratch.n[p] *= scratch.rescale[p];
                state.largest[row.at[p]] = std::fabs(row.x[p]);
            }
            if (Proximal) score_all();  // the step needs the weights as they are now
        }
        decay.prepare_next_row();
        if constexpr (EqualRates) {
            step_rates(state.rates, row, scratch.x, scratch.n, static_cast<float>(h * (dot.u * dot.u)));
            for_each_pair(settings.lanes, [&](auto one, auto more, int g) {
                step_equal_rates<decltype(one)::value, decltype(more)::value>(settings, g, state.table, row, scratch.x,
                                                                              z_slopes);
            });
        } else {
            for_each_group(settings.lanes, [&](auto width, int g) {
                step_lanes<decltype(width)::value, Proximal>(settings, g, state.table, row, scratch.x, weights_of(g),
                                                             z_slopes, v_slopes);
            });
        }
    }
    decay.begin_row();
    return rows.size - rows.first;
}

// What fits lanes without evidence and half-lives.
template <LaneKind Kind>
LaneLearn pick_plain_lanes(const LaneSettings& settings) {
    const bool l1 = settings.any_l1;
    if (settings.any_proximal || settings.any_weight_power)
        return l1 ? learn_lanes<Kind, true, true, false, false> : learn_lanes<Kind, true, false, false, false>;
    return l1 ? learn_lanes<Kind, false, true, false, false> : learn_lanes<Kind, false, false, false, false>;
}

inline std::int64_t learn_any_lanes(const LaneSettings& settings, const LaneState& state, const RowsView& rows, Scale scale,
                                    const LaneScores& scores, const RowScratch<float>& scratch, float* scaled_weights) {
    const bool l1 = settings.any_l1, evidence = settings.any_evidence;
    constexpr LaneKind one = LaneKind::settings, classes = LaneKind::classes, equal = LaneKind::equal_rates;
    const auto kernel =
        settings.any_half_life
            ? (evidence ? (l1 ? learn_lanes<one, true, true, true, true> : learn_lanes<one, true, false, true, true>)
                        : (l1 ? learn_lanes<one, true, true, false, true> : learn_lanes<one, true, false, false, true>))
        : evidence ? (l1 ? learn_lanes<one, true, true, true, false> : learn_lanes<one, true, false, true, false>)
        : state.rates
            ? (l1 ? learn_lanes<equal, false, true, false, false> : learn_lanes<equal, false, false, false, false>)
        : rows.classes ? pick_plain_lanes<classes>(settings)
                       : pick_plain_lanes<one>(settings);
    return kernel(settings, state, rows, scale, scores, scratch, scaled_weights);
}

// The weights of one lane, bit for bit those of a Model with its state.
class LaneWeights {
    const std::int64_t stride_;
    const float *const z_, *const n_;
    const Pair<float>* const having_;
    EvidenceRule<float> rule_;
    const bool plain_;

    static WeightSettings settings_now(const LaneSettings& settings, const LaneState& state, int lane) {
        const double half_life = settings.half_lives.rows[lane];
        if (half_life > 0) return {settings, lane, DecayedUnits(state.counts[0] + state.counts[1], half_life)};
        return {-settings.minus_gamma[lane], settings.lam[lane], settings.beta[lane]};
    }

    LaneWeights(const LaneSettings& settings, const LaneState& state, int lane, const WeightSettings& now)
        : stride_(2 * settings.lanes), z_(state.table + columns_of(settings.lanes, lane).z),
          n_(state.table + columns_of(settings.lanes, lane).n), having_(state.having),
          rule_({{now.gamma, now.lam, now.beta, 0}, settings.weight_power[lane], 0}, settings.evidence[lane]),
          plain_(!settings.mean_gradient[lane]) {
        if (rule_.p > 0) rule_.evidence = {state.counts[0], state.counts[1]};
    }

public:
    LaneWeights(const LaneSettings& settings, const LaneState& state, int lane)
        : LaneWeights(settings, state, lane, settings_now(settings, state, lane)) {}

    const float* table() const { return z_; }
    std::int64_t bytes() const { return stride_ * static_cast<std::int64_t>(sizeof(float)); }

    // Of eight coordinates.
    RARESTREAM_ALWAYS_INLINE F32 operator()(const std::int32_t* at) const {
        const F32 z = gather_numbers(z_, at, stride_), n = gather_numbers(n_, at, stride_);
        const F32 w = plain_ ? weight_of(z, n, rule_.gamma, rule_.lam, rule_.beta) : rule_.weight(z, n);
        if (!(rule_.p > 0)) return w;
        F32 positives, negatives;
        gather(having_, at, positives, negatives);
        return w * rule_.factor(positives, negatives);
    }
};

// Scores with the weights of one lane. The order of summation is that of learn.hpp.
inline void score_one_lane(const LaneSettings& settings, const LaneState& state, int lane, const RowsView& rows,
                           Scale scale, double* scores, const RowScratch<float>& scratch) {
    const LaneWeights weights(settings, state, lane);
    const Prefetcher prefetcher(weights.table(), weights.bytes(), state.size, rows);
    score_rows<float>(prefetcher, state.largest, rows, scale, scores, scratch,
                      [&](const std::int32_t* at) RARESTREAM_INLINE_LAMBDA { return weights(at); });
}

// Adds the weights of n coordinates from `first` on under one lane, times its share.
inline void add_weights(const LaneSettings& settings, const LaneState& state, int lane, double share, std::int64_t first,
                        std::int64_t n, double* out) {
    const LaneWeights weights(settings, state, lane);
    for (std::int64_t i = 0; i < n; i += LANES) {
        std::int32_t at[LANES];
        float found[LANES];
        for (int l = 0; l < LANES; ++l) at[l] = static_cast<std::int32_t>(first + (i + l < n ? i + l : n - 1));
        store(found, weights(at));
        for (int l = 0; l < LANES && i + l < n; ++l) out[i + l] += share * static_cast<double>(found[l]);
    }
}

LaneKernels lane_kernels() { return {learn_any_lanes, score_one_lane, add_weights, evidence_of_rows}; }

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
