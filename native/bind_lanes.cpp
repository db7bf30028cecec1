// Python bindings of lanes: many settings learned in one pass.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "half_life.hpp"
#include "kernel_arguments.hpp"
#include "lanes/types.hpp"
#include "platform.hpp"
#include "prepared_rows.hpp"
#include "slot_table.hpp"

namespace rarestream {

std::int64_t wait_for_entries(const std::atomic<std::int64_t>& ready, std::int64_t wanted) {
    constexpr int AT_ONCE = 64;  // times to look before the core is left to others
    for (int looks = 0;; ++looks) {
        const std::int64_t found = ready.load(std::memory_order_acquire);
        if (found < 0 || found >= wanted) return found;
        if (looks >= AT_ONCE) std::this_thread::yield();
    }
}

inline namespace portable {
LaneKernels lane_kernels();
}
#ifdef RARESTREAM_HAS_AVX2
namespace avx2 {
LaneKernels lane_kernels();
}
namespace avx512 {
LaneKernels lane_kernels();
}
#endif

namespace {

// The kernels of an instruction set, by default ("") the fastest of this machine.
LaneKernels kernels_of(const std::string& isa) {
#ifdef RARESTREAM_HAS_AVX2
    if ((isa.empty() && use_avx2 && cpu_has_avx512()) || (isa == "avx512" && cpu_has_avx512()))
        return avx512::lane_kernels();
    if ((isa.empty() && use_avx2) || (isa == "avx2" && avx2_available())) return avx2::lane_kernels();
#endif
    if (!isa.empty() && isa != "portable")
        throw std::invalid_argument("this machine has no instruction set called '" + isa + "'");
    return portable::lane_kernels();
}

// The settings of one lane, as `Learner.lane()` returns them.
struct LaneSetting {
    Loss loss;
    double gamma, lam, l2, beta, r, q, kappa, p;
    bool intercept;
    double half_life;
    bool mean_gradient;
};

// The sums z that give coordinates of a lane some weights, after so many rows. Where the two classes have a feature alike,
// evidence makes its weight small whatever z is: it counts as MIN_FACTOR at least, as z would grow without bound.
class SumsForWeights {
    static constexpr double MIN_FACTOR = 0.1;
    const double q_, p_, n_pos_, n_neg_;
    double rate_, threshold_, smooth_;

public:
    SumsForWeights(const LaneSetting& setting, double n_pos, double n_neg)
        : q_(setting.q), p_(setting.p), n_pos_(n_pos), n_neg_(n_neg) {
        const double half_life = setting.half_life;
        const DecayedUnits units(half_life > 0 ? n_pos + n_neg : 0, half_life > 0 ? half_life : 1);
        rate_ = units.gamma(setting.gamma, q_);
        threshold_ = units.lam(setting.lam);
        smooth_ = units.beta(setting.beta + setting.gamma * setting.l2);
    }

    static constexpr std::size_t TOGETHER = 64;  // coordinates
    struct Coordinates {
        double weight[TOGETHER], root[TOGETHER], positives[TOGETHER], negatives[TOGETHER];  // the last two: that have it
    };

    // Writes the sums in place of the weights of so many coordinates. Loops without branches, which become vectors.
    void replace_weights(Coordinates& some, std::size_t count) const {
        double factor[TOGETHER], g[TOGETHER];
        for (double& one : factor) one = 1;
        if (p_ > 0) {
            for (std::size_t i = 0; i < count; ++i) {
                const double a = (some.positives[i] + 1) / (n_pos_ + 1), b = (some.negatives[i] + 1) / (n_neg_ + 1);
                factor[i] = std::fabs(a - b) / std::sqrt(a * b);
            }
            raise(factor, count, p_);
            for (std::size_t i = 0; i < count; ++i) factor[i] = factor[i] < MIN_FACTOR ? MIN_FACTOR : factor[i];
        }
        for (std::size_t i = 0; i < count; ++i) g[i] = std::fabs(some.weight[i]) / rate_ / factor[i];
        if (q_ > 0) raise(g, count, 1 / (1 + q_));
        for (std::size_t i = 0; i < count; ++i) {
            const double z = g[i] * (smooth_ + some.root[i]) + (g[i] > 0 ? threshold_ : 0);
            some.weight[i] = some.weight[i] > 0 ? -z : z;
        }
    }

private:
    static void raise(double* numbers, std::size_t count, double to) {
        if (to == 0.5)
            for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sqrt(numbers[i]);
        else if (to != 1)
            for (std::size_t i = 0; i < count; ++i) numbers[i] = power(numbers[i], to);
    }
};

class LaneKernel {
    LaneSettings settings_{};

public:
    explicit LaneKernel(const std::vector<LaneSetting>& settings) {
        if (settings.empty() || settings.size() > MAX_LANES)
            throw std::invalid_argument("a kernel has 1 to " + std::to_string(MAX_LANES) + " lanes");
        settings_.lanes = static_cast<int>((settings.size() + LANE_GROUP - 1) / LANE_GROUP * LANE_GROUP);
        for (int l = 0; l < settings_.lanes; ++l) {
            const LaneSetting& one =
                settings[static_cast<std::size_t>(l) < settings.size() ? static_cast<std::size_t>(l) : 0];
            const bool logistic = one.loss == Loss::logistic;
            const double r = one.r;
            if (one.q != 0 && one.q != 0.5 && one.q != 1) throw std::invalid_argument("a lane has the power 0, 1/2 or 1");
            if (one.p != 0 && one.p != 0.5 && one.p != 1)
                throw std::invalid_argument("a lane has the evidence 0, 1/2 or 1");
            settings_.minus_gamma[l] = static_cast<float>(-one.gamma);
            settings_.lam[l] = static_cast<float>(one.lam);
            settings_.beta[l] = static_cast<float>(one.beta + one.gamma * one.l2);
            settings_.proximal[l] = static_cast<float>(one.kappa);
            settings_.weight_power[l] = static_cast<float>(one.q);
            settings_.evidence[l] = static_cast<float>(one.p);
            settings_.hinge[l] = one.loss == Loss::pairwise_hinge;
            settings_.logistic[l] = logistic;
            settings_.intercept_rate[l] = logistic && one.intercept ? one.gamma : 0;
            settings_.intercept_beta[l] = one.beta;
            settings_.power[l] = r;
            settings_.power_code[l] = r == 0     ? POWER_0
                                      : r == 1   ? POWER_1
                                      : r == 2   ? POWER_2
                                      : r == 0.5 ? POWER_HALF
                                                 : POWER_OTHER;
            settings_.mean_gradient[l] = one.mean_gradient;
            settings_.any_mean_gradient |= one.mean_gradient;
            settings_.half_lives.rows[l] = one.half_life;
            settings_.half_lives.gamma[l] = one.gamma;
            settings_.half_lives.lam[l] = one.lam;
            settings_.half_lives.beta[l] = one.beta + one.gamma * one.l2;
            settings_.any_half_life |= one.half_life > 0;
            settings_.any_l1 |= one.lam > 0;
            settings_.any_proximal |= one.kappa != 0;
            settings_.any_weight_power |= one.q != 0;
            settings_.any_evidence |= one.p != 0;
            settings_.group_has_logistic[l / LANE_GROUP] |= logistic;
            WeightPowers& powers = settings_.group_powers[l / LANE_GROUP];
            if (one.q != 0) powers = std::max(powers, one.q == 1 ? WeightPowers::whole : WeightPowers::half);
            settings_.any_other_power |= settings_.power_code[l] == POWER_OTHER;
        }
    }

    int lanes() const { return settings_.lanes; }

    using OptionalCounts = std::optional<PairsArray>;
    using Table = LaneTable;
    using Means = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Scores = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;

    std::int64_t learn(Table table, InOut<double> counts, Means means, OptionalCounts having, OptionalLargest largest,
                       std::optional<InOut<float>> rates, const BlockArgument& block, Scale scale, Scores scores,
                       const std::string& isa, const std::optional<In<std::int32_t>>& classes, double repeats) const {
        BorrowedRows borrowed(block, table.shape(0));
        borrowed.repeat(repeats);
        if (classes) {
            if (settings_.any_evidence || settings_.any_half_life)
                throw std::invalid_argument("lanes that are classes have neither evidence nor a half-life");
            if (rates && !equal_rates())
                throw std::invalid_argument("classes have equal rates with the logistic loss and the rate power 0 only");
            borrowed.borrow_classes(block, *classes);
        } else {
            borrowed.borrow_labels(block);
        }
        check_having(having, table.shape(0));
        const LaneState state = checked_state(table, counts, means, having, largest, rates, scale, classes.has_value());
        const LaneScores wanted = checked_scores(scores, borrowed.rows.size);
        const LaneLearn kernel = kernels_of(isa).learn;
        nb::gil_scoped_release released;
        borrowed.copy_unless_sealed();
        return run(kernel, state, borrowed.rows, scale, wanted);
    }

    // Learns the prepared rows from one on, which are settings' own, not classes'.
    std::int64_t learn_prepared(Table table, InOut<double> counts, Means means, OptionalLargest largest,
                                const PreparedRows& prepared, std::int64_t first, Scale scale, Scores scores,
                                const std::string& isa) const {
        RowsView rows = prepared.view(first);
        if (first < 0 || static_cast<std::int64_t>(table.shape(0)) < prepared.slots() ||
            (settings_.any_evidence && !prepared.has_evidence()))
            throw std::invalid_argument("lanes: the rows were prepared for others");
        rows.first = std::min(first, rows.size);
        const LaneState state = checked_state(table, counts, means, std::nullopt, largest, std::nullopt, scale, false);
        LaneScores wanted = checked_scores(scores, -1);
        rows.size = std::min(rows.size, rows.first + static_cast<std::int64_t>(scores.shape(0)));
        const LaneLearn kernel = kernels_of(isa).learn;
        nb::gil_scoped_release released;
        return run(kernel, state, rows, scale, wanted);
    }

    // Adds the weights of coordinates from `first` on, as many as `out` has, under all lanes, each times its share.
    void add_weights(Table table, InOut<double> counts, OptionalCounts having, In<double> shares, std::size_t first,
                     InOut<double> out) const {
        if (table.shape(1) != 2 * static_cast<std::size_t>(settings_.lanes) || counts.size() != 2 ||
            shares.size() > static_cast<std::size_t>(settings_.lanes) || first > table.shape(0) ||
            out.size() > table.shape(0) - first)
            throw std::invalid_argument("lanes: the shapes of the arrays do not match");
        check_having(having, table.shape(0));
        const LaneState state{
            table.data(), static_cast<std::int64_t>(table.shape(0)), pairs_in(having), nullptr, counts.data(), nullptr,
            nullptr};
        const LaneAddWeights kernel = kernels_of("").add_weights;
        nb::gil_scoped_release released;
        constexpr std::size_t TOGETHER = 1024;  // coordinates that stay in a cache from one lane to the next
        for (std::size_t start = 0; start < out.size(); start += TOGETHER)
            for (std::size_t lane = 0; lane < shares.size(); ++lane)
                if (shares.data()[lane] != 0)
                    kernel(settings_, state, static_cast<int>(lane), shares.data()[lane],
                           static_cast<std::int64_t>(first + start),
                           static_cast<std::int64_t>(std::min(TOGETHER, out.size() - start)), out.data() + start);
    }

    // Writes the numbers of one lane at coordinates from `first` on into the table of a Model of its setting, under the
    // numbers of their features; with `weights`, its sums z are those that give these.
    template <class Real>
    void write_alone(Table table, InOut<double> counts, OptionalCounts having, int lane, const LaneSetting& setting,
                     std::size_t first, In<std::int32_t> features, std::optional<In<double>> weights,
                     nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) const {
        const std::size_t n = features.size(), columns = out.shape(1);
        if (table.shape(1) != 2 * static_cast<std::size_t>(settings_.lanes) || counts.size() != 2 || lane < 0 ||
            lane >= settings_.lanes || first > table.shape(0) || n > table.shape(0) - first ||
            (weights && weights->size() != n) || columns != (setting.p > 0 ? 4 : 2))
            throw std::invalid_argument("lanes: the shapes of the arrays do not match, or there is no such lane");
        check_having(having, table.shape(0));
        for (std::size_t i = 0; i < n; ++i)
            if (features.data()[i] < 0 || static_cast<std::size_t>(features.data()[i]) >= out.shape(0))
                throw std::invalid_argument("lanes: a feature has no place");
        const LaneColumns own = columns_of(settings_.lanes, lane);
        const Pair<float>* const pairs = columns == 4 ? pairs_in(having) : nullptr;
        const SumsForWeights sums(setting, counts.data()[0], counts.data()[1]);
        nb::gil_scoped_release released;
        SumsForWeights::Coordinates some{};
        for (std::size_t start = 0; start < n; start += SumsForWeights::TOGETHER) {
            const std::size_t count = std::min(SumsForWeights::TOGETHER, n - start);
            const float* const from = table.data() + (first + start) * table.shape(1);
            for (std::size_t i = 0; i < count; ++i) {
                some.weight[i] = weights ? weights->data()[start + i] : 0;
                some.root[i] = from[i * table.shape(1) + static_cast<std::size_t>(own.n)];
                if (pairs) some.positives[i] = pairs[first + start + i].z, some.negatives[i] = pairs[first + start + i].n;
            }
            if (weights) sums.replace_weights(some, count);
            for (std::size_t i = 0; i < count; ++i) {
                Real* const to = out.data() + static_cast<std::size_t>(features.data()[start + i]) * columns;
                to[0] = weights ? static_cast<Real>(some.weight[i])
                                : Real{from[i * table.shape(1) + static_cast<std::size_t>(own.z)]};
                to[1] = static_cast<Real>(some.root[i]);
                if (pairs) to[2] = static_cast<Real>(some.positives[i]), to[3] = static_cast<Real>(some.negatives[i]);
            }
        }
    }

    std::int64_t score(Table table, InOut<double> counts, OptionalCounts having, OptionalLargest largest, int lane,
                       const BlockArgument& block, Scale scale, InOut<double> scores) const {
        BorrowedRows borrowed(block, table.shape(0));
        RowsView& rows = borrowed.rows;
        if (scores.size() != static_cast<std::size_t>(rows.size) ||
            table.shape(1) != 2 * static_cast<std::size_t>(settings_.lanes) || counts.size() != 2 || lane < 0 ||
            lane >= settings_.lanes)
            throw std::invalid_argument("lanes: the shapes of the arrays do not match, or there is no such lane");
        check_scale(scale, largest, table.shape(0));
        check_having(having, table.shape(0));
        const LaneState state{table.data(),     static_cast<std::int64_t>(table.shape(0)),
                              pairs_in(having), largest ? largest->data() : nullptr,
                              counts.data(),    nullptr,
                              nullptr};
        const LaneScore kernel = kernels_of("").score;
        nb::gil_scoped_release released;
        borrowed.copy_unless_sealed();
        RowScratchBuffer<float> memory;
        kernel(settings_, state, lane, rows, scale, scores.data(), memory.scratch(rows));
        return first_without_score(scores.data(), rows.size, static_cast<std::int64_t>(scores.size()));
    }

private:
    LaneState checked_state(const Table& table, const InOut<double>& counts, const Means& means,
                            const OptionalCounts& having, const OptionalLargest& largest,
                            const std::optional<InOut<float>>& rates, Scale scale, bool classes) const {
        const std::size_t lanes = static_cast<std::size_t>(settings_.lanes);
        if (table.shape(1) != (rates ? (lanes + 15) / 16 * 16 : 2 * lanes) ||
            (rates && (!classes || rates->size() != table.shape(0))) || counts.size() != (classes ? 2 * lanes : 2) ||
            means.shape(0) != 4 || means.shape(1) != lanes)
            throw std::invalid_argument("lanes: the shapes of the arrays do not match");
        check_scale(scale, largest, table.shape(0));
        return {table.data(),
                static_cast<std::int64_t>(table.shape(0)),
                pairs_in(having),
                largest ? largest->data() : nullptr,
                counts.data(),
                means.data(),
                rates ? rates->data() : nullptr};
    }

    // Scores of so many rows; -1: of any number.
    LaneScores checked_scores(const Scores& scores, std::int64_t rows) const {
        if ((rows >= 0 && scores.shape(0) != static_cast<std::size_t>(rows)) ||
            scores.shape(1) > static_cast<std::size_t>(settings_.lanes) ||
            (scores.size() && scores.shape(1) > 1 && scores.stride(1) != 1))
            throw std::invalid_argument("lanes: the shapes of the arrays do not match");
        return {scores.data(), scores.stride(0), static_cast<int>(scores.shape(1))};
    }

    std::int64_t run(LaneLearn kernel, const LaneState& state, const RowsView& rows, Scale scale,
                     const LaneScores& scores) const {
        RowScratchBuffer<float> memory;
        const RowScratch<float> scratch = memory.scratch(rows);
        const bool keeps_weights =
            settings_.any_proximal || settings_.any_weight_power || settings_.any_evidence || settings_.any_half_life;
        std::vector<float> scaled_weights(keeps_weights ? memory.longest * static_cast<std::size_t>(settings_.lanes) : 0);
        return kernel(settings_, state, rows, scale, scores, scratch, scaled_weights.data());
    }

    // Whether n is the same for all lanes: v grows by the same amount whatever a slope is, and no lane looks at it
    // otherwise.
    bool equal_rates() const {
        bool equal = !settings_.any_proximal && !settings_.any_weight_power;
        for (int l = 0; l < settings_.lanes; ++l)
            equal = equal && settings_.logistic[l] > 0 && settings_.power_code[l] == POWER_0 &&
                    settings_.beta[l] == settings_.beta[0];
        return equal;
    }
    static Pair<float>* pairs_in(const OptionalCounts& having) {
        return having ? reinterpret_cast<Pair<float>*>(having->data()) : nullptr;
    }
    void check_having(const OptionalCounts& having, std::size_t slots) const {
        if (settings_.any_evidence && !(having && having->shape(0) >= slots && having->shape(1) == 2))
            throw std::invalid_argument("lanes with evidence need two counts for each coordinate");
    }
};

// The slots of some features, which are given out in the order in which features first come. `slot_of` has the slot of each
// feature, 0: none yet; `features` has the feature of each slot, from slot 1 on, `used` slots are. With `add`, new features
// get a slot, and the number of used slots grows; else theirs is slot 0. An index that is not below `width`, which only
// rows have that others can write to, becomes -1: a kernel refuses its row. Returns the slots and their number.
nb::tuple compact_slots(In<std::int32_t> indices, std::int64_t width, InOut<std::int32_t> slot_of,
                        InOut<std::int32_t> features, std::int64_t used, bool add) {
    const std::size_t n = indices.size(), known = slot_of.size();
    const std::int32_t* const from = indices.data();
    auto out = pooled<std::int32_t>(n + 1);
    bool fits = used >= 0 && static_cast<std::size_t>(used) < features.size();
    {
        nb::gil_scoped_release released;
        const std::size_t limit = std::min(known, static_cast<std::size_t>(std::max<std::int64_t>(width, 0)));
        SlotTable table(slot_of.data(), std::min<std::size_t>(limit, INT32_MAX), features.data(), features.size(), used,
                        add);
        for (std::size_t i = 0; (i = table.find(from, i, n, out.get())) < n && fits; ++i) {
            const std::int32_t index = from[i];
            const std::size_t j = static_cast<std::size_t>(index);
            const bool wrong = index < 0 || index >= width || (add && j >= known);
            out[i] = wrong ? -1 : j < limit ? table.slot(static_cast<std::uint32_t>(index)) : 0;
            fits = wrong || out[i] >= 0;
        }
        used = table.used();
    }
    if (!fits) throw std::invalid_argument("compact_slots: there is no room for a feature");
    return nb::make_tuple(read_only(std::move(out), n), used);
}

// Copies columns of tables that have the same rows, as if these stood side by side, into a table of as many columns, each
// times its factor; zeros are left as they are, so that memory nobody has touched stays so.
template <class Real>
void pick_columns(const std::vector<Matrix<float>>& tables, In<std::int32_t> columns, In<float> factors,
                  nb::ndarray<Real, nb::ndim<2>, nb::device::cpu> into) {
    struct Source {
        const float* first;
        std::size_t stride;
        float factor;
    };
    std::vector<Source> sources;
    const std::size_t rows = into.shape(0), wanted = columns.size();
    if (wanted != into.shape(1) || wanted != factors.size() || (into.size() && wanted > 1 && into.stride(1) != 1))
        throw std::invalid_argument("pick_columns: the shapes of the arrays do not match");
    for (std::size_t j = 0; j < wanted; ++j) {
        std::size_t left = static_cast<std::size_t>(std::max(columns.data()[j], 0)), t = 0;
        while (t < tables.size() && left >= tables[t].shape(1)) left -= tables[t++].shape(1);
        if (columns.data()[j] < 0 || t == tables.size() || tables[t].shape(0) != rows)
            throw std::invalid_argument("pick_columns: the shapes of the arrays do not match");
        sources.push_back({tables[t].data() + left, tables[t].shape(1), factors.data()[j]});
    }
    nb::gil_scoped_release released;
    for (std::size_t i = 0; i < rows; ++i) {
        Real* const to = into.data() + static_cast<std::int64_t>(i) * into.stride(0);
        for (std::size_t j = 0; j < wanted; ++j) {
            const float number = sources[j].first[i * sources[j].stride];
            std::uint32_t bits;
            std::memcpy(&bits, &number, sizeof bits);
            if (bits) to[j] = number * sources[j].factor;
        }
    }
}

// The sum of the numbers of each row, one per setting, each times the share of its setting: those of share 0 left out, the
// others added in their order.
nb::object mix(Matrix<float> numbers, In<double> shares) {
    const std::size_t rows = numbers.shape(0), settings = numbers.shape(1);
    if (shares.size() != settings) throw std::invalid_argument("mix: there must be a share for each setting");
    std::unique_ptr<double[]> out(new double[rows]);
    {
        nb::gil_scoped_release released;
        std::vector<std::pair<std::size_t, double>> mixed;
        for (std::size_t one = 0; one < settings; ++one)
            if (shares.data()[one] != 0) mixed.emplace_back(one, shares.data()[one]);
        for (std::size_t i = 0; i < rows; ++i) {
            const float* const own = numbers.data() + i * settings;
            double total = 0;
            for (const auto& [one, share] : mixed) total += share * static_cast<double>(own[one]);
            out[i] = total;
        }
    }
    return nb::cast(owned(std::move(out), rows));
}

// By what the sums z and the roots n of a state without a half-life are multiplied after so many rows, so that the state
// is one with a half-life.
nb::tuple half_life_units(double rows, double half_life) {
    const DecayedUnits units(rows, half_life);
    return nb::make_tuple(units.per_s, units.per_root);
}

}  // namespace

void bind_lanes(nb::module_& m) {
    m.attr("MAX_LANES") = MAX_LANES;
    m.attr("LANE_GROUP") = LANE_GROUP;
    m.def("compact_slots", &compact_slots, no_convert(), no_convert(), no_convert(), no_convert(), no_convert(),
          no_convert());
    m.def("pick_columns", &pick_columns<float>, no_convert(), no_convert(), no_convert(), no_convert());
    m.def("pick_columns", &pick_columns<double>, no_convert(), no_convert(), no_convert(), no_convert());
    m.def("mix", &mix, no_convert(), no_convert());
    m.def("half_life_units", &half_life_units, no_convert(), no_convert());
    nb::enum_<Loss>(m, "Loss")
        .value("pairwise_square", Loss::pairwise_square)
        .value("pairwise_hinge", Loss::pairwise_hinge)
        .value("logistic", Loss::logistic);
    nb::class_<LaneSetting>(m, "LaneSetting")
        .def(nb::init<Loss, double, double, double, double, double, double, double, double, bool, double, bool>(),
             nb::kw_only(), no_convert("loss"), no_convert("learning_rate"), no_convert("l1"), no_convert("l2"),
             no_convert("beta"), no_convert("rate_power"), no_convert("power"), no_convert("proximal"),
             no_convert("evidence"), no_convert("intercept"), no_convert("half_life"), no_convert("mean_gradient"));
    nb::class_<PreparedRows>(m, "PreparedRows")
        .def(
            "__init__",
            [](PreparedRows* place, const BlockArgument& block, InOut<std::int32_t> slot_of, InOut<std::int32_t> features,
               std::int64_t slots, std::int64_t used, const std::optional<PairsArray>& having, double positives,
               double negatives) {
                new (place) PreparedRows(block, slot_of, features, slots, used, having, positives, negatives,
                                         kernels_of("").evidence_of_rows);
            },
            no_convert(), no_convert(), no_convert(), no_convert(), no_convert(), no_convert().none(), no_convert(),
            no_convert())
        .def(
            "prepare",
            [](PreparedRows& rows, const std::vector<LaneTable>& tables) {
                nb::gil_scoped_release released;
                rows.prepare(tables);
            },
            no_convert())
        .def("take_back", &PreparedRows::take_back, no_convert())
        .def("count_again", &PreparedRows::count_again, no_convert())
        .def_prop_ro("used", &PreparedRows::used);
    nb::class_<LaneKernel>(m, "LaneKernel")
        .def(nb::init<const std::vector<LaneSetting>&>(), no_convert())
        .def_prop_ro("lanes", &LaneKernel::lanes)
        .def("learn", &LaneKernel::learn, no_convert(), no_convert(), no_convert(), no_convert().none(),
             no_convert().none(), no_convert().none(), no_convert(), enum_arg(), no_convert(), no_convert() = "",
             no_convert().none() = nb::none(), no_convert() = 1.0)
        .def("learn_prepared", &LaneKernel::learn_prepared, no_convert(), no_convert(), no_convert(), no_convert().none(),
             no_convert(), no_convert(), enum_arg(), no_convert(), no_convert() = "")
        .def("add_weights", &LaneKernel::add_weights, no_convert(), no_convert(), no_convert().none(), no_convert(),
             no_convert(), no_convert())
        .def("write_alone", &LaneKernel::write_alone<float>, no_convert(), no_convert(), no_convert().none(), no_convert(),
             no_convert(), no_convert(), no_convert(), no_convert().none(), no_convert())
        .def("write_alone", &LaneKernel::write_alone<double>, no_convert(), no_convert(), no_convert().none(), no_convert(),
             no_convert(), no_convert(), no_convert(), no_convert().none(), no_convert())
        .def("score", &LaneKernel::score, no_convert(), no_convert(), no_convert().none(), no_convert().none(),
             no_convert(), no_convert(), enum_arg(), no_convert());
}

}  // namespace rarestream
