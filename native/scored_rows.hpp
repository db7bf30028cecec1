// Validation of labels, scores and importances from outside, before an AUC is computed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rarestream {

enum class ScoredFault { none = 0, label = 1, mixed_labels = 2, score = 3, importance = 4 };

struct ScoredCheck {
    ScoredFault fault = ScoredFault::none;
    std::size_t row = 0;
};

// The first row from 0 to n - 1 for which a rule is broken.
template <class Broken>
ScoredCheck first_fault(ScoredFault fault, std::size_t n, Broken broken) {
    std::size_t i = 0;
    while (i < n && !broken(i)) ++i;
    return {fault, i};
}

// The rule of labels: they are -1 and +1, or 0 and 1. Loops without an exit, with flags as wide as what they check, are
// what the compiler vectorises; the row is searched for only if there is one.
inline ScoredCheck check_labels(const std::int8_t* labels, std::size_t n) {
    const auto invalid_label = [](std::int8_t y) { return y > 1 || y < -1; };
    std::int8_t invalid = 0, zero = 0, minus = 0;
    for (std::size_t i = 0; i < n; ++i) {
        invalid = static_cast<std::int8_t>(invalid | -invalid_label(labels[i]));
        zero = static_cast<std::int8_t>(zero | -(labels[i] == 0));
        minus = static_cast<std::int8_t>(minus | -(labels[i] == -1));
    }
    if (invalid) return first_fault(ScoredFault::label, n, [&](std::size_t i) { return invalid_label(labels[i]); });
    if (zero && minus) return first_fault(ScoredFault::mixed_labels, n, [&](std::size_t i) { return labels[i] == 0; });
    return {};
}

// The first broken rule: that of labels, scores are no NaN, importances are 0 or lie between two numbers.
template <class Score>
ScoredCheck check_scored(const std::int8_t* labels, const Score* scores, const double* importances, std::size_t n,
                         double smallest = 0, double largest = std::numeric_limits<double>::max()) {
    const auto invalid_importance = [=](double h) { return !((h >= smallest && h <= largest) || h == 0); };
    const ScoredCheck check = check_labels(labels, n);
    if (check.fault != ScoredFault::none) return check;
    std::conditional_t<sizeof(Score) == 8, std::int64_t, std::int32_t> nan = 0;
    for (std::size_t i = 0; i < n; ++i) nan |= -(scores[i] != scores[i]);
    if (nan) return first_fault(ScoredFault::score, n, [&](std::size_t i) { return scores[i] != scores[i]; });
    if (!importances) return {};
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong |= -invalid_importance(importances[i]);
    if (wrong)
        return first_fault(ScoredFault::importance, n, [&](std::size_t i) { return invalid_importance(importances[i]); });
    return {};
}

// Labels of another type as int8; a value that is no label becomes 2, which check_labels reports.
template <class Label>
void narrow_labels(const Label* labels, std::int8_t* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<std::int8_t>(labels[i] == 1 ? 1 : labels[i] == 0 ? 0 : labels[i] == -1 ? -1 : 2);
}

}  // namespace rarestream
