// Lanes with a half-life, beside others without: what half_life.hpp says, with numbers of its own for each lane.
#pragma once

#include "../half_life.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// The settings of a lane that its weights depend on, in the units of its state.
struct WeightSettings {
    float gamma, lam, beta;

    WeightSettings(const LaneSettings& settings, int lane, const DecayedUnits& units)
        : gamma(static_cast<float>(units.gamma(settings.half_lives.gamma[lane], settings.weight_power[lane]))),
          lam(static_cast<float>(units.lam(settings.half_lives.lam[lane]))),
          beta(static_cast<float>(units.beta(settings.half_lives.beta[lane]))) {}
};

// By what the row changes lanes, in their units; 1 and the ordinary share for lanes without a half-life.
struct DecayFactors {
    double per_s[MAX_LANES], n0[MAX_LANES];  // of the slopes, of the root of the intercept's squares
    double share[MAX_LANES];                 // of the row in the mean score of its class
};

// What learn_lanes asks for. Without half-lives (false) it has the settings of lanes as they are, and does nothing.
template <bool HalfLives>
class LaneDecay {
    const LaneSettings& settings_;

public:
    LaneDecay(const LaneSettings& settings, const LaneState&) : settings_(settings) {}
    const LaneSettings& settings() const { return settings_; }
    const DecayFactors* factors(bool, double) { return nullptr; }
    void begin_row() {}
};

template <>
class LaneDecay<true> {
    LaneSettings settings_;
    const LaneState& state_;
    DecayFactors factors_;
    double period_[MAX_LANES], time_ = -1, importance_ = -1;

    // Calls f(lane, value) for all lanes with a half-life; value(half-life) is computed once for those with the same.
    template <class Value, class Function>
    void each(Value&& value, Function&& f) const {
        const double* const half_life = settings_.half_lives.rows;
        for (int l = 0; l < settings_.lanes;) {
            const double rows = half_life[l];
            if (rows == 0) {
                ++l;
                continue;
            }
            const auto of_these = value(rows);
            for (; l < settings_.lanes && half_life[l] == rows; ++l) f(l, of_these);
        }
    }

    // Brings z and n of all lanes to the units of the periods that time is in.
    void update_units(double t) {
        float factors[2 * MAX_LANES];
        for (float& one : factors) one = 1;
        bool any = false;
        each([&](double rows) { return period_of(t, rows); },
             [&](int l, double now) {
                 const double passed = now - period_[l];
                 if (period_[l] >= 0 && passed > 0) {
                     const int first = l / 16 * 16, width = settings_.lanes - first < 16 ? settings_.lanes - first : 16;
                     factors[first + l] = z_factor<float>(passed);
                     factors[first + l + width] = n_factor<float>(passed);
                     any = true;
                 }
                 period_[l] = now;
             });
        const int columns = 2 * settings_.lanes;
        if (any) multiply_columns(state_.table, state_.size * columns, factors, columns);
    }

public:
    LaneDecay(const LaneSettings& settings, const LaneState& state) : settings_(settings), state_(state) {
        for (double& one : factors_.per_s) one = 1;
        for (double& one : factors_.n0) one = 1;
        for (double& one : period_) one = -1;
    }

    const LaneSettings& settings() const { return settings_; }

    void begin_row() {
        const double t = state_.counts[0] + state_.counts[1];
        if (t == time_) return;
        time_ = t;
        update_units(t);
        each([&](double rows) { return DecayedUnits(t, rows); },
             [&](int l, const DecayedUnits& units) {
                 const WeightSettings now(settings_, l, units);
                 settings_.minus_gamma[l] = -now.gamma;
                 settings_.lam[l] = now.lam;
                 settings_.beta[l] = now.beta;
                 factors_.per_s[l] = units.per_s;
             });
    }

    // Of a row of importance h, which has been counted.
    const DecayFactors* factors(bool positive, double h) {
        const double n = state_.counts[positive ? 0 : 1], all = state_.counts[0] + state_.counts[1];
        for (int l = 0; l < settings_.lanes; ++l) factors_.share[l] = h / n;
        each([&](double rows) { return share_in_mean(h, n, all, rows); },
             [&](int l, double share) { factors_.share[l] = share; });
        if (h != importance_)
            each([&](double rows) { return intercept_decay(h, rows); }, [&](int l, double n0) { factors_.n0[l] = n0; });
        importance_ = h;
        return &factors_;
    }
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
