#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/yaml_tree.hpp"

namespace tpudist {

// Both functions apply `include:`, overrides and environment variables, in this order, and return
// the map of all keys. They record mistakes in overrides and variables, and throw ConfigError when
// a file cannot be read or is not YAML.
YamlValue load_config_tree(const std::filesystem::path& path,
                           const std::vector<std::string>& overrides, YamlMistakes& mistakes);
YamlValue parse_config_tree(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides, YamlMistakes& mistakes);

}  // namespace tpudist
