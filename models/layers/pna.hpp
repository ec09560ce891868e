#pragma once

#include "core/config/config.hpp"
#include "models/layers/layer.hpp"

namespace tpudist {

// {layer: pna, width, directions, average_log_degree, activation}: PNA (Corso et al., "Principal
// neighbourhood aggregation for graph nets", 2020), PyTorch Geometric's PNAConv with one tower, the
// aggregators mean, max, min and std, and the scalers identity, amplification and attenuation:
//
//       h_ij = P [x_i, x_j] + p for each neighbour j
//       y_i = act(L (Q [x_i, s A for each scaler s and aggregation A of h_ij] + q) + l)
//
// Scalers are 1, g and 1 / g, where g = log(1 + number of neighbours) / average_log_degree. Each
// direction has its own P, p and aggregations; all go into Q side by side. Where a row has no
// neighbours, its aggregations are 0. P is linear, so that x_i only shifts the mean, the maximum
// and the minimum of what neighbours add, which rows share.
std::shared_ptr<const Layer> read_pna(ConfigNode block, const LayerContext& place);

}  // namespace tpudist
