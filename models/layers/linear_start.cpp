#include "models/layers/linear_start.hpp"

namespace tpudist {

LinearStart LinearStart::read(ConfigNode node) {
  LinearStart start;
  start.xavier = node.choice("initialise", "fan_in", {"fan_in", "xavier"}) == "xavier";
  start.bias = node.number("bias_value", 0, {-1e6, 1e6});
  if (!start.xavier && start.bias != 0)
    node.mistake("bias_value", "counts with `initialise: xavier` only");
  return start;
}

void LinearStart::apply(ParameterEntry& weight, ParameterEntry& bias_entry) const {
  if (!xavier) return;
  weight.initialiser.kind = Initialiser::Kind::xavier;
  bias_entry.initialiser = {Initialiser::Kind::constant, bias};
}

}  // namespace tpudist
