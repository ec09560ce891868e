#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace tpudist::test {

// An array that ends where memory ends: touching the element after the last one ends the program,
// even in builds without sanitizers. The page before the array is closed, too. T is a plain type.
template <typename T>
class GuardedArray {
 public:
  // `size` elements with bytes 0. The array ends `slack` elements before the end of memory, so that
  // its first element has another alignment.
  explicit GuardedArray(std::size_t size, std::size_t slack = 0) : size_(size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t open = ((size + slack) * sizeof(T) + page - 1) / page * page;
    mapped_ = open + 2 * page;
    void* const memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    memory_ = static_cast<std::byte*>(memory);
    if (open > 0 && mprotect(memory_ + page, open, PROT_READ | PROT_WRITE) != 0)
      throw std::system_error(errno, std::generic_category(), "mprotect");
    data_ = reinterpret_cast<T*>(memory_ + page + open - (size + slack) * sizeof(T));
  }
  explicit GuardedArray(const std::vector<T>& values, std::size_t slack = 0)
      : GuardedArray(values.size(), slack) {
    std::uninitialized_copy(values.begin(), values.end(), data_);
  }
  ~GuardedArray() { munmap(memory_, mapped_); }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<T> values() { return {data_, size_}; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::byte* memory_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

}  // namespace tpudist::test
