// One object for each thread that asks for its own.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace rarestream::features {

template <class T>
class PerThread {
public:
    // The calling thread's object; `make()` returns a unique_ptr to a new one.
    template <class Make>
    T& mine(const Make& make) {
        const std::lock_guard<std::mutex> held(lock_);
        auto& object = objects_[std::this_thread::get_id()];
        if (!object) object = make();
        return *object;
    }

private:
    std::mutex lock_;
    std::unordered_map<std::thread::id, std::unique_ptr<T>> objects_;
};

}  // namespace rarestream::features
