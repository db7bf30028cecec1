// Short names for the NumPy arrays that bindings take and return. All are contiguous; no argument is copied.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "pool.hpp"

namespace rarestream {

namespace nb = nanobind;

// For every argument of every binding: an array of another type, or one that is not contiguous, is refused. By default
// nanobind would pass a copy, which may choose the wrong one of several overloads, and what is written to it is lost.
inline auto no_convert(const char* name = nullptr) { return nb::arg(name).noconvert(); }

// For enums, which also take the integer of a member.
inline auto enum_arg(const char* name = nullptr) { return nb::arg(name); }

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A fresh one-dimensional NumPy array that owns `data`.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::unique_ptr<T[]> data, std::size_t size) {
    T* raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(raw, {size}, owner);
}

// A NumPy array with a copy of the items.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> copied(const std::vector<T>& items) {
    std::unique_ptr<T[]> copy(new T[items.size()]);
    std::copy(items.begin(), items.end(), copy.get());
    return owned(std::move(copy), items.size());
}

// A NumPy array that nobody can write to, and that gives its memory back to the pool.
template <class T>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> read_only(PooledArray<T> data, std::size_t size) {
    T* raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { Pool::shared().deallocate(p); });
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(raw, {size}, owner);
}

// A NumPy array with a copy of the items, which nobody can write to.
template <class T>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> read_only_copy(const std::vector<T>& items) {
    auto copy = pooled<T>(items.size());
    std::copy(items.begin(), items.end(), copy.get());
    return read_only(std::move(copy), items.size());
}

}  // namespace rarestream
