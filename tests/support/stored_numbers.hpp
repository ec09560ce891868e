#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/safetensors/safetensors_file.hpp"

namespace tpudist::test {

// The numbers of a tensor, exactly. T: the type as which they are stored.
template <typename T>
std::vector<T> stored_numbers(SafetensorsFile& file, const std::string& name) {
  const std::string bytes = file.bytes(name);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace tpudist::test
