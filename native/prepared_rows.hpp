// Rows prepared for lanes: their features have slots, and the evidence of their entries is known. None of it depends on
// what the lanes learn, so one thread prepares rows while others learn those that are ready.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "kernel_arguments.hpp"
#include "lanes/types.hpp"
#include "slot_table.hpp"

namespace rarestream {

using LaneTable = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // the numbers of lanes of each slot
using PairsArray = LaneTable;                                                      // two numbers of each slot

class PreparedRows {
    static constexpr std::int64_t TOGETHER = 1024;  // entries that become ready at once, and the rest of their last row
    static constexpr std::size_t PAST = 8;          // numbers that may be written after the last
    static constexpr std::size_t ROOM = 1 << 18;    // entries, at least: so the memory of one block fits the next

    const In<std::int64_t> borrowed_indptr_;
    const In<std::int32_t> indices_;
    const In<float> values_;
    const In<std::int8_t> labels_;
    const std::optional<In<double>> importances_;
    const std::int64_t width_, room_;
    const InOut<std::int32_t> slot_of_, features_;
    const std::optional<PairsArray> having_;  // how many positives and negatives have the feature
    const LaneEvidence evidence_of_rows_;
    const double counts_[2];  // positives and negatives before the first row

    std::vector<std::int64_t> copied_indptr_;
    const std::int64_t* indptr_;
    std::int64_t size_;  // rows whose entries are where they should be
    std::int64_t stop_;  // of these, rows up to one that cannot be prepared, once that is known: others may read it then
    std::int64_t used_;
    PooledArray<float> memory_;
    std::int32_t* slots_;
    EvidenceArrays evidence_;
    std::atomic<std::int64_t> ready_{0};  // entries; -1: there will be no more
    std::atomic<bool> done_{false};

public:
    // Its indices are features; slots are below `slots`, and `used` of them are given out. A block that is not sealed may
    // change at any time: what decides where memory is written to is copied, or read once.
    PreparedRows(const BlockArgument& block, InOut<std::int32_t> slot_of, InOut<std::int32_t> features, std::int64_t slots,
                 std::int64_t used, std::optional<PairsArray> having, double positives, double negatives,
                 LaneEvidence evidence_of_rows)
        : borrowed_indptr_(block.indptr), indices_(block.indices), values_(block.values), labels_(block.labels()),
          importances_(block.importances()), width_(block.width), room_(slots), slot_of_(slot_of), features_(features),
          having_(having), evidence_of_rows_(evidence_of_rows), counts_{positives, negatives}, indptr_(block.indptr.data()),
          size_(static_cast<std::int64_t>(block.indptr.size()) - 1), used_(used) {
        const std::size_t n = indices_.size();
        const auto rows = static_cast<std::size_t>(std::max<std::int64_t>(size_, 0));
        if (size_ < 0 || values_.size() != n || labels_.size() != rows || (importances_ && importances_->size() != rows) ||
            used < 0 || used >= slots || static_cast<std::size_t>(used) >= features_.size() ||
            (having_ && (having_->shape(0) < static_cast<std::size_t>(slots) || having_->shape(1) != 2)) || width_ < 0)
            throw std::invalid_argument("prepared rows: the shapes of the arrays do not match");
        if (!block.sealed) {
            copied_indptr_.assign(indptr_, indptr_ + size_ + 1);
            indptr_ = copied_indptr_.data();
        }
        std::int64_t valid = 0;
        if (indptr_[0] == 0)
            while (valid < size_ && indptr_[valid] <= indptr_[valid + 1] &&
                   indptr_[valid + 1] <= static_cast<std::int64_t>(n))
                ++valid;
        stop_ = size_ = valid;
        static_assert(sizeof(float) == sizeof(std::int32_t), "slots and numbers share memory");
        const std::size_t room = std::max(n, ROOM) + PAST;
        memory_ = pooled<float>(4 * room);
        slots_ = reinterpret_cast<std::int32_t*>(memory_.get() + 3 * room);
        evidence_ = {memory_.get(), memory_.get() + room, memory_.get() + 2 * room};
    }

    std::int64_t used() const { return used_; }
    std::int64_t slots() const { return room_; }
    bool has_evidence() const { return having_.has_value(); }

    // Makes all rows ready, up to one with a feature that is not below the width of the block, or has no room. The memory
    // of new slots in some tables is touched here: the system has to clear it first, and lanes need not wait for that.
    void prepare(const std::vector<LaneTable>& tables) {
        const std::size_t limit = std::min(slot_of_.size(), static_cast<std::size_t>(width_));
        SlotTable table(slot_of_.data(), std::min<std::size_t>(limit, INT32_MAX), features_.data(),
                        std::min(features_.size(), static_cast<std::size_t>(room_)), used_, true);
        double counts[2] = {counts_[0], counts_[1]};
        // Some rows are counted once the next ones have slots, as what they count is loaded that far ahead.
        for (std::int64_t counted = 0, known = 0; counted < stop_;) {
            const std::int64_t to_count = known;
            if (known < stop_) {
                std::int64_t stop = known + 1;
                while (stop < stop_ && indptr_[stop] - indptr_[known] < TOGETHER) ++stop;
                const auto found =
                    static_cast<std::int64_t>(table.find(indices_.data(), static_cast<std::size_t>(indptr_[known]),
                                                         static_cast<std::size_t>(indptr_[stop]), slots_));
                if (found < indptr_[stop]) {
                    while (indptr_[stop] > found) --stop;
                    stop_ = stop;
                }
                for (const LaneTable& one : tables) touch(one, used_ + 1, table.used() + 1);
                used_ = table.used();
                known = stop;
            }
            const std::int64_t stop = known == stop_ ? known : to_count;
            count_rows(counted, stop, known, counts);
            counted = stop;
            ready_.store(indptr_[counted], std::memory_order_release);
        }
        done_.store(true, std::memory_order_release);
        if (stop_ < size_) ready_.store(-1, std::memory_order_release);
    }

    // Uncounts the rows from one on; no other thread may use them.
    void take_back(std::int64_t row) {
        if (!having_) return;
        Pair<float>* const having = pairs();
        for (std::int64_t i = stop_ - 1; i >= row; --i) {
            if (importances_ && !(importances_->data()[i] > 0)) continue;
            const bool positive = labels_.data()[i] > 0;
            for (std::int64_t p = indptr_[i]; p < indptr_[i + 1]; ++p) {
                Pair<float>& pair = having[slots_[static_cast<std::size_t>(p)]];
                (positive ? pair.z : pair.n) = evidence_.before[p];
            }
        }
    }

    // Counts them again.
    void count_again(std::int64_t row) {
        double counts[2] = {counts_[0], counts_[1]};
        for (std::int64_t i = 0; i < row; ++i) {
            const double h = importances_ ? importances_->data()[i] : 1.0;
            if (h > 0) counts[labels_.data()[i] > 0 ? 0 : 1] += h;
        }
        count_rows(row, stop_, stop_, counts);
    }

    // The rows from one on, which become ready one after the other if they are not all.
    RowsView view(std::int64_t row) const {
        const bool done = done_.load(std::memory_order_acquire);
        RowsView rows{indptr_,
                      slots_,
                      values_.data(),
                      labels_.data(),
                      importances_ ? importances_->data() : nullptr,
                      done ? stop_ : size_};
        rows.first = row;
        rows.evidence = has_evidence() ? &evidence_ : nullptr;
        rows.ready = done ? nullptr : &ready_;
        return rows;
    }

private:
    // Writes to every page of the slots from the first on; nobody else knows them yet.
    static void touch(const LaneTable& table, std::int64_t first, std::int64_t stop) {
        constexpr std::uintptr_t PAGE = 4096;
        const auto rows = static_cast<std::int64_t>(table.shape(0)), columns = static_cast<std::int64_t>(table.shape(1));
        float* at = table.data() + std::min(first, rows) * columns;
        float* const end = table.data() + std::min(stop, rows) * columns;
        while (at < end) {
            *static_cast<volatile float*>(at) = *at;
            at = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(at) | (PAGE - 1)) + 1);
        }
    }

    Pair<float>* pairs() const { return reinterpret_cast<Pair<float>*>(having_->data()); }

    // Counts the rows from one to another; those up to `known` have slots.
    void count_rows(std::int64_t first, std::int64_t stop, std::int64_t known, double* counts) const {
        if (!having_) return;
        RowsView rows = view(0);
        rows.size = known;
        evidence_of_rows_(pairs(), slots(), counts, rows, first, stop, evidence_);
    }
};

}  // namespace rarestream
