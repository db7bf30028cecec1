// The Arrow C data interface: structs that libraries hand to each other in one process, without copying or sharing code.
//
// Their layout is a published ABI: https://arrow.apache.org/docs/format/CDataInterface.html
#pragma once

#include <cstdint>
#include <utility>

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    struct ArrowSchema** children;
    struct ArrowSchema* dictionary;
    void (*release)(struct ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
    int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
    const char* (*get_last_error)(struct ArrowArrayStream*);
    void (*release)(struct ArrowArrayStream*);
    void* private_data;
};

}  // extern "C"

namespace rarestream::arrow {

// Owns one of these structs: it is released once, by the last owner.
template <class Struct>
class Owned {
public:
    Owned() = default;

    // Takes what `from` holds, and leaves it as released.
    explicit Owned(Struct* from) : inside_(*from) { from->release = nullptr; }

    Owned(Owned&& other) noexcept : inside_(std::exchange(other.inside_, Struct{})) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(inside_, other.inside_);
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    ~Owned() {
        if (inside_.release) inside_.release(&inside_);
    }

    bool released() const { return !inside_.release; }
    Struct* get() { return &inside_; }
    const Struct& operator*() const { return inside_; }
    const Struct* operator->() const { return &inside_; }

private:
    Struct inside_{};
};

}  // namespace rarestream::arrow
