#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "core/array.hpp"

namespace tpudist::python {

// Read-only NumPy arrays over memory of the data set, without a copy.
template <typename T>
using View = nanobind::ndarray<nanobind::numpy, const T>;
// NumPy arrays that own their memory.
template <typename T>
using Owned = nanobind::ndarray<nanobind::numpy, T>;

// The memory lives as long as anything in Python refers to its elements.
template <typename T>
View<T> view(const Array<T>& array, std::initializer_list<std::size_t> shape) {
  auto* kept = new Array<T>(array);
  const nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array<T>*>(p); });
  return View<T>(kept->data(), shape.size(), shape.begin(), owner);
}

template <typename T>
Owned<T> owned(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nanobind::capsule owner(kept,
                                [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Owned<T>(kept->data(), shape.size(), shape.begin(), owner);
}

}  // namespace tpudist::python
