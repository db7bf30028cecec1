// The loop of learners whose coordinate is a pair {z, n}, or one of these and a pair of counts, and whose step depends on
// the row only through x and the slope of the loss: gather the pairs of the row, score, ask the learner for the slope,
// step, scatter. All other learners: updater.hpp.
#pragma once

#include <cstdint>

#include "csr.hpp"
#include "simd.hpp"
#include "rows.hpp"
#include "tally.hpp"
#include "update_rules.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Prefetches the coordinates of rows to come. The distance hides the latency of main memory while what was fetched is still
// in the cache: 60 to 240 non-zeros measured best. For a table that fits in the L2 cache it only costs time.
class Prefetcher {
    static constexpr std::int64_t DISTANCE = 120, MIN_TABLE_BYTES = 1 << 20, LINE = 64;
    const char* table_;
    std::int64_t entry_bytes_;
    const std::int32_t* last_;  // the last index from which a whole vector can be prefetched; null: never

public:
    static constexpr std::int64_t READ_AHEAD = DISTANCE + LANES;  // indices that are read after those of a row

    RARESTREAM_ALWAYS_INLINE Prefetcher(const void* table, std::int64_t entry_bytes, std::int64_t size,
                                        const RowsView& rows)
        : table_(static_cast<const char*>(table)), entry_bytes_(entry_bytes), last_(nullptr) {
        const std::int64_t nonzeros = rows.indptr[rows.size];
        if (size * entry_bytes > MIN_TABLE_BYTES && nonzeros >= DISTANCE + LANES)
            last_ = rows.indices + nonzeros - DISTANCE - LANES;
    }

    // Prefetches the first cache line of the eight entries that are DISTANCE after `at`.
    RARESTREAM_ALWAYS_INLINE void prefetch(const std::int32_t* at) const {
        if (at > last_) return;
        for (int l = 0; l < LANES; ++l) __builtin_prefetch(table_ + at[DISTANCE + l] * entry_bytes_, 1, 3);
    }

    // Prefetches all lines of these entries, for entries of several lines.
    RARESTREAM_ALWAYS_INLINE void prefetch_all_lines(const std::int32_t* at) const {
        if (at > last_) return;
        for (int l = 0; l < LANES; ++l) {
            const char* const first = table_ + at[DISTANCE + l] * entry_bytes_;
            __builtin_prefetch(first, 1, 3);
            if (entry_bytes_ > LINE) __builtin_prefetch(first + LINE, 1, 3);
            for (std::int64_t b = 2 * LINE; b < entry_bytes_; b += LINE) __builtin_prefetch(first + b, 1, 3);
        }
    }

    // For a loop that prefetches itself: the indices DISTANCE after those of k entries, or these where there are no such.
    RARESTREAM_ALWAYS_INLINE const std::int32_t* ahead(const std::int32_t* at, std::int64_t k) const {
        return at + k - LANES <= last_ ? at + DISTANCE : at;
    }
};

// A step this large would give numbers whose squares, sums and products overflow; after 10^8 smaller steps none do.
template <class Real>
constexpr double STEP_LIMIT = sizeof(Real) == 4 ? 1e15 : 1e148;

// Whether weights grow with the square of a step: then its square is limited.
template <class Rule>
constexpr auto squares_steps(int) -> decltype(Rule::SQUARES_STEPS) {
    return Rule::SQUARES_STEPS;
}
template <class Rule>
constexpr bool squares_steps(...) {
    return false;
}

// By how much n of the state may exceed the root that it stands for (half_life.hpp); elsewhere it is that root. Where steps
// are squared the limit leaves room for it.
template <class Rule>
constexpr auto stored_size(int) -> decltype(Rule::STORED_SIZE) {
    return Rule::STORED_SIZE;
}
template <class Rule>
constexpr double stored_size(...) {
    return 1;
}

template <class Real, class Rule>
RARESTREAM_ALWAYS_INLINE bool exceeds_step_limit(double step) {
    return !((squares_steps<Rule>(0) ? step * step : step * stored_size<Rule>(0)) < STEP_LIMIT<Real>);
}

// While all scores are moderate so are the class means, and then the steps of rows of length and importance 1 are small.
constexpr double MODERATE = 1e6;

// Whether a row of this score, class means, squared length and importance would take a step that large. It is rarely
// reached, but inlined: around a call, the loop would keep its vectors in memory instead of registers.
template <class Real, class Rule>
RARESTREAM_ALWAYS_INLINE bool exceeds_step_limit(double s, double a, double b, double xx, double h) {
    const double slope = 2 + std::fabs(s) + std::fabs(a) + std::fabs(b), length = xx > 1 ? std::sqrt(xx) : 1;
    return !(h >= SMALLEST_IMPORTANCE) || exceeds_step_limit<Real, Rule>(length * slope * (h > 1 ? h : 1));
}

// Whether the slope of a learner's loss is often exactly 0; the learner then has `slope_without_branch` too.
template <class Learner>
constexpr auto has_hinge(int) -> decltype(Learner::HINGE) {
    return Learner::HINGE;
}
template <class Learner>
constexpr bool has_hinge(...) {
    return false;
}

// What is known after some rows.
struct Progress {
    Tally tally;
    bool small;             // the steps of all rows so far were small
    bool overflow = false;  // the step of the next row would overflow
    double period = -1;     // of learners with a half-life
};

// Short rows are learned apart, with what they gather in registers. As changing over takes time, it is done where several
// follow each other.
constexpr std::int64_t SHORT_ROW = 2 * LANES, SHORT_RUN = 8;

// Whether a row of so many entries is short and not empty.
RARESTREAM_ALWAYS_INLINE bool is_short(std::int64_t entries) {
    return static_cast<std::uint64_t>(entries - 1) < static_cast<std::uint64_t>(SHORT_ROW);
}

// The first row from row i on where several short ones begin; the number of rows if there is none.
inline std::int64_t next_short_rows(const RowsView& rows, std::int64_t i) {
    std::int64_t run = 0;
    for (; i < rows.size && run < SHORT_RUN; ++i)
        run = (run + 1) * is_short(rows.indptr[i + 1] - rows.indptr[i]);  // no branch: lengths cannot be predicted
    return run < SHORT_RUN ? rows.size : i - SHORT_RUN;
}

// A row of one or two groups of eight: what it gathers stays in registers until it is stored. Sixteen entries from its
// first on must be readable.
template <class Real, int GROUPS>
class ShortRow {
    using V = Vector<Real>;
    static constexpr std::int64_t LAST = (GROUPS - 1) * LANES;  // where the last group begins
    struct Group {
        V x, z, n, w;
    };
    const std::int32_t* const at_;
    const std::int64_t in_last_;  // entries of the last group
    Group first_, last_;          // not an array: the compiler would keep it in memory

public:
    explicit RARESTREAM_ALWAYS_INLINE ShortRow(const Row<Real>& row) : at_(row.at), in_last_(row.k - LAST) {
        if constexpr (GROUPS > 1) first_.x = widened<Real>(load(row.x));
        last_.x = widened<Real>(first_lanes(load(row.x + LAST), in_last_));
    }

    template <class Rule>
    RARESTREAM_ALWAYS_INLINE Dot gather(const Rule& rule, const Pair<Real>* pairs, const Prefetcher& prefetcher) {
        V wx = V::all(0), xx = V::all(0);
        const auto add = [&](Group& group, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
            prefetcher.prefetch(at);
            group.w = gather_weights(rule, pairs, at, group.z, group.n);
            wx = wx + group.w * group.x;
            xx = xx + group.x * group.x;
        };
        if constexpr (GROUPS > 1) add(first_, at_);
        add(last_, at_ + LAST);
        return {sum(wx), sum(xx), 1};
    }

    // c: the slope. HINGE: it may be 0, and then nothing changes.
    template <bool HINGE, class Rule>
    RARESTREAM_ALWAYS_INLINE void step(const Rule& rule, Pair<Real>* pairs, [[maybe_unused]] double c) {
        constexpr int PAIRS = pairs_of<Rule>(0);
        const auto stepped = [&](const Group& group) RARESTREAM_INLINE_LAMBDA {
            Group next = group;
            rule.step(next.z, next.n, group.w, group.x);
            if constexpr (HINGE) {
                next.z = if_not_zero(c, next.z, group.z);
                next.n = if_not_zero(c, next.n, group.n);
            }
            return next;
        };
        if constexpr (GROUPS > 1) {
            const Group next = stepped(first_);
            scatter_all<PAIRS>(pairs, at_, next.z, next.n);
        }
        const Group next = stepped(last_);
        scatter_some<PAIRS>(pairs, at_ + LAST, next.z, next.n, in_last_);
    }
};

// Learns rows from row i to row `end`, or as long as they are short. Returns the next row.
//
// Arguments are passed by value: the compiler must assume that storing a vector changes anything whose address is known,
// and would load every pointer and setting again after each store.
template <bool SHORT, class Learner, class Real>
__attribute__((noinline)) std::int64_t learn_some(std::int64_t i, std::int64_t end, Learner learner, State<Real> state,
                                                  RowsView rows, Scale scale, double* scores, RowScratch<Real> scratch,
                                                  Progress& progress) {
    using V = Vector<Real>;
    Pair<Real>* const pairs = state.pairs();
    float* const largest = state.largest;
    Tally tally = progress.tally;
    bool small = progress.small, overflow = false;
    auto rule = learner.template rule<Real>();
    using Rule = decltype(rule);
    constexpr int PAIRS = pairs_of<Rule>(0);
    constexpr bool decays = stored_size<Rule>(0) != 1;
    if constexpr (decays) rule.period = progress.period;
    const Prefetcher prefetcher(pairs, PAIRS * sizeof(Pair<Real>), state.size, rows);

    // Which slopes are 0 cannot be predicted: unless most are, a branch on that costs more than a step that changes
    // nothing. So rows are skipped whose slope is below a number that is 0, or the smallest above it.
    constexpr bool HINGE = has_hinge<Learner>(0);
    constexpr std::int64_t SAMPLE = 64;  // rows
    [[maybe_unused]] std::int64_t zeros = 0;
    [[maybe_unused]] double skipped_below = 0;

    // Learns a row that was scored; `step(c)` takes its step, where c is the slope. False: the step would overflow.
    const auto learn_scored = [&](const Row<Real>& row, const Dot& dot, auto&& step) RARESTREAM_INLINE_LAMBDA -> bool {
        const double s = scores[i] = dot.score();
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (h == 0) return true;  // such a row is scored, and changes nothing
        small = small && std::fabs(s) < MODERATE;
        if (!small &&
            exceeds_step_limit<Real, Rule>(s, tally.a, tally.b, scale == Scale::none ? dot.xx : 1, h * rows.repeats))
            return false;
        const bool positive = rows.labels[i] > 0;
        if constexpr (PAIRS > 1)
            count_features<PAIRS>(pairs + 1, row, positive, h, positive ? tally.n_pos : tally.n_neg, RoundingBits(tally));
        double c;
        if constexpr (SHORT && HINGE)
            c = learner.slope_without_branch(tally, s, positive, h);
        else
            c = learner.slope(tally, s, positive, h);
        if constexpr (!SHORT)
            if (row.exceeds_largest) rescale_gathered(Rule(rule), largest, row, scratch);  // a copy: its address is known
        if constexpr (SHORT && HINGE) {
            std::uint64_t bits;
            std::memcpy(&bits, &c, sizeof bits);
            zeros += bits << 1 == 0;  // not c == 0: compilers make a branch of that
            if (std::fabs(c) < skipped_below) return true;
        } else {
            if (c == 0 && !row.exceeds_largest) return true;
        }
        rule.set_slope(c, h * rows.repeats, dot.u);
        step(c);
        return true;
    };
    const auto begin_row = [&]() RARESTREAM_INLINE_LAMBDA {
        if constexpr (decays) rule.update_units(tally, pairs, state.size);
        rule.begin_row(tally);
    };

    if constexpr (SHORT) {
        const std::int64_t last_start = rows.indptr[rows.size] - SHORT_ROW;
        double squares = -1, per_norm = 0;  // of the row before: those of categories are often all the same
        const auto learn_short = [&](const Row<Real>& row, auto gathered) RARESTREAM_INLINE_LAMBDA -> bool {
            Dot dot = gathered.gather(rule, pairs, prefetcher);
            if (scale != Scale::none) {
                if (dot.xx != squares) {
                    if (!squares_reliable<Real>(dot.xx)) return false;
                    squares = dot.xx;
                    per_norm = 1 / std::sqrt(dot.xx);
                }
                dot.u = per_norm;
            }
            overflow = !learn_scored(
                row, dot, [&](double c) RARESTREAM_INLINE_LAMBDA { gathered.template step<HINGE>(rule, pairs, c); });
            return !overflow;
        };
        for (; i < end && rows.indptr[i] <= last_start; ++i) {
            const Row<Real> row(rows, i);
            if (!is_short(row.k)) break;
            if (HINGE && i % SAMPLE == 0) {
                skipped_below = 2 * zeros > SAMPLE ? 0x1p-1074 : 0.0;
                zeros = 0;
            }
            begin_row();
            if (!(row.k <= LANES ? learn_short(row, ShortRow<Real, 1>(row)) : learn_short(row, ShortRow<Real, 2>(row))))
                break;
        }
    } else {
        for (; i < end; ++i) {
            Row<Real> row(rows, i);
            begin_row();
            const Dot dot =
                with_scaling(row, scale, largest, scratch, [&](const Row<Real>& r) RARESTREAM_INLINE_LAMBDA -> Dot {
                    V wx = V::all(0), xx = V::all(0);
                    r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
                        prefetcher.prefetch(r.at + p);
                        V z, n;
                        const V w = gather_weights(rule, pairs, at, z, n);
                        wx = wx + w * x;
                        xx = xx + x * x;
                        store(scratch.x + p, x);
                        store(scratch.z + p, z);
                        store(scratch.n + p, n);
                        store(scratch.w + p, w);
                    });
                    return {sum(wx), sum(xx), 1};
                });
            overflow = !learn_scored(row, dot, [&](double c) RARESTREAM_INLINE_LAMBDA {
                for (std::int64_t p = 0; p < row.k; p += LANES) {
                    V z = load(scratch.z + p), n = load(scratch.n + p);
                    if (c != 0) rule.step(z, n, load(scratch.w + p), load(scratch.x + p));
                    scatter<PAIRS>(pairs, row.at + p, z, n, row.k - p);
                }
            });
            if (overflow) break;
        }
    }
    progress = {tally, small, overflow};
    if constexpr (decays) {
        if (i == rows.size) rule.update_units(tally, pairs, state.size);
        progress.period = rule.period;
    }
    return i;
}

// Learns every row in turn; scores[i] is row i's score before it was learned. Returns the number of rows learned: fewer
// than all when a row's values, its importance or its weights are so large that its step would overflow. That row is not
// learned.
template <class Learner, class Real>
std::int64_t learn(const Learner& learner, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
                   const RowScratch<Real>& scratch) {
    const Tally tally = Tally::read(state.tally);
    const bool small = scale != Scale::none && !rows.importances && rows.repeats <= 1 && std::fabs(tally.a) < MODERATE &&
                       std::fabs(tally.b) < MODERATE;
    Progress progress{tally, small};
    std::int64_t i = 0;
    while (i < rows.size && !progress.overflow) {
        if (scale != Scale::max) i = learn_some<true>(i, rows.size, learner, state, rows, scale, scores, scratch, progress);
        if (i == rows.size || progress.overflow) break;
        const std::int64_t end = scale != Scale::max ? next_short_rows(rows, i + 1) : rows.size;
        i = learn_some<false>(i, end, learner, state, rows, scale, scores, scratch, progress);
    }
    progress.tally.write(state.tally);
    return i;
}

// Scale::max: the gathered numbers were scaled by a largest value that this row exceeds.
template <class Rule, class Real>
inline void rescale_gathered(const Rule& rule, float* largest, const Row<Real>& row, const RowScratch<Real>& scratch) {
    for (std::int64_t p = 0; p < row.k; ++p) {
        scratch.z[p] *= scratch.rescale[p];
        scratch.n[p] *= scratch.rescale[p];
        const float size = std::fabs(row.x[p]);
        if (size > largest[row.at[p]]) largest[row.at[p]] = size;
    }
    for (std::int64_t p = 0; p < row.k; p += LANES)
        store(scratch.w + p, rule.weight(load(scratch.z + p), load(scratch.n + p)));
}

// Scores rows; `weights_at(coordinates)` gives eight weights. The order of summation is that of `learn`.
template <class Real, class WeightsAt>
RARESTREAM_ALWAYS_INLINE void score_rows(const Prefetcher& prefetcher, const float* largest, RowsView rows, Scale scale,
                                         double* scores, RowScratch<Real> scratch, WeightsAt&& weights_at) {
    using V = Vector<Real>;
    for (std::int64_t i = 0; i < rows.size; ++i) {
        Row<Real> row(rows, i);
        const Dot dot = with_scaling(row, scale, largest, scratch, [&](const Row<Real>& r) RARESTREAM_INLINE_LAMBDA -> Dot {
            V wx = V::all(0), xx = V::all(0);
            r.each([&](std::int64_t p, const V& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
                prefetcher.prefetch(r.at + p);
                wx = wx + weights_at(at) * x;
                xx = xx + x * x;
            });
            return {sum(wx), sum(xx), 1};
        });
        scores[i] = dot.score();
    }
}

// Scores rows with the weights in an array.
template <class Real>
void score(const Real* weights, std::int64_t size, const float* largest, const RowsView& rows, Scale scale, double* scores,
           const RowScratch<Real>& scratch) {
    const auto weights_at = [=](const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
        Real w[LANES];
        for (int l = 0; l < LANES; ++l) w[l] = weights[at[l]];
        return load(w);
    };
    const Prefetcher prefetcher(weights, sizeof(Real), size, rows);
    score_rows<Real>(prefetcher, largest, rows, scale, scores, scratch, weights_at);
}

// Scores rows with the weights computed from a learner's pairs.
template <class Learner, class Real>
void score(const Learner& learner, const State<Real>& state, const RowsView& rows, Scale scale, double* scores,
           const RowScratch<Real>& scratch) {
    auto rule = learner.template rule<Real>();
    rule.begin_row(Tally::read(state.tally));
    const Pair<Real>* pairs = state.pairs();
    const auto weights_at = [&](const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
        Vector<Real> z, n;
        return gather_weights(rule, pairs, at, z, n);
    };
    const Prefetcher prefetcher(pairs, pairs_of<decltype(rule)>(0) * sizeof(Pair<Real>), state.size, rows);
    score_rows<Real>(prefetcher, state.largest, rows, scale, scores, scratch, weights_at);
}

// The weight of every coordinate, for rows as the model scales them.
template <class Learner, class Real>
void weights(const Learner& learner, const State<Real>& state, Real* out) {
    auto rule = learner.template rule<Real>();
    rule.begin_row(Tally::read(state.tally));
    for (std::int64_t j = 0; j < state.size; j += LANES) {
        const int live = static_cast<int>(state.size - j < LANES ? state.size - j : LANES);
        std::int32_t at[LANES];
        Real w[LANES];
        for (int l = 0; l < LANES; ++l) at[l] = static_cast<std::int32_t>(j + (l < live ? l : 0));
        Vector<Real> z, n;
        store(w, gather_weights(rule, state.pairs(), at, z, n));
        for (int l = 0; l < live; ++l) out[j + l] = w[l] + Real(0);  // no negative zeros
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
