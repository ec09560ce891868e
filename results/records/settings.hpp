#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_entries.hpp"

namespace tpudist {

// Which keys of an experiment influence the trained numbers. It is here and not in train/, so that
// reports can tell variants apart without LibTorch.

// Whether the value of this key influences the trained numbers. The other keys (folders, threads,
// caches, how often to log) may differ between a run and its resumption. How often and on how many
// rows a run is evaluated matters only with early stopping. How often a checkpoint is written
// matters only where members are rolled back to one.
struct DecidedBy {
  bool early_stop = false, roll_back = false;
};
bool decides_numbers(std::string_view key, DecidedBy run = {});

// XXH3 over the (key, value) pairs that influence the numbers and are not the default, in the order
// of keys. A key that a later version adds changes the hash only when somebody sets it. Losses are told apart
// also where all their keys have their defaults.
std::uint64_t hash_of_settings(const std::vector<ConfigEntry>& entries);

// The keys whose values are not the default, one per line. A checkpoint keeps them beside the
// values.
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

// The entries without seeds and without which members a run has: equal for runs that are to be
// compared as trainings of one variant.
std::vector<ConfigEntry> variant_entries(const std::vector<ConfigEntry>& entries);

// Throws ConfigError "WHERE: was written with other settings: key: then -> now; ADVICE", with every
// different key that influences the numbers.
void require_same_settings(const std::vector<ConfigEntry>& then,
                           const std::vector<ConfigEntry>& now, std::string_view where,
                           std::string_view advice);

}  // namespace tpudist
