#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors/safetensors_file.hpp"

namespace tpudist {

// Maximum size of a header, as in the safetensors package.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

// The content of a safetensors header.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // sorted by `begin`, then by `end`
  std::map<std::string, std::string> metadata;
};

// Parses the JSON text of a header. Strict: no unknown or duplicate keys, whole numbers only. The
// tensors' byte ranges must cover `bytes`, the number of bytes after the header, without gaps or
// overlaps. Calls `refuse`, which must throw, with a description of the fault.
SafetensorsHeader parse_safetensors_header(
    std::string_view text, std::uint64_t bytes,
    const std::function<void(const std::string& what)>& refuse);

}  // namespace tpudist
