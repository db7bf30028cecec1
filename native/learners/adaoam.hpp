#pragma once

#include "../chance.hpp"
#include "../run.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

struct AdaOam {  // maths: src/rarestream/learners/adaoam.py
    double eta, lam, epsilon, rank, seed;

    struct Numbers {
        double rows, longest, ww;
    };

    template <class Real>
    struct Run {
        using V = Lanes<Real>;
        static constexpr std::int64_t RUN = 64 * LANES;  // coordinates worked on at a time

        Tally& tally;
        Numbers& own;
        const double eta, lam, epsilon, seed;
        const std::int64_t size, rank, apart;
        Real *const w, *const v, *const sums, *const sketches;
        Real* const now;

        static bool fits(const AdaOam& rule, const State<Real>& state) {
            const std::int64_t rank = static_cast<std::int64_t>(rule.rank);
            return state.columns == 4 + 2 * rank && (state.size < 2 || state.step == 1) && numbers_fit<Numbers>(state) &&
                   state.arrays == 1 && state.more[0].shape[0] >= state.first + state.size;
        }

        Run(const AdaOam& learner, const State<Real>& state)
            : tally(tally_of(state)), own(numbers_of<Numbers>(state)), eta(learner.eta), lam(learner.lam), epsilon(learner.epsilon), seed(learner.seed), size(state.size),
              rank(static_cast<std::int64_t>(learner.rank)), apart(state.apart), w(state.table),
              v(state.table + state.apart), sums(state.table + 2 * state.apart),
              sketches(state.table + 4 * state.apart), now(static_cast<Real*>(state.more[0].data)) {}

        Real weight(std::int32_t j) const { return w[j]; }
        double reach(double s) const {
            return (1 + own.longest) * (1 + own.longest) * (1 + std::sqrt(own.ww) + std::fabs(s));
        }
        void shrink(std::int32_t j, Real by) {
            v[j] *= by * by;
            for (std::int64_t c = 0; c < 2 + 2 * rank; ++c) sums[c * apart + j] *= by;
        }

        void step(const Sample<Real>& row, double s, bool positive, double h) {
            own.rows += 1;
            const double norm = std::sqrt(row.xx);
            if (norm > own.longest) own.longest = norm;
            add(row, positive, h);
            const double n = positive ? tally.n_neg : tally.n_pos, y = positive ? 1 : -1;
            if (n == 0) return;
            const Real* const sum_o = sums + (positive ? 0 : apart);
            const Real* const Z = sketches + (positive ? 0 : rank * apart);
            // pass 1
            double b = 0;
            double q[1024];
            for (std::int64_t c = 0; c < rank; ++c) q[c] = 0;
            for (std::int64_t start = 0; start < size; start += RUN) {
                const std::int64_t stop = start + RUN < size ? start + RUN : size;
                b += dot(sum_o, start, stop);
                for (std::int64_t c = 0; c < rank; ++c) q[c] += dot(Z + c * apart, start, stop);
            }
            b /= n;
            const Real slope = static_cast<Real>(s - b - y), pull = static_cast<Real>((y - s) / n);
            for (std::int64_t p = 0; p < row.k; ++p) now[row.at[p]] = slope * row.x[p];
            const Real lam_ = static_cast<Real>(lam), rate = static_cast<Real>(eta * h),
                       eps = static_cast<Real>(epsilon), hh = static_cast<Real>(h);
            double ww = 0;
            Real g[RUN];
            for (std::int64_t start = 0; start < size; start += RUN) {
                const std::int64_t stop = start + RUN < size ? start + RUN : size;
                for (std::int64_t j = start; j < stop; ++j) g[j - start] = now[j] + lam_ * w[j] + pull * sum_o[j];
                for (std::int64_t c = 0; c < rank; ++c) {
                    const Real f = static_cast<Real>(q[c] / n);
                    const Real* const Zc = Z + c * apart;
                    for (std::int64_t j = start; j < stop; ++j) g[j - start] += f * Zc[j];
                }
                for (std::int64_t j = start; j < stop; ++j) {
                    const Real gj = g[j - start];
                    if (gj == 0) continue;
                    v[j] += hh * gj * gj;
                    w[j] -= rate * gj / (eps + std::sqrt(v[j]));
                }
                for (std::int64_t j = start; j < stop; ++j) ww += double(w[j]) * w[j];
            }
            own.ww = ww;
            for (std::int64_t p = 0; p < row.k; ++p) now[row.at[p]] = 0;
        }

    private:
        double dot(const Real* a, std::int64_t start, std::int64_t stop) const {
            V acc = V::all(0);
            std::int64_t j = start;
            for (; j + LANES <= stop; j += LANES) acc = acc + load(a + j) * load(w + j);
            double rest = sum(acc);
            for (; j < stop; ++j) rest += double(a[j]) * w[j];
            return rest;
        }

        void add(const Sample<Real>& row, bool positive, double h) {
            Real* const sum_own = sums + (positive ? apart : 0);
            Real* const Z = sketches + (positive ? rank * apart : 0);
            for (std::int64_t p = 0; p < row.k; ++p) sum_own[row.at[p]] += static_cast<Real>(h) * row.x[p];
            const Real unit = rank ? static_cast<Real>(std::sqrt(h / rank)) : 0;
            std::uint64_t bits = 0;
            const std::uint64_t words = (rank + 63) / 64, first = static_cast<std::uint64_t>(own.rows) * words;
            for (std::int64_t c = 0; c < rank; ++c) {
                if (c % 64 == 0) bits = splitmix64(static_cast<std::uint64_t>(seed), first + c / 64);
                const Real r = bits >> (c % 64) & 1 ? unit : -unit;
                Real* const Zc = Z + c * apart;
                for (std::int64_t p = 0; p < row.k; ++p) Zc[row.at[p]] += r * row.x[p];
            }
        }
    };
};

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
