// A pool of large arrays, which every block needs. New memory costs a page fault for every 4 KiB, measured as 5 to 17 % of
// the time to read a file: so freed arrays are kept for the next block, up to a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "platform.hpp"

namespace rarestream {

class Pool {
public:
    static constexpr std::size_t max_idle_bytes = std::size_t{24} << 20;    // idle bytes kept
    static constexpr std::size_t min_pooled_bytes = std::size_t{64} << 10;  // smaller arrays are left to malloc
    static constexpr std::size_t min_huge_bytes = std::size_t{4} << 20;  // from here on, as NumPy does, with pages of 2 MiB

    // Never destroyed: arrays may be freed while the interpreter ends.
    static Pool& shared() {
        static Pool* const pool = new Pool;
        return *pool;
    }

    void* allocate(std::size_t size) {
        if (size >= min_pooled_bytes) {
            const std::lock_guard<std::mutex> held(lock_);
            std::size_t best = idle_.size();
            for (std::size_t i = 0; i < idle_.size(); ++i) {
                const std::size_t has = idle_[i]->size;
                if (has >= size && has / 2 <= size && (best == idle_.size() || has < idle_[best]->size)) best = i;
            }
            if (best < idle_.size()) {
                Header* const found = idle_[best];
                idle_[best] = idle_.back();
                idle_.pop_back();
                idle_bytes_ -= found->size;
                return found + 1;
            }
            size += size / 8;  // blocks differ in size: a little more makes an array fit the next one
        }
        Header* const made = static_cast<Header*>(std::malloc(sizeof(Header) + size));
        if (!made) throw std::bad_alloc();
        if (size >= min_huge_bytes) prefer_huge_pages(made, size);
        made->size = size;
        return made + 1;
    }

    void deallocate(void* memory) noexcept {
        if (!memory) return;
        Header* const header = static_cast<Header*>(memory) - 1;
        if (header->size >= min_pooled_bytes) {
            const std::lock_guard<std::mutex> held(lock_);
            if (idle_bytes_ + header->size <= max_idle_bytes && idle_.size() < idle_.capacity()) {
                idle_bytes_ += header->size;
                idle_.push_back(header);
                return;
            }
        }
        std::free(header);
    }

private:
    struct alignas(16) Header {  // so that what follows is aligned as malloc's own
        std::size_t size;
    };

    Pool() { idle_.reserve(64); }

    std::mutex lock_;
    std::vector<Header*> idle_;
    std::size_t idle_bytes_ = 0;
};

template <class T>
struct Pooled {
    void operator()(T* memory) const noexcept { Pool::shared().deallocate(memory); }
};

// An uninitialised array of numbers.
template <class T>
using PooledArray = std::unique_ptr<T[], Pooled<T>>;

template <class T>
PooledArray<T> pooled(std::size_t size) {
    return PooledArray<T>(static_cast<T*>(Pool::shared().allocate(size * sizeof(T))));
}

}  // namespace rarestream
