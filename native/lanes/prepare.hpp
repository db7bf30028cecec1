// What rows need before lanes learn them and what does not depend on any lane: the evidence of their entries.
#pragma once

#include "../evidence.hpp"
#include "../learn.hpp"
#include "../rows.hpp"
#include "types.hpp"

namespace rarestream {
inline namespace RARESTREAM_ISA {

// Writes the evidence of all entries of the rows from `first` on, its root, and how many rows of the row's class had the
// feature before; then counts the row. `having` has `slots` coordinates, `counts` is the number of positives and negatives.
// Rows of importance 0 do not count. Seven numbers more than there are entries may be written to.
inline void evidence_of_rows(Pair<float>* having, std::int64_t slots, double* counts, const RowsView& rows,
                             std::int64_t first, const EvidenceArrays& out) {
    const Prefetcher prefetcher(having, sizeof(Pair<float>), slots, rows);
    for (std::int64_t i = first; i < rows.size; ++i) {
        const Row<float> row(rows, i);
        const Evidence<float> evidence(counts[0], counts[1]);
        const bool positive = rows.labels[i] > 0;
        const EvidenceArrays own = out.from(rows.indptr[i]);
        row.each([&](std::int64_t p, const F32&, const std::int32_t* at) RARESTREAM_INLINE_LAMBDA {
            prefetcher.prefetch(row.at + p);
            F32 positives, negatives;
            gather(having, at, positives, negatives);
            const F32 found = evidence.of(positives, negatives);
            store(own.evidence + p, found);
            store(own.root + p, square_root(found));
            store(own.before + p, positive ? positives : negatives);
        });
        const double h = rows.importances ? rows.importances[i] : 1.0;
        if (!(h > 0)) continue;
        double &n = counts[positive ? 0 : 1], others = counts[positive ? 1 : 0];
        count_features<1>(having, row, positive, h, n, RoundingBits(n + others));
        n += h;
    }
}

}  // namespace RARESTREAM_ISA
}  // namespace rarestream
