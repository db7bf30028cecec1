// The NumPy arrays that cross the border, by their short names. All are contiguous; none is copied on the way in.
#pragma once

#include <cstdint>
#include <memory>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace rarestream {

namespace nb = nanobind;

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

}  // namespace rarestream
