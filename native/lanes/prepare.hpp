// What rows need before lanes learn them and what does not depend on any lane: the evidence of their entries.
#pragma once

#include "../evidence.hpp"
#include "../learn.hpp"
#include "../rows.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Writes the evidence of all entries of the rows from `first` to `stop`, its root, and how many rows of the row's class had
// the feature before; then counts the row. `having` has `slots` coordinates, `counts` is the number of positives and
// negatives. Rows of importance 0 do not count. Seven numbers more than there are entries may be written to.
inline void evidence_of_rows(Pair<float>* having, std::int64_t slots, double* counts, const RowsView& rows,
                             std::int64_t first, std::int64_t stop, const EvidenceArrays& out) {
    const Prefetcher prefetcher(having, sizeof(Pair<float>), slots, rows);
    for (std::int64_t i = first; i < stop; ++i) {
        const Row<float> row(rows, i);
        const Evidence<float> evidence(counts[0], counts[1]);
        const bool positive = rows.labels[i] > 0;
        const EvidenceArrays own = out.from(rows.indptr[i]);
        const double h = rows.importances ? rows.importances[i] : 1.0;
        double &n = counts[positive ? 0 : 1], others = counts[positive ? 1 : 0];
        const bool whole = counts_are_whole<float>(h, n);
        row.each([&](std::int64_t p, const F32& x, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
            prefetcher.prefetch(row.at + p);
            F32 positives, negatives;
            gather(having, at, positives, negatives);
            const F32 found = evidence.of(positives, negatives);
            F32& mine = positive ? positives : negatives;
            store(own.evidence + p, found);
            store(own.root + p, square_root(found));
            store(own.before + p, mine);
            if (!whole) return;
            mine = counted(mine, x, F32::all(1));
            scatter(having, at, positives, negatives, row.k - p);
        });
        if (!(h > 0)) continue;
        if (!whole) count_features<1>(having, row, positive, h, n, RoundingBits(n + others));
        n += h;
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
