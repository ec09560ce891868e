#include "launch/sweep/sweep_file.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/config/yaml_scalar.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

constexpr int kMostValues = 10'000;

// Four digits do not depend on a library's rounding, and are readable in a table.
std::string short_number(double value) {
  return format_number(parse_number(fmt::format("{:.3e}", value)).value);
}

std::string random_value(const SweptKey::LogUniform& range, const std::string& key,
                         std::uint64_t seed, std::uint64_t number) {
  CounterRng random(mix_key({seed, hash64(key), number}));
  const double exponent = random.uniform(std::log(range.low), std::log(range.high));
  return short_number(std::exp(exponent));
}

SweptKey::LogUniform read_log_uniform(ConfigNode map, bool draws_variants) {
  SweptKey::LogUniform range;
  if (draws_variants) {
    if (map.has("draws")) map.mistake("draws", "has no meaning where `sweep.draws` is given");
  } else {
    map.require("draws");
    range.draws = static_cast<int>(map.integer("draws", 1, {1, kMostValues}));
    range.seed = static_cast<std::uint64_t>(map.integer("seed", 1, {0}));
  }
  const std::vector<double> limits = map.numbers("log_uniform", {});
  if (limits.size() != 2 || !(limits[0] > 0) || !(limits[1] >= limits[0]) ||
      !std::isfinite(limits[1])) {
    map.mistake("log_uniform", "must be [low, high] with 0 < low <= high");
    return {1, 1, 1, 1};
  }
  range.low = limits[0], range.high = limits[1];
  return range;
}

}  // namespace

std::vector<SweptKey> read_swept_keys(ConfigNode over, bool draws_variants) {
  std::vector<SweptKey> keys;
  for (const std::string& key : over.keys()) {
    if (over.kind(key) != "map") {
      std::vector<std::string> list = over.yaml_items(key);
      if (list.empty()) over.mistake(key, "has no values; give a list, e.g. [1, 2]");
      keys.push_back({key, std::move(list)});
      continue;
    }
    keys.push_back({key, read_log_uniform(over.child(key), draws_variants)});
  }
  return keys;
}

std::vector<std::string> grid_values(const SweptKey& key) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&key.values)) return *list;
  const auto& range = std::get<SweptKey::LogUniform>(key.values);
  std::vector<std::string> values;
  for (int i = 0; i < range.draws; ++i)
    values.push_back(random_value(range, key.key, range.seed, static_cast<std::uint64_t>(i)));
  return values;
}

std::string drawn_value(const SweptKey& key, std::uint64_t seed, std::uint64_t variant) {
  if (const auto* range = std::get_if<SweptKey::LogUniform>(&key.values))
    return random_value(*range, key.key, seed, variant);
  const auto& values = std::get<std::vector<std::string>>(key.values);
  CounterRng random(mix_key({seed, hash64(key.key), variant}));
  return values[random.below(values.size())];
}

}  // namespace tpudist
