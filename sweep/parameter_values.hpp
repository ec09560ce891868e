#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// Values that a sweep gives to one key of an experiment, as YAML texts.
struct ValueList {
  std::vector<std::string> values;
};

// Numbers between `low` and `high` (both above 0), equally likely on a logarithmic scale.
struct LogUniform {
  double low = 0, high = 0;
  int draws = 0;  // values of a grid; unused where a sweep draws whole variants
  std::uint64_t seed = 1;
};

// A key of an experiment and what a sweep sets it to.
struct SweptKey {
  std::string key;  // dotted, e.g. "optimizer.lr"
  std::variant<ValueList, LogUniform> values;
};

// Reads `over:` of a sweep file: a map from dotted keys to
//   [a, b, c]                                             a list of any values,
//   {range: [first, last, step]}                          numbers from first to last,
//   {log_uniform: [low, high], draws: n, seed: s}         random numbers.
// `draws_variants`: the sweep draws whole variants, so that log_uniform takes no `draws`. Mistakes are
// recorded in the document.
std::vector<SweptKey> read_swept_keys(ConfigNode over, bool draws_variants);

// All values of a grid for this key. The same on every machine: random numbers are a function of key and
// seed, rounded to four digits.
std::vector<std::string> grid_values(const SweptKey& key);

// The value of variant number `variant` where whole variants are drawn: one of a list, each with equal
// probability, or a random number.
std::string drawn_value(const SweptKey& key, std::uint64_t seed, std::uint64_t variant);

}  // namespace tpudist
