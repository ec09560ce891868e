#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/parameters/parameter_table.hpp"
#include "models/layers/layer_config.hpp"
#include "models/operators/attend_nodes.hpp"
#include "models/operators/backend.hpp"
#include "models/operators/plan_views.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_cost.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The states of a network's rows at one depth: [M, rows of the plan, C], float32 or double.
using RowStates = at::Tensor;

// The parameters of a call's members by name, each [M, ...] of the entry's shape. On a joined plan
// they are those of its leaves, [M * slots, ...]: each member's once for each of its units.
class LayerWeights {
 public:
  void add(const std::string& name, at::Tensor value) { of_name_[name] = std::move(value); }
  // Throws Error when there is none of that name.
  const at::Tensor& operator[](const std::string& name) const;
  // The first dimension of each weight; there must be a weight.
  std::int64_t members() const { return of_name_.begin()->second.size(0); }

 private:
  std::unordered_map<std::string, at::Tensor> of_name_;
};

// The index of each row's state, and its transpose. Nodes without a state use the row after the
// last state, in a joined plan that of their unit (JoinedUnits::none_state).
struct StateIndex {
  // The states of rows, or of configurations, of `plan`.
  StateIndex(std::span<const std::int32_t> state, const Plan& plan);
  // An index into `size` rows; -1: the row has none. It then takes row 0 and gives it no gradient.
  StateIndex(std::vector<std::int32_t> index, std::int64_t size);
  std::vector<std::int32_t> index;  // [rows]
  Csr transposed;
};

// What layers need of a unit besides its plan. Made once for all members.
struct PlanContext {
  // `row_keys` may be empty without dropout.
  PlanContext(const Plan& plan, const PlanShape& shape,
              std::vector<std::vector<std::uint64_t>> row_keys);
  std::vector<std::unique_ptr<RowGroups>> groups;        // [plan layers], null if there are none
  std::vector<std::unique_ptr<StateIndex>> state_index;  // [plan layers], likewise
  std::vector<std::vector<std::uint64_t>> row_keys;      // [depth + 1][rows]
  // [rows of a dense plan] keys of (node, configuration), if the shape needs them; otherwise empty.
  std::vector<std::uint64_t> element_keys;
  // Of a joined plan, with the kinds of rows that entries are; otherwise null.
  std::shared_ptr<JoinedUnits> units;
  // [plan layers] as far as layers have made them; equal plan layers share one.
  std::vector<std::shared_ptr<const NeighbourEntries>> entries;
  // [plan layers] factors of the rows after it, or of its entries, [1, rows or entries, n], as far
  // as layers have made them.
  std::vector<at::Tensor> factors;
  // [plan layers] as far as layers have made it.
  std::vector<std::unique_ptr<NodeAttention>> attention;

  // Makes the entries of a plan layer.
  const NeighbourEntries& make_entries(const Plan& plan, std::size_t step);
};

// One call of a network: borrowed for the call and for its autograd graph.
struct LayerCall {
  const Plan& plan;
  const PlanContext& context;
  const Backend& backend;
  at::Tensor states;  // [M, plan.states + 1, S] the encoder's states; the last row is for nodes
                      // without a state
  // [M] keys of the members' dropout; empty: no dropout.
  std::span<const std::uint64_t> dropout_keys = {};
};

// The position of a layer in its network.
struct LayerPosition {
  std::string prefix;               // of its parameter names, e.g. "blocks.3."
  std::int64_t channels = 0;        // before the layer
  std::int64_t state_channels = 0;  // of LayerCall::states
  int step = 0;                     // number of plan layers before it
  int drops = 0;                    // number of dropout layers before it
  // Number of layers read so far in the network, including inner ones; one counter for all
  // positions.
  std::shared_ptr<int> layers = std::make_shared<int>(0);
};

class Layer;
using Layers = std::vector<std::shared_ptr<const Layer>>;

// One layer of a network: a plain function of tensors over the operators in models/operators;
// LibTorch's autograd differentiates it. A member's bits depend neither on other members in the
// call nor on the number of threads. Immutable, thread-safe.
class Layer {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;

  // One line for the table of layers, e.g. "sage 256, mean of consumers".
  virtual std::string description() const = 0;
  virtual std::int64_t channels() const { return in_; }  // after the layer
  // Its inner layers, in order. steps(), drops() and parameters() include them.
  virtual Layers inner() const { return {}; }
  // The plan layers that it needs, in order. None: it maps each row by itself.
  virtual std::vector<LayerShape> steps() const;
  virtual int drops() const;  // number of dropout layers in it
  // Whether in training it treats every (node, configuration) differently (PlanShape::per_element).
  // Does not include inner layers.
  virtual bool per_element() const { return false; }
  // The largest number of nodes in a graph that it takes. Does not include inner layers.
  virtual std::int64_t most_nodes() const { return std::numeric_limits<std::int64_t>::max(); }
  virtual std::vector<ParameterEntry> parameters() const;
  // Adds what the layer needs of a unit besides the plan, in the dtype of the call's rows.
  virtual void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const {
    for (const auto& layer : inner()) layer->prepare(plan, dtype, context);
  }
  // Adds the layer's arithmetic to the last entry of `network`, the work at the current depth. A
  // layer with steps appends one entry for each step.
  virtual void add_work(NetworkWork& network) const = 0;
  virtual RowStates forward(const RowStates& x, const LayerWeights& weights,
                            const LayerCall& call) const = 0;

 protected:
  Layer(const LayerPosition& position, const std::string& name)
      : prefix_(position.prefix + name + "."), in_(position.channels), step_(position.step) {}

  const std::string prefix_;  // of the names of its parameters, e.g. "blocks.3.sage."
  const std::int64_t in_;     // channels before it
  const int step_;            // the first of its plan layers
};

// Operations of a product of one row with a weight [in, out]: two for a multiply-add.
inline double product_work(std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(in) * static_cast<double>(out);
}

// The weight [in, out] of a Linear named `name`, and its bias, initialised as in torch.nn.Linear.
ParameterEntry linear_weight(const std::string& name, std::int64_t in, std::int64_t out);
ParameterEntry linear_bias(const std::string& name, std::int64_t in, std::int64_t out);
// Adds both, `name`.weight and `name`.bias, or the weight alone.
void add_linear(std::vector<ParameterEntry>& entries, const std::string& name, std::int64_t in,
                std::int64_t out, bool bias = true);
// A parameter [size] in the group of norms. Its initial values are `value`.
ParameterEntry norm_parameter(const std::string& name, std::int64_t size, double value);

// x W + b with the entries of add_linear.
at::Tensor apply_linear(const at::Tensor& x, const LayerWeights& weights, const std::string& name,
                        const Backend& backend, bool bias = true);

// x * weight + bias, channel by channel, with the parameters `prefix`weight and `prefix`bias.
at::Tensor scale_and_shift(const at::Tensor& x, const LayerWeights& weights,
                           const std::string& prefix, const Backend& backend);

// Applies an activation to every element of the rows of a plan [M, rows, C], in blocks. leaky_relu
// has slope 0.01, leaky_relu_0.2 has 0.2 (the default of TensorFlow), elu alpha 1.
at::Tensor activate_rows(const at::Tensor& x, Activation activation, const Backend& backend);

}  // namespace tpudist
