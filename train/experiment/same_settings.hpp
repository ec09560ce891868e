#pragma once

#include <string_view>
#include <vector>

#include "core/config/config_entries.hpp"

namespace tpudist {

// Throws ConfigError "WHERE: was written with other settings: key: then -> now; ADVICE", with every
// different key that influences the numbers.
void require_same_settings(const std::vector<ConfigEntry>& then,
                           const std::vector<ConfigEntry>& now, std::string_view where,
                           std::string_view advice);

}  // namespace tpudist
