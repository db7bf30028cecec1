// The sketch of a StreamingAuc, and the lock that lets several threads add to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "auc_sketch.hpp"

namespace rarestream {

class StreamingSketch {
    AucSketch sketch_;
    mutable std::mutex lock_;

public:
    // Rows as those of AucSketch::add.
    void add(const std::int8_t* labels, const double* scores, const double* importances, std::size_t n) {
        const std::lock_guard<std::mutex> held(lock_);
        sketch_.add(labels, scores, importances, n);
    }

    void merge(const StreamingSketch& other) {
        const AucSketch added = other.copy();  // a copy, so that merging with itself is safe
        const std::lock_guard<std::mutex> held(lock_);
        sketch_.merge(added);
    }

    AucSketch copy() const {
        const std::lock_guard<std::mutex> held(lock_);
        return sketch_;
    }

    void replace(AucSketch next) {
        const std::lock_guard<std::mutex> held(lock_);
        sketch_ = std::move(next);
    }

    // f of the sketch, while nobody changes it.
    template <class Function>
    auto read(Function&& f) const {
        const std::lock_guard<std::mutex> held(lock_);
        return f(sketch_);
    }
};

}  // namespace rarestream
