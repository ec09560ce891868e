#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/operators/backend.hpp"
#include "models/operators/row_groups.hpp"
#include "models/parameters/parameter_table.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_cost.hpp"
#include "models/plans/plan_shape.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// What flows through a network: x [rows of the plan at this depth, M, C], float32 or double.
using RowStates = at::Tensor;

// The parameters of the members of a call by name, each [M, ...] of the entry's shape.
class LayerWeights {
 public:
  void add(const std::string& name, at::Tensor value) { of_name_[name] = std::move(value); }
  // Throws Error when there is none of that name.
  const at::Tensor& operator[](const std::string& name) const;

 private:
  std::unordered_map<std::string, at::Tensor> of_name_;
};

// The state that each row takes, with nodes that have none taking the row behind the last state; and
// the transpose of this index.
struct StateIndex {
  StateIndex(std::span<const std::int32_t> state, std::int64_t states);
  std::vector<std::int32_t> index;  // [rows]
  Csr transposed;
};

// What the layers of a network need to know of a unit besides its plan. Made once for all members.
struct PlanContext {
  // `row_keys` may be empty where nothing is dropped.
  PlanContext(const Plan& plan, const PlanShape& shape,
              std::vector<std::vector<std::uint64_t>> row_keys);
  std::vector<std::unique_ptr<RowGroups>> groups;        // [plan layers], null where there are none
  std::vector<std::unique_ptr<StateIndex>> state_index;  // [plan layers], likewise
  std::vector<std::vector<std::uint64_t>> row_keys;      // [depth + 1][rows]
  // [rows of a dense plan] keys of (node, configuration), where the shape asks for them; else empty.
  std::vector<std::uint64_t> element_keys;
};

// One call of a network: borrowed for the call and for the graph that it records.
struct LayerCall {
  const Plan& plan;
  const PlanContext& context;
  const Backend& backend;
  at::Tensor states;  // [plan.states + 1, M, S] the encoder's states, the last one of nodes without
  // [M] what the members' dropout is drawn by; empty: nothing is dropped.
  std::span<const std::uint64_t> dropout_keys = {};
};

// Where a layer stands in its network.
struct LayerContext {
  std::string prefix;               // of its parameters' names, e.g. "blocks.3."
  std::int64_t channels = 0;        // before the layer
  std::int64_t state_channels = 0;  // of LayerCall::states
  int step = 0;                     // how many plan layers are taken before it
  int drops = 0;                    // how many dropout layers stand before it
  // How many layers of the network were read, those inside others included: one counter for all its
  // places.
  std::shared_ptr<int> layers = std::make_shared<int>(0);
};

// One layer of a network: a plain function of tensors over the operators in models/operators, which
// LibTorch's autograd differentiates. It gives each member the same numbers alone as among others,
// and the same for any number of threads. Immutable, thread-safe.
class Layer {
 public:
  virtual ~Layer() = default;

  // One line for the table of layers, e.g. "sage 256, mean of consumers".
  virtual std::string description() const = 0;
  virtual std::int64_t channels() const = 0;  // behind the layer
  // The layers that it is made of, in order, which steps(), drops() and parameters() count in.
  virtual std::vector<std::shared_ptr<const Layer>> inner() const { return {}; }
  // The plan layers that it takes, in order. None: it maps each row by itself.
  virtual std::vector<LayerShape> steps() const { return {}; }
  virtual int drops() const { return 0; }  // how many dropout layers it holds
  // Whether in training it tells every (node, configuration) from all others (PlanShape::per_element).
  // Layers that it is made of speak for themselves.
  virtual bool per_element() const { return false; }
  virtual std::vector<ParameterEntry> parameters() const { return {}; }
  // Adds its arithmetic to the work at its depth, which is the last of `network`; a layer with steps
  // appends one for each of them.
  virtual void add_work(NetworkWork& network) const = 0;
  virtual RowStates forward(const RowStates& x, const LayerWeights& weights,
                            const LayerCall& call) const = 0;
};

// Operations of a product of one row with a weight [in, out]: two for a multiply-add.
inline double product_work(std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(in) * static_cast<double>(out);
}

// LayerWeights [in, out] of a Linear under `name`, and its bias, initialised as torch.nn.Linear does.
ParameterEntry linear_weight(const std::string& name, std::int64_t in, std::int64_t out);
ParameterEntry linear_bias(const std::string& name, std::int64_t in, std::int64_t out);

// x W + b by the entries `name`.weight and `name`.bias.
at::Tensor apply_linear(const at::Tensor& x, const LayerWeights& weights, const std::string& name,
                        const Backend& backend);

}  // namespace tpudist
