// The NumPy arrays that cross the border, by their short names. All are contiguous; none is copied on the way in.
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

// What is written in every binding of an argument: an array of another type, or one that is not contiguous, is refused. Left to
// itself nanobind would hand over a copy, which picks the wrong one of several overloads, and loses what is written to it.
inline auto exact(const char* name = nullptr) { return nb::arg(name).noconvert(); }

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
nb::ndarray<nb::numpy, const T, nb::ndim<1>> sealed(PooledArray<T> data, std::size_t size) {
    T* raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { Pool::shared().give(p); });
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(raw, {size}, owner);
}

// A NumPy array with a copy of the items, which nobody can write to.
template <class T>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> sealed_copy(const std::vector<T>& items) {
    auto copy = pooled<T>(items.size());
    std::copy(items.begin(), items.end(), copy.get());
    return sealed(std::move(copy), items.size());
}

}  // namespace rarestream
