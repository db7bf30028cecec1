// Labels, scores and importances as they come from outside: the one look at them before they are counted.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rarestream {

enum class RowFault { none = 0, label = 1, mixed_labels = 2, score = 3, importance = 4, total = 5 };

struct RowSurvey {
    RowFault fault = RowFault::none;
    std::size_t row = 0;
};

// The first broken rule: labels are -1 and +1 or 0 and 1, scores are no NaN, importances are finite and >= 0.
template <class Score>
RowSurvey survey_scored(const std::int8_t* labels, const Score* scores, const double* importances, std::size_t n) {
    const auto odd_label = [](std::int8_t y) { return y > 1 || y < -1; };
    const auto odd_importance = [](double h) { return !(h >= 0 && h <= std::numeric_limits<double>::max()); };
    // Whole passes without a way out are what the compiler turns into vector code; the row is looked up if needed.
    bool odd = false, zero = false, minus = false;
    for (std::size_t i = 0; i < n; ++i) odd |= odd_label(labels[i]);
    for (std::size_t i = 0; i < n; ++i) zero |= labels[i] == 0;
    for (std::size_t i = 0; i < n; ++i) minus |= labels[i] == -1;
    const auto first = [n](RowFault fault, auto broken) {
        std::size_t i = 0;
        while (i < n && !broken(i)) ++i;
        return RowSurvey{fault, i};
    };
    if (odd) return first(RowFault::label, [&](std::size_t i) { return odd_label(labels[i]); });
    if (zero && minus) return first(RowFault::mixed_labels, [&](std::size_t i) { return labels[i] == 0; });
    for (std::size_t i = 0; i < n; ++i) odd |= scores[i] != scores[i];
    if (odd) return first(RowFault::score, [&](std::size_t i) { return scores[i] != scores[i]; });
    if (!importances) return {};
    for (std::size_t i = 0; i < n; ++i) odd |= odd_importance(importances[i]);
    if (odd) return first(RowFault::importance, [&](std::size_t i) { return odd_importance(importances[i]); });
    return {};
}

// Labels of another type as int8; a value that is no label becomes 2, which no survey lets pass.
template <class Label>
void narrow_labels(const Label* labels, std::int8_t* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<std::int8_t>(labels[i] == 1 ? 1 : labels[i] == 0 ? 0 : labels[i] == -1 ? -1 : 2);
}

}  // namespace rarestream
