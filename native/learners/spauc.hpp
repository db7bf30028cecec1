#pragma once

#include "../run.hpp"
#include "../span.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct Spauc {  // maths: src/rarestream/learners/spauc.py
    double mu, l1;

    template <class Real>
    struct Run {
        const Spauc& spauc;
        Tally& tally;
        Span<Real, 2> span;  // M: sum of x over negatives, over positives

        static constexpr std::int64_t NUMBERS = Span<Real, 2>::numbers(2);

        static bool fits(const Spauc& learner, const State<Real>& state) {
            return Span<Real, 2>::fits(state, 2) && numbers_fit<double[NUMBERS]>(state) &&
                   (state.size < 2 || (state.apart == 1) == (learner.l1 == 0));
        }

        Run(const Spauc& learner, const State<Real>& state)
            : spauc(learner), tally(tally_of(state)), span(state, numbers_of<double[NUMBERS]>(state), 2) {}

        Real weight(std::int32_t j) const { return spauc.l1 > 0 ? static_cast<Real>(span.u(j)) : span.weight(j); }

        double rows(bool positive) const { return positive ? tally.n_pos : tally.n_neg; }
        double mean(bool positive) const { return rows(positive) > 0 ? span.product(positive) / rows(positive) : 0; }
        double eta() const {
            const double t = tally.n_pos + tally.n_neg;
            return 2 / (spauc.mu * (t > 1 ? t - 1 : 0) + 1);
        }

        // x pulls on w itself and through the mean of its class; the means move w too, whatever x.
        double reach(double s) const {
            double far = 2;
            for (int c = 0; c < 2; ++c)
                if (rows(c) > 0) far += std::sqrt(span.square(c)) / rows(c);
            return 5 * eta() * (1 + std::fabs(s) + std::fabs(mean(true)) + std::fabs(mean(false))) * far;
        }

        void shrink(std::int32_t j, Real by) { span.shrink(j, by); }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            span.add(row, &h, positive, 1);
            if (rows(!positive) == 0) return;  // p is 0 or 1, and so is every term
            const double p = tally.n_pos / (tally.n_pos + tally.n_neg), eta_h = eta() * h;
            const double c = 2 * (positive ? 1 - p : p) * (s - mean(positive));
            const double pull = 2 * p * (1 - p) * (1 + mean(false) - mean(true));
            span.move(row, -eta_h * c);
            span.along(positive, eta_h * c / rows(positive));
            span.along(true, eta_h * pull / rows(true));
            span.along(false, -eta_h * pull / rows(false));
            if (spauc.l1 > 0)
                span.fold(eta_h * spauc.l1);
            else
                span.settle();
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
