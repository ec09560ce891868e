#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/parameters/parameter_table.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Activations as PyTorch defines them. activate_rows (layer.hpp) applies them.
enum class Activation { none, relu, leaky_relu, gelu, gelu_tanh, silu, elu, leaky_relu_02 };

// Their names in YAML, in the order of the enumerators.
const std::vector<std::string>& activation_names();
// Throws Error for a name that is not one of them.
Activation activation_of(const std::string& name);
const std::string& activation_name(Activation activation);
// Reads the key `activation`.
Activation read_activation_key(ConfigNode block, const std::string& fallback = "relu");

// Largest width in a config.
inline constexpr std::int64_t kMaxWidth = 16384;

// Initial values of a Linear: those of torch.nn.Linear, or Glorot's weights and a constant bias.
struct LinearStart {
  bool xavier = false;
  double bias = 0;  // with xavier
  // Reads `initialise` and `bias_value`.
  static LinearStart read(ConfigNode node);
  void apply(ParameterEntry& weight, ParameterEntry& bias_entry) const;
};

// Reads `directions`, the edges along which a layer aggregates. `some`: there must be one.
std::vector<EdgeKind> read_directions(ConfigNode block, bool some = false,
                                      const std::vector<std::string>& fallback = {
                                          "consumer_to_producer"});

// Their text in a layer's description, e.g. " from consumers from producers".
std::string direction_text(const std::vector<EdgeKind>& directions);

// The number of neighbours of each row after the layer along one of its edge sets; parallel edges
// count.
std::vector<double> neighbour_counts(const PlanLayer& step, const EdgeSet& edges);

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
// normalise, residual, activation}: SAGE (Hamilton et al., "Inductive representation learning on
// large graphs", 2017), PyTorch Geometric's SAGEConv with one lin_l for each direction:
//
//       y = act(sum over directions of lin_l(aggregated neighbours) + lin_r(x) [+ x])
//
// `join: concat` runs a SAGEConv of `width` channels for each direction, side by side; `join:
// shared` has one lin_l, as TpuGraphs' SAGE. `normalise` divides each row by its L2 norm, before
// residual and activation. The input is added if widths agree, as by the 2nd place.
SageConfig read_sage_config(ConfigNode block);

}  // namespace tpudist
