#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tpudist {

// An immutable array. Copies share the elements, which are a moved-in vector or lie in memory of
// another owner, such as a mapped file. Reads like a const std::vector and converts to
// std::span<const T>. Threads may share an array.
template <typename T>
class Array {
 public:
  using value_type = T;
  using const_iterator = const T*;

  Array() = default;
  // Takes an rvalue only, so that a copy of a vector is visible where it is made.
  Array(std::vector<T>&& values) {
    const auto owned = std::make_shared<const std::vector<T>>(std::move(values));
    values_ = *owned;
    owner_ = owned;
  }
  Array(std::initializer_list<T> values) : Array(std::vector<T>(values)) {}
  // Does not copy. `values` must stay valid and unchanged as long as `owner` lives.
  Array(std::span<const T> values, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), values_(values) {}

  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](std::size_t i) const { return values_[i]; }
  const T& front() const { return values_.front(); }
  const T& back() const { return values_.back(); }
  std::size_t bytes() const { return values_.size_bytes(); }

  friend bool operator==(const Array& a, const Array& b) { return std::ranges::equal(a, b); }
  friend bool operator==(const Array& a, const std::vector<T>& b) {
    return std::ranges::equal(a, b);
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const T> values_;
};

}  // namespace tpudist
