#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/yaml_tree.hpp"

namespace tpudist {

// Both return the map of all keys after `include:`, overrides and environment variables are
// applied, in this order. Mistakes in overrides and variables are recorded. Throws ConfigError when
// a file cannot be read or is not YAML.
YamlValue load_config_tree(const std::filesystem::path& path,
                           const std::vector<std::string>& overrides, YamlMistakes& mistakes);
YamlValue parse_config_tree(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides, YamlMistakes& mistakes);

}  // namespace tpudist
