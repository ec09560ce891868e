#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: edge_mlp, width, hidden, config_width, config_hidden, config_columns, directions}: the
// network of the 4th place of "Fast or Slow?", which passes no messages. For each edge from a
// configurable node i along `directions` to a neighbour j
//
//       f_ij = V relu(U [x_i | x_j])                  `width` channels through `hidden`
//       g = mean of f over the edges of the configuration
//       c_i = V' relu(U' [s_i | g])                   `config_width` through `config_hidden`
//
// with s_i the chosen columns of the node's configuration. A row becomes
//
//       [sum over j of f_ij c_i^T | sum over j of c_i / E]
//
// with E the number of the configuration's edges, 0 where the node is not configurable. So a sum over
// nodes gives the products F^T C and the mean of c of the source. Parallel edges count.
std::shared_ptr<const Layer> read_edge_mlp(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
