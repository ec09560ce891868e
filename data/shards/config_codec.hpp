#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"

namespace tpudist {

// The config codec. Over all configurations of a graph, a configurable node takes only a few
// distinct states (C floats each). So a configuration is stored as one small code per node: the
// number of the state in that node's dictionary. States are compared by their bits (-0.0 is not
// 0.0) and numbered by first occurrence. Takes rows in order, in pieces. Not thread-safe.
class ConfigEncoder {
 public:
  struct Limits {
    // Limit for all states, in bytes as float32. Above the limit, coding is given up.
    std::size_t dictionary_bytes = 24 << 20;
    // After this many rows, coding is given up if more than half of the vectors were new.
    std::int64_t trial_rows = 1024;
  };
  // `config_features`: C.
  ConfigEncoder(std::int64_t config_nodes, int config_features);
  ConfigEncoder(std::int64_t config_nodes, int config_features, Limits limits);

  // Writes the codes of the next rows: `features` [count, nc, C], `codes` [count, nc]. Returns
  // false if configurations do not repeat enough, or a node has more states than codes can count;
  // do not use the encoder afterwards. Throws std::invalid_argument if the lengths do not match.
  [[nodiscard]] bool encode(std::span<const float> features, std::span<std::uint16_t> codes);

  // Verifies codes from `encode`: returns the index in `features` of the first vector whose bits
  // differ from the state of its code, or nothing if all agree.
  std::optional<std::size_t> first_difference(std::span<const std::uint16_t> codes,
                                              std::span<const float> features) const;

  std::int64_t state_count() const { return state_count_; }
  // Codes fit one byte up to 256 states.
  std::int64_t max_states_per_node() const { return max_states_per_node_; }
  // The dictionaries of all nodes, one after another.
  ConfigStates states() const;

 private:
  struct Node {
    std::vector<float> states;        // [s, C]
    std::vector<std::int32_t> slots;  // hash table with open addressing, -1 = free; size a power of
                                      // two
    std::uint32_t last = 0;           // the state in the previous row
  };
  std::uint32_t find_or_add(Node& node, const float* vector);
  void rehash(Node& node) const;

  std::vector<Node> nodes_;
  const std::size_t width_;  // C
  Limits limits_;
  std::int64_t rows_ = 0, state_count_ = 0, max_states_per_node_ = 0;
};

// Writes out[i, j] = states[offsets[j] + codes[i, j]], `out` [count, nc, C]. Codes and
// offsets must be valid.
template <typename Code>
void decode_configs(const ConfigStates& states, std::span<const Code> codes, std::span<float> out);

// Whether coding takes fewer bytes than features of one byte each: rows * nc codes plus the states,
// against rows * nc * C.
bool coding_pays(std::int64_t rows, std::int64_t config_nodes, int config_features,
                 std::int64_t states, int code_bytes);

}  // namespace tpudist
