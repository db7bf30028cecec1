// Scores and steps of a row for several lanes at a time. A vector holds one number of eight or sixteen lanes, so the row is
// decoded once and nothing is gathered.
#pragma once

#include "../rows.hpp"
#include "../simd.hpp"
#include "../update_rules.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

#if defined(__AVX512F__)
constexpr int WIDEST_REGISTER = 64;  // bytes
#else
constexpr int WIDEST_REGISTER = REGISTER;
#endif

template <int Bytes>
struct FloatRegisterOf;
template <>
struct FloatRegisterOf<16> {
    typedef float type __attribute__((vector_size(16)));
};
template <>
struct FloatRegisterOf<32> {
    typedef float type __attribute__((vector_size(32)));
};
template <>
struct FloatRegisterOf<64> {
    typedef float type __attribute__((vector_size(64)));
};

// One number of W lanes.
template <int W>
using LaneVector = VectorOf<float, typename FloatRegisterOf<(W * 4 < WIDEST_REGISTER ? W * 4 : WIDEST_REGISTER)>::type, W>;

// The weight of a lane divided by -gamma, without its power: soft_threshold(z, lambda) / (beta + n). The factor is left to
// the row's sum.
template <bool L1, class V>
RARESTREAM_ALWAYS_INLINE V scaled_weight(const V& z, const V& n, const V& lam, const V& beta) {
    if (!L1) return z / (beta + n);
    return soft_threshold(z, lam) / (beta + n);
}

// x |x|^q of every lane, each with a q of its own: 0, 1/2 or 1.
template <WeightPowers Powers, class V>
RARESTREAM_ALWAYS_INLINE V powered(const V& x, const V& q) {
    if constexpr (Powers == WeightPowers::none) return x;
    V size, low = V::all(1), out;
    for (int i = 0; i < V::PARTS; ++i) size.part[i] = x.part[i] < 0 ? -x.part[i] : x.part[i];
    if constexpr (Powers == WeightPowers::half) {
        const V roots = square_root(size);
        for (int i = 0; i < V::PARTS; ++i) low.part[i] = q.part[i] > 0.25f ? roots.part[i] : low.part[i];
    }
    for (int i = 0; i < V::PARTS; ++i) out.part[i] = x.part[i] * (q.part[i] > 0.75f ? size.part[i] : low.part[i]);
    return out;
}

// evidence^p of every lane, each with a p of its own: 0, 1/2 or 1.
template <class V>
RARESTREAM_ALWAYS_INLINE V evidence_factor(float evidence, float root, const V& p) {
    V out;
    const V whole = V::all(evidence), half = V::all(root), one = V::all(1);
    for (int i = 0; i < V::PARTS; ++i) {
        const auto low = p.part[i] > 0.25f ? half.part[i] : one.part[i];
        out.part[i] = p.part[i] > 0.75f ? whole.part[i] : low;
    }
    return out;
}

// The values of a row and the evidence of its features with its root; null where no lane has evidence.
struct LaneRow {
    const float *x, *evidence, *root;
};

// <w, u x> of the W lanes from g on. Scaled weights are kept for a proximal step, which needs them again. The numbers of
// coordinates `ahead` are prefetched one by one: divisions take longer, while many at once would have to wait.
template <int W, bool Proximal, bool L1, WeightPowers Powers, bool HasEvidence>
inline void score_lanes(const LaneSettings& settings, int g, const float* table, const Row<float>& row,
                        const std::int32_t* ahead, const LaneRow& values, float u, float* scaled_weights, float* scores) {
    using V = LaneVector<W>;
    const std::int64_t stride = 2 * settings.lanes, k = row.k;
    const std::int32_t* const at = row.at;
    const float* const first = table + 2 * g;
    const auto [x, evidence, root] = values;
    const V lam = V::load(settings.lam + g), beta = V::load(settings.beta + g);
    const V weight_power = V::load(settings.weight_power + g), p_evidence = V::load(settings.evidence + g);
    V sums = V::all(0);
    for (std::int64_t p = 0; p < k; ++p) {
        const float *const z = first + at[p] * stride, *const later = first + ahead[p] * stride;
        __builtin_prefetch(later, 1, 3);
        if (W == 16) __builtin_prefetch(later + W, 1, 3);
        const V w = scaled_weight<L1>(V::load(z), V::load(z + W), lam, beta);
        if (Proximal) w.store(scaled_weights + p * W);
        V wx = powered<Powers>(w, weight_power) * V::all(x[p]);
        if (HasEvidence) wx = wx * evidence_factor(evidence[p], root[p], p_evidence);
        sums = sums + wx;
    }
    (V::load(settings.minus_gamma + g) * sums * V::all(u)).store(scores + g);
}

// The powers of the W lanes from g on.
template <int W>
RARESTREAM_ALWAYS_INLINE WeightPowers powers_of(const LaneSettings& settings, int g) {
    const WeightPowers* const groups = settings.group_powers + g / LANE_GROUP;
    return W > LANE_GROUP && groups[1] > groups[0] ? groups[1] : groups[0];
}

// score_lanes for lanes with such powers.
template <int W, bool Proximal, bool L1, bool HasEvidence>
RARESTREAM_ALWAYS_INLINE auto pick_score(WeightPowers powers) {
    if constexpr (!Proximal)
        return score_lanes<W, Proximal, L1, WeightPowers::none, HasEvidence>;  // lanes with a power are not here
    else
        return powers == WeightPowers::none    ? score_lanes<W, Proximal, L1, WeightPowers::none, HasEvidence>
               : powers == WeightPowers::whole ? score_lanes<W, Proximal, L1, WeightPowers::whole, HasEvidence>
                                               : score_lanes<W, Proximal, L1, WeightPowers::half, HasEvidence>;
}

// How many numbers of the table a coordinate has, for classes with equal rates: whole cache lines.
RARESTREAM_ALWAYS_INLINE std::int64_t equal_rates_stride(const LaneSettings& settings) {
    return (settings.lanes + 15) / 16 * 16;
}

// The sums of W lanes from g on, and their step, for classes with equal rates; nothing where W is 0.
template <int W, bool L1>
struct EqualRatesSums {
    using V = LaneVector<W>;
    const LaneSettings& settings;
    const int g;
    const V lam;
    V sums[4];

    RARESTREAM_ALWAYS_INLINE EqualRatesSums(const LaneSettings& settings_, int g_)
        : settings(settings_), g(g_), lam(V::load(settings_.lam + g_)), sums{V::all(0), V::all(0), V::all(0), V::all(0)} {}
    RARESTREAM_ALWAYS_INLINE void add(int i, const float* z, float x) {
        const V own = V::load(z + g);
        sums[i] = sums[i] + (L1 ? soft_threshold(own, lam) : own) * V::all(x);
    }
    RARESTREAM_ALWAYS_INLINE void store(float u, float* scores) const {
        const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        (V::load(settings.minus_gamma + g) * all * V::all(u)).store(scores + g);
    }
};
template <bool L1>
struct EqualRatesSums<0, L1> {
    EqualRatesSums(const LaneSettings&, int) {}
    void add(int, const float*, float) {}
    void store(float, float*) const {}
};
template <int W>
struct EqualRatesStep {
    using V = LaneVector<W>;
    const int g;
    const V slope;

    RARESTREAM_ALWAYS_INLINE EqualRatesStep(int g_, const float* z_slopes) : g(g_), slope(V::load(z_slopes + g_)) {}
    RARESTREAM_ALWAYS_INLINE void take(float* z, float x) const { (V::load(z + g) + slope * V::all(x)).store(z + g); }
};
template <>
struct EqualRatesStep<0> {
    EqualRatesStep(int, const float*) {}
    void take(float*, float) const {}
};

// The numbers of some coordinates, which are `stride` apart. Not by way of memory: a vector can be loaded from there only
// later.
RARESTREAM_ALWAYS_INLINE F32 gather_numbers(const float* from, const std::int32_t* at, std::int64_t stride = 1) {
    const auto number = [&](int l) RARESTREAM_INLINE_LAMBDA { return from[at[l] * stride]; };
#if defined(__AVX2__)
    F32 out;
    out.part[0] = (FloatRegister)_mm256_setr_ps(number(0), number(1), number(2), number(3), number(4), number(5), number(6),
                                                number(7));
    return out;
#else
    float found[LANES];
    for (int l = 0; l < LANES; ++l) found[l] = number(l);
    return load(found);
#endif
}

// The scores of the W lanes from g on for classes with equal rates, and of W2 lanes more: the row is read once for both.
// `per_rate` has the values of the row, each divided by beta + n of its coordinate. Four sums of a lane, so that one need
// not wait for the other.
template <int W, int W2, bool L1>
inline void score_equal_rates(const LaneSettings& settings, int g, const float* table, const Row<float>& row,
                              const float* per_rate, float u, float* scores) {
    const std::int64_t stride = equal_rates_stride(settings), k = row.k;
    const std::int32_t* const at = row.at;
    EqualRatesSums<W, L1> one(settings, g);
    EqualRatesSums<W2, L1> more(settings, g + W);
    std::int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
        for (int i = 0; i < 4; ++i) {
            const float *const z = table + at[p + i] * stride, x = per_rate[p + i];
            one.add(i, z, x);
            more.add(i, z, x);
        }
    }
    for (; p < k; ++p) {
        one.add(0, table + at[p] * stride, per_rate[p]);
        more.add(0, table + at[p] * stride, per_rate[p]);
    }
    one.store(u, scores);
    more.store(u, scores);
}

// The step of z of these classes.
template <int W, int W2>
inline void step_equal_rates(const LaneSettings& settings, int g, float* table, const Row<float>& row, const float* x,
                             const float* z_slopes) {
    const std::int64_t stride = equal_rates_stride(settings), k = row.k;
    const std::int32_t* const at = row.at;
    const EqualRatesStep<W> one(g, z_slopes);
    const EqualRatesStep<W2> more(g + W, z_slopes);
    for (std::int64_t p = 0; p < k; ++p) {
        float* const z = table + at[p] * stride;
        one.take(z, x[p]);
        more.take(z, x[p]);
    }
}

// The step of n = sqrt(v) of the coordinates of a row, which had the roots `n`: v grows by v_slope x^2.
inline void step_rates(float* rates, const Row<float>& row, const float* x, const float* n, float v_slope) {
    for (std::int64_t p = 0; p < row.k; p += LANES) {
        const F32 values = load(x + p), before = load(n + p);
        float after[LANES];
        store(after, square_root(before * before + v_slope * (values * values)));
        for (int l = 0; l < LANES && p + l < row.k; ++l) rates[row.at[p + l]] = after[l];
    }
}

// Updates z and n of the W lanes from g on: the step of dual averaging, and in proximal lanes (FTRL) the term of the old
// weight.
template <int W, bool Proximal>
inline void step_lanes(const LaneSettings& settings, int g, float* table, const Row<float>& row, const float* x,
                       const float* scaled_weights, const float* z_slopes, const float* v_slopes) {
    using V = LaneVector<W>;
    const std::int64_t stride = 2 * settings.lanes, k = row.k;
    const std::int32_t* const at = row.at;
    float* const first = table + 2 * g;
    const V proximal = V::load(settings.proximal + g);
    const V z_slope = V::load(z_slopes + g), v_slope = V::load(v_slopes + g);
    for (std::int64_t p = 0; p < k; ++p) {
        float* const here = first + at[p] * stride;
        V z = V::load(here), n = V::load(here + W);
        const V before = n;
        dual_averaging_step(z, n, z_slope, v_slope, V::all(x[p]));
        // The scaled weight is -w / gamma, so this is z - (n - before) w / gamma, as in FtrlRule of update_rules.hpp.
        if (Proximal) z = z + (n - before) * (proximal * V::load(scaled_weights + p * W));
        z.store(here);
        n.store(here + W);
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
