#include "results/records/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kNotSet = "(not set)";

using Sorted = std::map<std::string, ConfigEntry>;

bool is_index(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

// Whether this is the key of one loss, e.g. "loss.list_mle".
bool is_loss(std::string_view key) {
  constexpr std::string_view kLosses = "loss.";
  return key.starts_with(kLosses) && key.find('.', kLosses.size()) == std::string_view::npos;
}

// The entries that influence the numbers, and one more for each item of a list of maps and for each
// loss ("model.blocks.1", "loss.list_mle"), which count even with default keys.
Sorted deciding(const std::vector<ConfigEntry>& entries) {
  const bool early_stop = std::ranges::any_of(entries, [](const ConfigEntry& entry) {
    return entry.key == "train.early_stop.patience" && entry.value != "0";
  });
  const auto decides = [&](const std::string& key) {
    if (key == "train.evaluate_every" || key == "train.evaluate_rows") return early_stop;
    return decides_numbers(key);
  };
  Sorted sorted;
  for (const ConfigEntry& entry : entries) {
    if (!decides(entry.key)) continue;
    sorted.emplace(entry.key, entry);
    for (std::size_t end = 0; (end = entry.key.find('.', end)) != std::string::npos; ++end) {
      const std::string item = entry.key.substr(0, end);
      if (is_loss(item) || is_index(std::string_view(item).substr(item.rfind('.') + 1))) {
        sorted.emplace(item, ConfigEntry{item, "{...}", false});
      }
    }
  }
  return sorted;
}

// Numbers may be written in several ways, e.g. 1e-3 and 0.001.
bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = parse_number(a), y = parse_number(b);
  return !x.error && !y.error && x.value == y.value;
}

// Whether the entry is hashed. The default of data.schema is, because it comes from the shards.
bool counts(const ConfigEntry& entry) {
  return !entry.is_default || entry.key.starts_with("data.schema.");
}

// Whether the hash omits the entry of a loss: another entry names the loss, or it is the default
// and alone. Earlier versions hashed no such entries, so their ids stay valid.
bool implied_loss(const Sorted& sorted, const std::string& key) {
  if (!is_loss(key)) return false;
  bool alone = true;
  for (const auto& [other, entry] : sorted) {
    if (!other.starts_with("loss.") || other == key) continue;
    const bool own = other.starts_with(key + ".");
    if (own && counts(entry)) return true;
    alone &= own;
  }
  return alone && key == "loss.list_mle";
}

}  // namespace

bool decides_numbers(std::string_view key) {
  // The shard folder and the fold file are free: their content is compared separately.
  static constexpr std::string_view kFree[] = {"name",
                                               "system.source",
                                               "system.collections",
                                               "system.score",
                                               "data.shards",
                                               "data.cache",
                                               "data.cache_bytes",
                                               "data.cache_dir",
                                               "data.cache_size",
                                               "batch.member_chunk",
                                               "train.recompute",
                                               "dist.threads",
                                               "dist.device",
                                               "dist.timeout",
                                               "train.time_limit",
                                               "ensemble.placement",
                                               "ensemble.fold_file",
                                               "predictions.rows",
                                               "train.evaluate_every",
                                               "train.checkpoint_every",
                                               "train.log_every",
                                               "train.evaluate_rows",
                                               "train.last_evaluation",
                                               "dist.mixed_cpus",
                                               "train.keep_checkpoints",
                                               "train.prefetch"};
  return std::ranges::find(kFree, key) == std::end(kFree);
}

std::uint64_t hash_of_settings(const std::vector<ConfigEntry>& entries) {
  Hasher hasher;
  hasher.update(std::string_view("tpudist settings 1"));
  const Sorted sorted = deciding(entries);
  for (const auto& [key, entry] : sorted) {
    if (!counts(entry) || implied_loss(sorted, key)) continue;
    hasher.update(std::string_view(key));
    hasher.update(std::string_view(entry.value));
  }
  return hasher.digest();
}

std::string changed_keys(const std::vector<ConfigEntry>& entries) {
  std::vector<std::string> keys;
  for (const ConfigEntry& entry : entries) {
    if (!entry.is_default) keys.push_back(entry.key);
  }
  return join(keys, "\n");
}

std::vector<SettingChange> setting_changes(const std::vector<ConfigEntry>& before,
                                           const std::vector<ConfigEntry>& now) {
  const Sorted old_ones = deciding(before), new_ones = deciding(now);
  std::vector<SettingChange> changes;
  for (const auto& [key, entry] : old_ones) {
    const auto other = new_ones.find(key);
    if (other == new_ones.end()) {
      if (counts(entry)) changes.push_back({key, entry.value, std::string(kNotSet)});
    } else if (!same_value(entry.value, other->second.value)) {
      changes.push_back({key, entry.value, other->second.value});
    }
  }
  for (const auto& [key, entry] : new_ones) {
    if (!old_ones.contains(key) && counts(entry))
      changes.push_back({key, std::string(kNotSet), entry.value});
  }
  std::ranges::sort(changes, {}, &SettingChange::key);
  return changes;
}

std::vector<std::string> changed_settings(const std::vector<ConfigEntry>& before,
                                          const std::vector<ConfigEntry>& now) {
  std::vector<std::string> lines;
  for (const auto& [key, then, value] : setting_changes(before, now))
    lines.push_back(fmt::format("{}: {} -> {}", key, then, value));
  return lines;
}

std::vector<ConfigEntry> variant_entries(const std::vector<ConfigEntry>& entries) {
  static constexpr std::array<std::string_view, 4> kOfRun = {
      "seed.init", "seed.order", "ensemble.members", "ensemble.first_member"};
  std::vector<ConfigEntry> rest;
  std::ranges::copy_if(entries, std::back_inserter(rest), [](const ConfigEntry& entry) {
    return std::ranges::find(kOfRun, entry.key) == kOfRun.end();
  });
  return rest;
}

void require_same_settings(const std::vector<ConfigEntry>& then,
                           const std::vector<ConfigEntry>& now, std::string_view where,
                           std::string_view advice) {
  const std::vector<SettingChange> changes = setting_changes(then, now);
  if (changes.empty()) return;
  throw ConfigError(fmt::format("{}: was written with other settings: {}; {}", where,
                                join(changed_settings(then, now), ", "), advice));
}

}  // namespace tpudist
