#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_record.hpp"

namespace tpudist {

// Which keys of an experiment influence the trained numbers. This file is not in train/, so that
// reports can tell variants apart without LibTorch.

// Whether the value of this key influences the trained numbers of a run. Other keys (folders,
// threads, caches, how often to log) may change when a run is resumed.
bool decides_numbers(std::string_view key);

// XXH3 over the (key, value) pairs that influence the numbers and are not the default, in the order
// of keys. A key that a later version adds changes the hash only when somebody sets it. A loss
// counts even with default keys.
std::uint64_t hash_of_settings(const std::vector<ConfigEntry>& entries);

// The keys that are not at their default, one per line, as a checkpoint keeps them.
std::string changed_keys(const std::vector<ConfigEntry>& entries);

// A key that influences the numbers and differs. A missing value is "(not set)".
struct SettingChange {
  std::string key, before, now;
};

// The differences among keys that influence the numbers, in the order of keys. A key that only one
// side has counts as different unless its value there is the default.
std::vector<SettingChange> setting_changes(const std::vector<ConfigEntry>& before,
                                           const std::vector<ConfigEntry>& now);
// The same as "key: before -> now".
std::vector<std::string> changed_settings(const std::vector<ConfigEntry>& before,
                                          const std::vector<ConfigEntry>& now);

// The entries without seeds and choice of members, which are equal for trainings of one variant.
std::vector<ConfigEntry> variant_entries(const std::vector<ConfigEntry>& entries);

// Throws ConfigError "WHERE: was written with other settings: key: then -> now; ADVICE" if keys
// that influence the numbers differ. The message has all of them.
void require_same_settings(const std::vector<ConfigEntry>& then,
                           const std::vector<ConfigEntry>& now, std::string_view where,
                           std::string_view advice);

}  // namespace tpudist
