#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tpudist {

// "; did you mean PATH?", for an error about `wanted`, which is not there: the entry with the
// nearest name (nearest_of) that `accepts` takes, of the folder of `wanted` and, where that is a
// mere name, of `homes`. "" without one.
std::string near_path(const std::filesystem::path& wanted,
                      const std::function<bool(const std::filesystem::directory_entry&)>& accepts,
                      const std::vector<std::filesystem::path>& homes = {});

// For `accepts`.
bool is_yaml(const std::filesystem::directory_entry& entry);

}  // namespace tpudist
