#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/network/network_config.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// One line of the table of a network's layers.
struct LayerRow {
  std::string name;  // e.g. "sage 256, mean from consumers, none"
  int depth = 0;     // how many layers contain it
  std::int64_t parameters =
      0;                      // trained ones of one member; includes those of the layers within it
  std::int64_t channels = 0;  // of the states after it; 0: it makes scores
  int first_step = 0, steps = 0;  // the plan layers that it uses
};

// The encoder, the layers in their order, each before those within it, and the head.
// `table`: the network's parameters.
std::vector<LayerRow> layer_table(const NetworkConfig& config, const FeatureSchema& schema,
                                  const ParameterTable& table);

}  // namespace tpudist
