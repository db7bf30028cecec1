// Lanes with a half-life, beside others without: what half_life.hpp says, with numbers of its own for each lane.
#pragma once

#include "../half_life.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// The settings of a lane that its weights depend on, in the units of its state.
struct WeightSettings {
    float gamma, lam, beta;

    WeightSettings(float gamma_, float lam_, float beta_) : gamma(gamma_), lam(lam_), beta(beta_) {}
    WeightSettings(const LaneSettings& settings, int lane, const DecayedUnits& units)
        : gamma(static_cast<float>(units.gamma(settings.half_lives.gamma[lane], settings.weight_power[lane]))),
          lam(static_cast<float>(units.lam(settings.half_lives.lam[lane]))),
          beta(static_cast<float>(units.beta(settings.half_lives.beta[lane]))) {}
};

// By what the row changes lanes, in their units; 1 for lanes without a half-life.
struct DecayFactors {
    double per_s[MAX_LANES], n0[MAX_LANES];  // of the slopes, of the root of the intercept's squares
    double half_life[MAX_LANES];             // very large for lanes without
};

// The shares of a row in the mean scores of its class under several lanes: share_in_mean, without a branch.
RARESTREAM_ALWAYS_INLINE DoubleRegister shares_in_means(DoubleRegister share, double all, DoubleRegister half_lives) {
    const DoubleRegister excess = (LOG_2 * all) / half_lives, one = broadcast(1.0);
    const DoubleRegister found = share * (excess > one ? excess : one);
    return found < one ? found : one;
}

// What learn_lanes asks for. Without half-lives (false) it has the settings of lanes as they are, and does nothing.
template <bool HalfLives>
class LaneDecay {
    const LaneSettings& settings_;

public:
    LaneDecay(const LaneSettings& settings, const LaneState&) : settings_(settings) {}
    const LaneSettings& settings() const { return settings_; }
    const DecayFactors* factors(double) { return nullptr; }
    void begin_row() {}
    void prepare_next_row() {}
};

template <>
class LaneDecay<true> {
    static constexpr double NEVER = 1e300;
    static constexpr int AHEAD = 8;  // rows whose units are computed together
    struct Group {                   // lanes with the same half-life
        double half_life, period = -1;
        double per_root[AHEAD];  // of the units at `times_`
        int count = 0, lanes[MAX_LANES];
    };

    LaneSettings settings_;
    const LaneState& state_;
    DecayFactors factors_;
    Group groups_[MAX_LANES];
    int group_count_ = 0;
    double time_ = -1, importance_ = -1;
    double next_period_ = -1;  // the time until which no lane comes to a new period
    double times_[AHEAD];      // of the next rows, if each counts as one
    int found_ = AHEAD;        // the next of these

    template <class Function>
    RARESTREAM_ALWAYS_INLINE void each_group(Function&& f) {
        for (int i = 0; i < group_count_; ++i) f(groups_[i]);
    }

    // Brings z and n of all lanes to the units of the periods that time is in.
    void update_units(double t) {
        float factors[2 * MAX_LANES];
        for (float& one : factors) one = 1;
        bool any = false;
        next_period_ = NEVER;
        each_group([&](Group& group) {
            const double now = period_of(t, group.half_life), passed = now - group.period;
            if (group.period >= 0 && passed > 0) {
                for (int i = 0; i < group.count; ++i) {
                    const int l = group.lanes[i], first = l / 16 * 16;
                    const int width = settings_.lanes - first < 16 ? settings_.lanes - first : 16;
                    factors[first + l] = z_factor<float>(passed);
                    factors[first + l + width] = n_factor<float>(passed);
                }
                any = true;
            }
            group.period = now;
            // Rounding may put the exact border a little before or after this: it is looked for from one row before on.
            const double border = (now + 1) * (PERIOD * group.half_life) * (1 - 1e-12) - 1;
            if (border < next_period_) next_period_ = border;
        });
        const int columns = 2 * settings_.lanes;
        if (any) multiply_columns(state_.table, state_.size * columns, factors, columns);
    }

    RARESTREAM_ALWAYS_INLINE double now() const { return state_.counts[0] + state_.counts[1]; }

    // Computes the units at this time and, if the last row counted as one, those of more such rows.
    __attribute__((noinline)) void find_units(double t) {
        found_ = t - time_ == 1 ? 0 : AHEAD - 1;
        for (int i = found_; i < AHEAD; ++i) times_[i] = t + (i - found_);
        each_group([&](Group& group) {
            double logs[AHEAD];
            for (int i = found_; i < AHEAD; ++i) logs[i] = DecayedUnits::log_per_root(times_[i], group.half_life);
            if (found_ == 0)
                exponentials(logs, group.per_root);
            else
                group.per_root[found_] = exponential(logs[found_]);
        });
    }

    RARESTREAM_ALWAYS_INLINE void set_units(double t) {
        if (found_ == AHEAD || times_[found_] != t) find_units(t);
        const int found = found_++;
        time_ = t;
        each_group([&](const Group& group) RARESTREAM_INLINE_LAMBDA {
            const DecayedUnits units(group.per_root[found]);
            for (int i = 0; i < group.count; ++i) {
                const int l = group.lanes[i];
                const WeightSettings now(settings_, l, units);
                settings_.minus_gamma[l] = -now.gamma;
                settings_.lam[l] = now.lam;
                settings_.beta[l] = now.beta;
                factors_.per_s[l] = units.per_s;
            }
        });
    }

public:
    LaneDecay(const LaneSettings& settings, const LaneState& state) : settings_(settings), state_(state) {
        for (double& one : factors_.per_s) one = 1;
        for (double& one : factors_.n0) one = 1;
        for (double& one : factors_.half_life) one = NEVER;
        for (int l = 0; l < settings.lanes; ++l) {
            const double half_life = settings.half_lives.rows[l];
            if (half_life == 0) continue;
            int g = 0;
            while (g < group_count_ && groups_[g].half_life != half_life) ++g;
            if (g == group_count_) groups_[group_count_++].half_life = half_life;
            groups_[g].lanes[groups_[g].count++] = l;
            factors_.half_life[l] = half_life;
        }
    }

    const LaneSettings& settings() const { return settings_; }

    void begin_row() {
        const double t = now();
        if (t == time_) return;
        if (!(t < next_period_)) update_units(t);
        set_units(t);
    }

    // To be called before the step of a row that has been counted: what the next row needs is then in memory in time, for
    // numbers that are written one by one can be loaded as a vector only later.
    RARESTREAM_ALWAYS_INLINE void prepare_next_row() {
        const double t = now();
        if (t < next_period_) set_units(t);
    }

    // Of a row of importance h.
    RARESTREAM_ALWAYS_INLINE const DecayFactors* factors(double h) {
        if (h != importance_) {
            each_group([&](const Group& group) RARESTREAM_INLINE_LAMBDA {
                const double n0 = intercept_decay(h, group.half_life);
                for (int i = 0; i < group.count; ++i) factors_.n0[group.lanes[i]] = n0;
            });
            importance_ = h;
        }
        return &factors_;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
