#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// Numbers between `low` and `high` (both above 0), uniform on a logarithmic scale.
struct LogUniform {
  double low = 0, high = 0;
  int draws = 0;  // number of values in a grid; unused if a sweep draws whole variants
  std::uint64_t seed = 1;
};

// A key of an experiment and the values that a sweep gives it.
struct SweptKey {
  std::string key;                                            // dotted, e.g. "optimizer.lr"
  std::variant<std::vector<std::string>, LogUniform> values;  // a list of YAML texts, or a range
};

// Reads `over:` of a sweep file, a map from dotted keys to
//     [a, b, c]                                             a list of any values,
//     {range: [first, last, step]}                          numbers from first to last,
//     {log_uniform: [low, high], draws: n, seed: s}         random numbers.
// `draws_variants`: the sweep draws whole variants, so log_uniform takes no `draws`. Records
// mistakes in the document.
std::vector<SweptKey> read_swept_keys(ConfigNode over, bool draws_variants);

// All values of this key in a grid. Random numbers are a function of key and seed, rounded to four
// digits, and therefore the same on every machine.
std::vector<std::string> grid_values(const SweptKey& key);

// The value for variant number `variant` when whole variants are drawn: an item of the list with
// equal probability, or a random number.
std::string drawn_value(const SweptKey& key, std::uint64_t seed, std::uint64_t variant);

}  // namespace tpudist
