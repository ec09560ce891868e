#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tpudist {

// "; did you mean PATH?", for an error about `wanted`, which is not there: of the entries that
// `accepts` takes the one of the nearest name (nearest_of, without ".yaml"). It lies in the folder
// of `wanted` or, if that is a mere name, in one of `homes`. "" without one.
std::string near_path(const std::filesystem::path& wanted,
                      const std::function<bool(const std::filesystem::directory_entry&)>& accepts,
                      const std::vector<std::filesystem::path>& homes = {});

}  // namespace tpudist
