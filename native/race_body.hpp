// Many settings of the FTRL and dual-averaging learners side by side, in one pass over the rows. A coordinate holds the z
// of sixteen lanes, then their n, then those of the next sixteen (or the last eight): whole cache lines. A register holds
// one number of eight or sixteen lanes, so that a row is decoded once and nothing is gathered; and as a lane never meets
// another, every build and every number of lanes gives a setting the same bits.
//
// What a lane does is what learn.hpp, coordinates.hpp and learners/*.hpp do, but for the order in which a score is summed.
#pragma once

#include "coordinates.hpp"
#include "learn.hpp"
#include "race.hpp"
#include "reals.hpp"
#include "rows.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

#if defined(__AVX512F__)
constexpr int WIDEST = 64;
#else
constexpr int WIDEST = REGISTER;
#endif

template <int Bytes>
struct RegisterOf;
template <>
struct RegisterOf<16> {
    typedef float type __attribute__((vector_size(16)));
};
template <>
struct RegisterOf<32> {
    typedef float type __attribute__((vector_size(32)));
};
template <>
struct RegisterOf<64> {
    typedef float type __attribute__((vector_size(64)));
};

// One number of W lanes, spread over as many registers as the machine needs.
template <int W>
struct Bank {
    static constexpr int BYTES = W * 4 < WIDEST ? W * 4 : WIDEST, PARTS = W * 4 / BYTES;
    using Register = typename RegisterOf<BYTES>::type;
    Register part[PARTS];

    static RARESTREAM_INLINE Bank of(const float* p) {
        Bank b;
        for (int i = 0; i < PARTS; ++i) b.part[i] = read<Register>(p + i * (BYTES / 4));
        return b;
    }
    RARESTREAM_INLINE void put(float* p) const {
        for (int i = 0; i < PARTS; ++i) write(p + i * (BYTES / 4), part[i]);
    }
    static RARESTREAM_INLINE Bank all(float value) {
        Bank b;
        for (Register& r : b.part) r = value - Register{};
        return b;
    }
    template <class Do>
    static RARESTREAM_INLINE Bank each(const Bank& l, const Bank& r, Do&& act) {
        Bank out;
        for (int i = 0; i < PARTS; ++i) out.part[i] = act(l.part[i], r.part[i]);
        return out;
    }
    friend RARESTREAM_INLINE Bank operator+(const Bank& l, const Bank& r) {
        return each(l, r, [](Register a, Register b) RARESTREAM_MELT { return a + b; });
    }
    friend RARESTREAM_INLINE Bank operator-(const Bank& l, const Bank& r) {
        return each(l, r, [](Register a, Register b) RARESTREAM_MELT { return a - b; });
    }
    friend RARESTREAM_INLINE Bank operator*(const Bank& l, const Bank& r) {
        return each(l, r, [](Register a, Register b) RARESTREAM_MELT { return a * b; });
    }
    friend RARESTREAM_INLINE Bank operator/(const Bank& l, const Bank& r) {
        return each(l, r, [](Register a, Register b) RARESTREAM_MELT { return a / b; });
    }
};

template <int W>
RARESTREAM_INLINE Bank<W> root(Bank<W> v) {
    for (auto& r : v.part) {
#if defined(__AVX512F__)
        if constexpr (Bank<W>::BYTES == 64) {
            r = (typename Bank<W>::Register)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)r);
            continue;
        }
#endif
#if defined(__AVX2__)
        if constexpr (Bank<W>::BYTES == 32) r = (typename Bank<W>::Register)_mm256_sqrt_ps((__m256)r);
#elif defined(__SSE2__)
        r = (typename Bank<W>::Register)_mm_sqrt_ps((__m128)r);
#else
        for (int l = 0; l < Bank<W>::BYTES / 4; ++l) r[l] = std::sqrt(r[l]);
#endif
    }
    return v;
}

// A lane's weight, times -1 / gamma: soft(z, lambda) / (beta + n).
template <int W, bool L1>
RARESTREAM_INLINE Bank<W> lean(const Bank<W>& z, const Bank<W>& n, const Bank<W>& lam, const Bank<W>& beta) {
    if (!L1) return z / (beta + n);
    using R = typename Bank<W>::Register;
    const Bank<W> cut = Bank<W>::each(z, lam, [](R x, R top) RARESTREAM_MELT {
        const R low = -top, capped = x < top ? x : top;
        return capped > low ? capped : low;
    });
    return (z - cut) / (beta + n);
}

// <w, u x> of W lanes from g on. What `lean` gives is kept for a proximal step, which asks for it again.
template <int W, bool Proximal, bool L1>
inline void score_lanes(const RaceSettings& set, int g, const float* table, const Row<float>& row, const float* x, float u,
                        float* leans, float* scores) {
    using V = Bank<W>;
    const std::int64_t stride = 2 * set.lanes, k = row.k;
    const std::int32_t* const at = row.at;
    const float* const first = table + 2 * g;
    const V lam = V::of(set.lam + g), beta = V::of(set.beta + g);
    V sums = V::all(0);
    for (std::int64_t p = 0; p < k; ++p) {
        const float* const z = first + at[p] * stride;
        const V w = lean<W, L1>(V::of(z), V::of(z + W), lam, beta);
        if (Proximal) w.put(leans + p * W);
        sums = sums + w * V::all(x[p]);
    }
    (V::of(set.minus_gamma + g) * sums * V::all(u)).put(scores + g);
}

// z and n of W lanes from g on, after a row whose slopes move z by `move` x and v by `grow` x^2.
template <int W, bool Proximal>
inline void step_lanes(const RaceSettings& set, int g, float* table, const Row<float>& row, const float* x,
                       const float* leans, const float* move, const float* grow) {
    using V = Bank<W>;
    const std::int64_t stride = 2 * set.lanes, k = row.k;
    const std::int32_t* const at = row.at;
    float* const first = table + 2 * g;
    // w / gamma = -lean, so that z + (m - n) lean is z - (m - n) / gamma w.
    const V pull = V::of(set.pull + g);
    const V moves = V::of(move + g), grows = V::of(grow + g);
    for (std::int64_t p = 0; p < k; ++p) {
        float* const here = first + at[p] * stride;
        const V z = V::of(here), n = V::of(here + W), v = V::all(x[p]), m = root(n * n + grows * (v * v));
        V moved = z + moves * v;
        if (Proximal) moved = moved + (m - n) * (pull * V::of(leans + p * W));
        moved.put(here);
        m.put(here + W);
    }
}

typedef std::uint64_t WholeRegister __attribute__((vector_size(REGISTER)));

// 1 / (1 + exp(-x)): the arithmetic of reals.hpp without its branches.
RARESTREAM_INLINE DoubleRegister sigmoids(DoubleRegister x) {
    // 1.5 2^52: added, it rounds to a whole number, which stands in the low bits.
    const DoubleRegister magic = spread(6755399441055744.0), far = x < 0 ? x : -x;
    const DoubleRegister y = far > -708.0 ? far : spread(-708.0), whole = y * 1.4426950408889634 + magic, k = whole - magic;
    const DoubleRegister r = (y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    const DoubleRegister r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    const DoubleRegister p01 = 1.0 + r, p23 = 1.0 / 2 + r * (1.0 / 6), p45 = 1.0 / 24 + r * (1.0 / 120);
    const DoubleRegister p67 = 1.0 / 720 + r * (1.0 / 5040), p89 = 1.0 / 40320 + r * (1.0 / 362880);
    const DoubleRegister pab = 1.0 / 3628800 + r * (1.0 / 39916800), pcd = 1.0 / 479001600 + r * (1.0 / 6227020800);
    const DoubleRegister p = ((p01 + r2 * p23) + r4 * (p45 + r2 * p67)) + r8 * ((p89 + r2 * pab) + r4 * pcd);
    const DoubleRegister small = p * (DoubleRegister)(((WholeRegister)whole + 1023) << 52), share = 1.0 / (1.0 + small);
    return x >= 0 ? share : small * share;
}

RARESTREAM_INLINE F32 narrowed(const F64& v) {
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

// A row as the losses see it. `n` counts its class with it, `share` is that of the other class.
struct Met {
    bool positive;
    double h, n, share, u;
};

// What a row is to eight lanes from g on: the slopes of their losses at their scores; it moves their class means and
// intercepts.
inline void meet(const RaceSettings& set, const RaceState& state, int g, const Met& row, const float* scores, float* move,
                 float* grow) {
    using D = DoubleRegister;
    constexpr int STEP = REGISTER / 8;
    const auto at = [](const double* p, int i) RARESTREAM_MELT { return read<D>(p + i * STEP); };
    double* const mine = state.means + (row.positive ? 0 : set.lanes) + g;
    const double* const theirs = state.means + (row.positive ? set.lanes : 0) + g;
    const double y = row.positive ? 1 : -1, part = row.h / row.n, twice = 2 * row.share;
    const F64 s = widened<double>(load(scores + g));
    F64 c;
    for (int i = 0; i < F64::PARTS; ++i) {
        const D mean = at(mine, i), miss = s.part[i] - (at(theirs, i) + y);
        write(mine + i * STEP, mean + part * (s.part[i] - mean));
        c.part[i] = twice * miss * (y * miss > 0 ? 1.0 - at(set.hinge + g, i) : spread(1.0));
    }
    if (set.group_has_logistic[g / RACE_WIDTH]) {
        double *const w0 = state.means + 2 * set.lanes + g, *const n0 = w0 + set.lanes;
        const double truth = row.positive ? 1 : 0;
        F64 weight, squares;
        for (int i = 0; i < F64::PARTS; ++i) {
            weight.part[i] = at(w0, i);
            const D slope = sigmoids(s.part[i] + weight.part[i]) - truth;
            c.part[i] = at(set.logistic + g, i) > 0 ? slope : c.part[i];
            squares.part[i] = at(n0, i) * at(n0, i) + (at(set.rate + g, i) > 0 ? row.h * slope * slope : D{});
        }
        const F64 roots = root(squares);
        for (int i = 0; i < F64::PARTS; ++i) {
            write(n0 + i * STEP, roots.part[i]);
            write(w0 + i * STEP, weight.part[i] - at(set.rate + g, i) * row.h * c.part[i] / (at(set.start + g, i) + roots.part[i]));
        }
    }
    const double hu = row.h * row.u;
    store(move + g, narrowed(c * hu));
    // v grows with |c|^r: the powers in use without a branch. No slope, no growth, whatever r.
    const F32 slopes = narrowed(c);
    F32 size, powers;
    for (int i = 0; i < F32::PARTS; ++i) size.part[i] = slopes.part[i] < 0 ? -slopes.part[i] : slopes.part[i];
    const F32 roots = root(size);
    const float huu = static_cast<float>(hu * row.u);
    for (int i = 0; i < F32::PARTS; ++i) {
        const auto which = read<MaskRegister>(set.shape + g + i * (REGISTER / 4));
        const FloatRegister a = size.part[i], up = which == 2 ? a * a : roots.part[i], low = which == 0 ? spread(1.0f) : a;
        powers.part[i] = a > 0 ? (which < 2 ? low : up) * huu : FloatRegister{};
    }
    store(grow + g, powers);
    if (!set.any_odd) return;
    float all[LANES];
    store(all, slopes);
    for (int l = 0; l < LANES; ++l)
        if (set.shape[g + l] < 0 && all[l] != 0) grow[g + l] = power(all[l], set.power[g + l]) * huu;
}

// Calls wide(first lane) for every sixteen lanes, narrow for the eight that may be left.
template <class Wide, class Narrow>
RARESTREAM_INLINE void by_groups(int lanes, Wide&& wide, Narrow&& narrow) {
    int g = 0;
    for (; g + 16 <= lanes; g += 16) wide(g);
    if (g < lanes) narrow(g);
}

// Ahead of learn.hpp for coordinates of several cache lines.
class AheadOfLanes {
    static constexpr std::int64_t DISTANCE = 120, FROM_BYTES = 1 << 20, LINE = 64;
    const char* table_;
    std::int64_t bytes_;
    const std::int32_t* last_;

public:
    AheadOfLanes(const float* table, std::int64_t stride, std::int64_t size, const Rows& rows)
        : table_(reinterpret_cast<const char*>(table)), bytes_(stride * static_cast<std::int64_t>(sizeof(float))),
          last_(nullptr) {
        const std::int64_t nonzeros = rows.indptr[rows.size];
        if (size * bytes_ > FROM_BYTES && nonzeros >= DISTANCE + LANES) last_ = rows.indices + nonzeros - DISTANCE - LANES;
    }
    RARESTREAM_INLINE void look(const std::int32_t* at) const {
        if (at > last_) return;
        for (int l = 0; l < LANES; ++l) {
            const char* const first = table_ + at[DISTANCE + l] * bytes_;
            __builtin_prefetch(first, 1, 3);
            if (bytes_ > LINE) __builtin_prefetch(first + LINE, 1, 3);
            for (std::int64_t b = 2 * LINE; b < bytes_; b += LINE) __builtin_prefetch(first + b, 1, 3);
        }
    }
};

// Looks for steps of some lane that would leave numbers whose squares, sums and products overflow: the bound of learn.hpp. Means
// are of scores, so while all of these are moderate the means are, and then a row's length and importance alone say that all
// is well.
class StepBound {
    static constexpr float MODERATE = 1e6f;
    const RaceSettings& set_;
    const double *const a_, *const b_;
    bool moderate_ = true;

public:
    StepBound(const RaceSettings& set, const RaceState& state) : set_(set), a_(state.means), b_(a_ + set.lanes) {
        for (int l = 0; l < set.lanes; ++l) moderate_ &= std::fabs(a_[l]) < MODERATE && std::fabs(b_[l]) < MODERATE;
    }

    // With the scores of a row and its length times its importance.
    bool passed(const float* scores, double length) {
        bool moderate = true;
        for (int l = 0; l < set_.lanes; ++l) moderate &= std::fabs(scores[l]) < MODERATE;
        moderate_ &= moderate;
        if (moderate_ && length * (2 + 3 * double(MODERATE)) < BOUND<float>) return false;
        for (int l = 0; l < set_.lanes; ++l) {
            const double slope = 2 + std::fabs(double(scores[l])) + std::fabs(a_[l]) + std::fabs(b_[l]);
            if (!(length * slope < BOUND<float>)) return true;
        }
        return false;
    }
};

template <bool Proximal, bool L1>
std::int64_t learn_lanes(const RaceSettings& set, const RaceState& state, const Rows& rows, Scale scale, float* scores,
                         const Scratch<float>& scratch, float* leans) {
    const std::int64_t stride = 2 * set.lanes;
    const AheadOfLanes ahead(state.table, stride, state.size, rows);
    StepBound bound(set, state);
    float move[RACE_MOST], grow[RACE_MOST];
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<float> row(rows, i);
        const Dot dot = scaled(row, scale, state.largest, scratch, [&](const Row<float>& r) RARESTREAM_MELT -> Dot {
            F32 xx = F32::all(0);
            r.each([&](std::int64_t p, const F32& x, const std::int32_t*) RARESTREAM_MELT {
                ahead.look(r.at + p);
                xx = xx + x * x;
                store(scratch.x + p, x);
            });
            return {0, sum(xx), 1};
        });
        float* const said = scores + i * set.lanes;
        const float u = static_cast<float>(dot.u);
        const auto leans_of = [&](int g) { return Proximal ? leans + row.k * g : nullptr; };
        const auto score_all = [&] {
            by_groups(
                set.lanes,
                [&](int g) { score_lanes<16, Proximal, L1>(set, g, state.table, row, scratch.x, u, leans_of(g), said); },
                [&](int g) { score_lanes<8, Proximal, L1>(set, g, state.table, row, scratch.x, u, leans_of(g), said); });
        };
        score_all();
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) continue;  // scored, and leaves no trace
        const double length = scale == Scale::none && dot.xx > 1 ? std::sqrt(dot.xx) : 1;
        if (!(h >= SMALLEST_IMPORTANCE) || bound.passed(said, length * (h > 1 ? h : 1))) return i;
        const bool positive = rows.labels[i] > 0;
        double &n = state.counts[positive ? 0 : 1], others = state.counts[positive ? 1 : 0];
        n += h;
        const Met met{positive, h, n, others / (n + others), dot.u};
        for (int g = 0; g < set.lanes; g += RACE_WIDTH) meet(set, state, g, met, said, move, grow);
        if (row.grew) {
            for (std::int64_t p = 0; p < row.k; ++p) {
                if (scratch.shrink[p] == 1) continue;
                float* all = state.table + row.at[p] * stride;
                for (std::int64_t l = 0; l < stride; ++l) all[l] *= scratch.shrink[p];
                state.largest[row.at[p]] = std::fabs(row.x[p]);
            }
            if (Proximal) {  // weights as they now stand; the scores stay
                float before[RACE_MOST];
                std::memcpy(before, said, static_cast<std::size_t>(set.lanes) * sizeof(float));
                score_all();
                std::memcpy(said, before, static_cast<std::size_t>(set.lanes) * sizeof(float));
            }
        }
        by_groups(
            set.lanes,
            [&](int g) { step_lanes<16, Proximal>(set, g, state.table, row, scratch.x, leans_of(g), move, grow); },
            [&](int g) { step_lanes<8, Proximal>(set, g, state.table, row, scratch.x, leans_of(g), move, grow); });
    }
    return rows.size;
}

inline std::int64_t race_learn(const RaceSettings& set, const RaceState& state, const Rows& rows, Scale scale, float* scores,
                               const Scratch<float>& scratch, float* leans) {
    const auto kernel = set.any_proximal ? (set.any_l1 ? learn_lanes<true, true> : learn_lanes<true, false>)
                                         : (set.any_l1 ? learn_lanes<false, true> : learn_lanes<false, false>);
    return kernel(set, state, rows, scale, scores, scratch, leans);
}

// The order of summation is that of learn.hpp.
inline void race_score(const RaceSettings& set, const RaceState& state, int lane, const Rows& rows, Scale scale,
                       double* scores, const Scratch<float>& scratch) {
    const int first = lane / 16 * 16, width = set.lanes - first < 16 ? set.lanes - first : 16;
    const std::int64_t stride = 2 * set.lanes;
    const float* const z_of = state.table + first + lane;
    const float* const n_of = z_of + width;
    const float gamma = -set.minus_gamma[lane], lam = set.lam[lane], beta = set.beta[lane];
    const Ahead ahead(z_of, stride * static_cast<std::int64_t>(sizeof(float)), state.size, rows);
    score_rows<float>(ahead, state.largest, rows, scale, scores, scratch,
                      [&](const std::int32_t* at) RARESTREAM_MELT {
                          float z[LANES], n[LANES];
                          for (int l = 0; l < LANES; ++l) {
                              z[l] = z_of[at[l] * stride];
                              n[l] = n_of[at[l] * stride];
                          }
                          return weight_of(load(z), load(n), gamma, lam, beta);
                      });
}

RaceKernels race_kernels() { return {race_learn, race_score}; }

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
