#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors/safetensors_file.hpp"

namespace tpudist {

// Most bytes of a header, as in the safetensors package.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

// What the header of a safetensors file says.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // by `begin`, then by `end`
  std::map<std::string, std::string> metadata;
};

// Reads the JSON text of a header. Strict: no other keys, no key twice, no number that is not a
// whole one, and the places of the tensors must join without a hole or an overlap and end at
// `bytes`, how many there are behind the header. Calls `refuse` with what is wrong, which throws.
SafetensorsHeader parse_safetensors_header(
    std::string_view text, std::uint64_t bytes,
    const std::function<void(const std::string& what)>& refuse);

}  // namespace tpudist
