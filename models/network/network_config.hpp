#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/parameters/parameter_table.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/inputs/encoder_config.hpp"
#include "models/kernels/precision.hpp"
#include "models/layers/layer_config.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_cost.hpp"

namespace tpudist {

class Layer;
struct UnitInput;

// `readout.violation_ratio`: the share of a configuration's configurable nodes whose tensor has no
// largest dimension along the lanes of the TPU (a feature of a course paper at Harvard; MODELS in
// docs/configuration.md).
struct ViolationRatio {
  LayoutTensor tensor = LayoutTensor::output;
  // True: the first dimension of minor-to-major lies along the lanes. False: the last one, the
  // first of major-to-minor, as the paper writes.
  bool minor_to_major = true;
  // A node without an order (-1 at its beginning).
  enum class Unset { skip, fits, violates } unset = Unset::skip;
};

// The ratio of each configuration of a unit, [configurations]; 0 where no node counts. The plan's
// last layer must join states, and the largest dimensions (GraphColumns::largest) are the last
// column of the graphs' raw features. Throws Error for a plan that leaves out rows.
std::vector<double> violation_ratios(const ViolationRatio& ratio, const UnitInput& unit,
                                     const FeatureSchema& schema);

// One pool of a readout: it combines the states of all nodes of a configuration, or of its
// configurable nodes. With `l2` the result is divided by its L2 norm.
struct Pool {
  Aggregation aggregation = Aggregation::sum;
  bool of_config_nodes = false, l2 = false;
  Pool(Aggregation aggregation, bool of_config_nodes = false, bool l2 = false)
      : aggregation(aggregation), of_config_nodes(of_config_nodes), l2(l2) {}
  bool operator==(const Pool&) const = default;

  const char* name() const;  // in `readout.pool`
  // Whether scores are affine functions of rows through this pool, also on a part of the plan
  // (needed_part), which does not know how many configurable nodes it lacks.
  bool is_affine() const;
};

// The head, which turns the pooled states of a configuration into its score: an MLP with these
// hidden widths, and a Linear to one number.
struct HeadConfig {
  std::vector<std::int64_t> widths;
  Activation activation = Activation::relu;
  bool bias = true;  // of all its Linears
  // Tile collections: the single state of a configuration precedes the pooled states.
  bool joins_config = false;
  // Tile collections: hidden widths of an MLP over the single state of a configuration. The MLP's
  // output precedes the pooled states instead. Empty: none.
  std::vector<std::int64_t> config_widths;
  // Follows the pooled states, one number for each configuration.
  std::optional<ViolationRatio> violations;
  bool takes_config() const { return joins_config || !config_widths.empty(); }
};

// A network as composed from YAML: encoder, blocks, readout. `preset` names: latenciaga_xla,
// latenciaga_nlp, latenciaga_tile (the 2nd place of "Fast or Slow?").
struct NetworkConfig {
  EncoderConfig encoder;
  // Each block is made for the channels and the number of plan layers before it.
  std::vector<std::shared_ptr<const Layer>> blocks;
  // The pools over the nodes of a configuration; their results are concatenated.
  std::vector<Pool> pools{Aggregation::sum};
  HeadConfig head;
  double output_scale = 1e-3;  // scores = scale * readout
  // Precision of the operands of products with weights, except those of embedding and head. It
  // comes from an experiment's `precision`, not from `model:`.
  Precision precision = Precision::fp32;
  // Runs even a stack of plain SAGE layers by the general operators: on devices, and in tests.
  bool general = false;

  // Reads `model:` for graphs of this schema: {preset: name}, or encoder, blocks and readout, or
  // both (a key next to a preset overrides it).
  static NetworkConfig read(ConfigNode model, const FeatureSchema& schema = kLayoutSchema);
  static NetworkConfig preset(const std::string& name);  // throws ConfigError for an unknown name

  // Whether scores depend on configurations at all: from the first layer on, by a later join, or in
  // the head.
  bool takes_configurations() const;
  // Whether the head is one Linear at each node before the nodes are summed, as in the 2nd place's
  // network. Otherwise the head takes the pooled states.
  bool has_head_of_nodes() const;
  // Whether a score is an affine function of a sum or mean over rows. Then rows that all
  // configurations share do not change the differences between their scores.
  bool adds_up_rows() const;
  // Whether the readout has a plan layer of its own, after which configurable nodes share no row
  // with other nodes.
  bool reads_config_nodes() const;
  // Replaces the blocks with a stack of SAGE layers that fits the encoder as it is now.
  void set_sage(const std::vector<SageConfig>& layers, const FeatureSchema& schema = kLayoutSchema);
  // The SAGE layers of the blocks, if all are plain (SageConfig::is_plain); otherwise empty.
  std::vector<SageConfig> sage_layers() const;
  // Whether the fused operators of the CPU support this network: a plain encoder, plain SAGE
  // layers, and a readout of one Linear (models/network/fused_pass.hpp).
  bool is_sage_stack() const;
  // Whether the layers run by the general operators (ComposedNetwork).
  bool is_composed() const { return general || !is_sage_stack(); }
  bool mixes_configs() const { return plan_shape().mixes_configs(); }
  // The largest number of nodes in a graph that all layers take.
  std::int64_t most_nodes() const;
  bool drops() const;  // whether there is a dropout layer
  // Whether dropout draws for every (node, configuration), so that training takes dense plans.
  bool draws_per_element() const { return plan_shape().per_element; }
  PlanShape plan_shape() const;
  NetworkWork work(const FeatureSchema& schema) const;
};

// One line of the table of a network's layers.
struct LayerRow {
  std::string name;  // e.g. "sage 256, mean from consumers, none"
  int depth = 0;     // how many layers contain it
  std::int64_t parameters =
      0;                      // trained ones of one member; includes those of the layers within it
  std::int64_t channels = 0;  // of the states after it; 0: it makes scores
  int first_step = 0, steps = 0;  // the plan layers that it uses
};

// Rows for the encoder, for the layers in order (each before its inner layers) and for the head.
// `table`: the network's parameters.
std::vector<LayerRow> layer_table(const NetworkConfig& config, const FeatureSchema& schema,
                                  const ParameterTable& table);

// Returns the largest number of floats that one member holds at a time during a training step on
// `plan`: what autograd keeps of all layers (PlanCost::most_held), or of a stack of plain SAGE
// layers on a CPU the states after all layers and as many gradients. With `recompute`
// (train.recompute) the states between the blocks, or of every other layer of that stack, and what
// the largest block holds while it runs again.
double training_floats(const NetworkConfig& config, const FeatureSchema& schema, const Plan& plan,
                       bool recompute);

}  // namespace tpudist
