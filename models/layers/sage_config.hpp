#pragma once

#include <cstdint>

#include "core/config/config.hpp"
#include "models/layers/activation.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// The settings of a SAGE layer.
struct SageConfig {
  std::int64_t width = 64;                // output channels (of each direction, with `concat`)
  LayerShape mix{{}, Aggregation::mean};  // directions and aggregation
  bool residual = false;                  // adds the input if widths agree
  Activation activation = Activation::relu;
  bool concat = false;     // a whole SAGEConv for each direction, side by side
  bool shared = false;     // one lin_l for all directions
  bool normalise = false;  // divide each row by its L2 norm

  std::int64_t channels() const;  // after the layer
  // Whether a fused operator of the CPU supports this layer (models/layers/fused_sage.hpp).
  bool is_plain() const;
};

// {layer: sage, width, directions, aggregation: mean | sum | max, join: sum | concat | shared,
// normalise, residual, activation}: SAGE (Hamilton et al., "Inductive representation learning on large
// graphs", 2017), PyTorch Geometric's SAGEConv with one lin_l for each direction:
//
//       y = act(sum over directions of lin_l(aggregated neighbours) + lin_r(x) [+ x])
//
// `join: concat` runs a whole SAGEConv for each direction and concatenates them, with `width`
// channels for each; `join: shared` has one lin_l, as TpuGraphs' SAGE. `normalise` divides each row by its L2 norm, before residual and activation.
// The input is added if the layer keeps the number of channels, as in the 2nd place's code.
SageConfig read_sage_config(ConfigNode block);

}  // namespace tpudist
