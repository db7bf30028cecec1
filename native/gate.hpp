// A reader-writer lock that refuses instead of waiting: many threads may score with a model, or one may learn.
#pragma once

#include <atomic>

namespace rarestream {

class Gate {
    std::atomic<int> inside_{0};  // scorers, or -1 for a learner

public:
    bool begin_learning() {
        int none = 0;
        return inside_.compare_exchange_strong(none, -1);
    }
    void end_learning() { inside_.store(0); }
    bool begin_scoring() {
        int now = inside_.load();
        while (now >= 0)
            if (inside_.compare_exchange_weak(now, now + 1)) return true;
        return false;
    }
    void end_scoring() { inside_.fetch_sub(1); }
};

}  // namespace rarestream
