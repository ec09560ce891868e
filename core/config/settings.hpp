#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config_entries.hpp"

namespace tpudist {

// Which keys of an experiment decide the numbers that are trained. Here and not in train/, so that
// reports tell variants apart without LibTorch.

// Whether the value of this key decides the numbers that are trained. The other keys (folders,
// threads, caches, how often is logged) may differ between a run and its resumption. How often and
// on how many rows a run is evaluated matters only with early stopping. How often a checkpoint is
// written matters only where members are rolled back to one.
struct DecidedBy {
  bool early_stop = false, roll_back = false;
};
bool decides_numbers(std::string_view key, DecidedBy run = {});

// XXH3 over the (key, value) pairs that decide the numbers and are not the default, in the order of
// keys: a key that a later version adds leaves the hash as it is until somebody sets the key.
std::uint64_t hash_of_settings(const std::vector<ConfigEntry>& entries);

// The keys whose values are not the default, one a line: what a checkpoint keeps beside the values.
std::string changed_keys(const std::vector<ConfigEntry>& entries);

// What differs among the keys that decide the numbers, as "key: before -> now" in the order of
// keys. A key that only one side has differs unless that side has it at its default.
std::vector<std::string> changed_settings(const std::vector<ConfigEntry>& before,
                                          const std::vector<ConfigEntry>& now);

// A line on each key of an earlier version that is set and decides nothing any more.
std::vector<std::string> removed_settings(const std::vector<ConfigEntry>& entries);

// The entries without seeds and without which members a run has: equal for runs that are to be
// compared as trainings of one variant.
std::vector<ConfigEntry> variant_entries(const std::vector<ConfigEntry>& entries);

}  // namespace tpudist
