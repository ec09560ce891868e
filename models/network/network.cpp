#include "models/network/network.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "models/inputs/encoder.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/layers/layer.hpp"
#include "models/network/executor.hpp"
#include "models/plans/graph_edges.hpp"
#include "models/plans/join_plans.hpp"

namespace tpudist {

bool runs_on_gpus() {
#ifdef TPUDIST_WITH_CUDA_KERNELS
  return true;
#else
  return false;
#endif
}

struct Network::Impl {
  Impl(const NetworkConfig& config, const FeatureSchema& schema, int device_index, ThreadPool& pool,
       bool recompute)
      : config(config),
        schema(schema),
        inputs(schema),
        recompute(recompute),
        plan_shape(config.plan_shape()),
        table(composed_parameters(config, schema)) {
    inputs.node_features += config.encoder.columns.count();
    if (config.is_composed()) {
      encoder = std::make_unique<const Encoder>(config.encoder, schema);
      executor = make_composed_executor(config, schema, recompute, pool,
                                        make_device_context(device_index, config.precision));
    } else {
      executor = make_fused_executor(config, schema, table, recompute, pool);
    }
  }

  // Throws Error when the plan, graphs, states, parameters and layers of a call do not fit.
  void check(const MemberRange& members, const UnitInput& input) const;

  // Composed networks take raw features, fused layers their logarithms.
  FeatureForm form() const { return encoder ? FeatureForm::raw : FeatureForm::rows; }

  const NetworkConfig config;
  const FeatureSchema schema;
  FeatureSchema inputs;  // the same with all columns of the graphs' inputs
  const bool recompute;
  const PlanShape plan_shape;
  std::unique_ptr<const Encoder> encoder;  // of a composed network, null otherwise
  ParameterTable table;
  std::unique_ptr<Executor> executor;
};

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::failed, "network call: " + what);
}

// The loss, which must return as many numbers as there are scores. Borrows it.
LossGradient checked(const LossGradient& loss) {
  return [&loss](const UnitScores& scores) {
    ScoreGradient gradient = loss(scores);
    require(gradient.values.size() == scores.delta.size(),
            "the loss gradient is not [members, configurations]");
    require(gradient.translation_invariant.empty() ||
                static_cast<int>(gradient.translation_invariant.size()) == scores.members,
            "the loss names another number of members");
    return gradient;
  };
}

// On a device every network is composed of layers.
NetworkConfig config_on(int device_index, NetworkConfig config) {
  config.general |= device_index >= 0;
  return config;
}

}  // namespace

void Network::Impl::check(const MemberRange& members, const UnitInput& input) const {
  require(input.plan != nullptr, "no plan");
  const Plan& plan = *input.plan;
  std::int64_t nodes = 0;
  for (const auto& graph : input.graphs) nodes += graph->nodes();
  std::int64_t expected = plan.units ? 0 : plan.nodes;
  if (plan.units) {
    for (const RowRun& run : plan.units->nodes->runs) expected += run.count;
  }
  require(nodes == expected, "the graphs have " + std::to_string(nodes) + " nodes, the plan has " +
                                 std::to_string(plan.nodes));
  require(static_cast<std::int64_t>(input.states.size()) == plan.states * schema.config_features,
          "the state table is not [" + std::to_string(plan.states) + ", " +
              std::to_string(schema.config_features) + "]");
  require(plan.layers.size() == plan_shape.layers.size(), "the plan has another number of layers");
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    require(plan.layers[i]->edges.size() == plan_shape.layers[i].edge_kinds.size(),
            "layer " + std::to_string(i) + " of the plan mixes another number of edge sets");
  }
  require(static_cast<std::int64_t>(members.flat.size()) % table.length() == 0,
          "parameters are not [members, P]");
  const std::int64_t held =
      members.placed ? members.placed->members() : members.flat.size() / table.length();
  require(members.first >= 0 && members.count >= 0 && members.first + members.count <= held,
          "members out of range");
}

Network::Network(const NetworkConfig& config, const FeatureSchema& schema, int device_index,
                 ThreadPool& pool, bool recompute) {
  if (config.blocks.empty()) throw ConfigError("model: a network needs at least one block");
  impl_ = std::make_unique<Impl>(config_on(device_index, config), schema, device_index, pool,
                                 recompute);
}

Network::~Network() = default;

const NetworkConfig& Network::config() const {
  return impl_->config;
}
const ParameterTable& Network::parameters() const {
  return impl_->table;
}
const FeatureSchema& Network::schema() const {
  return impl_->schema;
}
PlanShape Network::plan_shape() const {
  return impl_->plan_shape;
}

void Network::initialise(std::span<float> flat, std::uint64_t key) const {
  if (static_cast<std::int64_t>(flat.size()) != parameters().length()) {
    throw Error(ErrorKind::failed, "initialise: the buffer is not one member's parameters");
  }
  initialise_parameters(parameters(), flat, key);
}

bool Network::takes_statistics() const {
  return std::ranges::any_of(parameters().entries(), [](const ParameterEntry& entry) {
    return entry.group == ParameterGroup::statistics;
  });
}

void Network::set_statistics(const FeatureStatistics& statistics, std::span<float> flat) const {
  std::vector<std::int64_t> columns = config().encoder.node_columns;
  if (columns.empty()) {
    for (std::int64_t c = 0; c < impl_->schema.node_features; ++c) columns.push_back(c);
  }
  const struct {
    const char* name;
    const std::vector<double>& values;
    bool of_nodes;
  } all[] = {{"encoder.node.mean", statistics.node_mean, true},
             {"encoder.node.scale", statistics.node_scale, true},
             {"encoder.config.mean", statistics.config_mean, false},
             {"encoder.config.scale", statistics.config_scale, false}};
  for (const ParameterEntry& entry : parameters().entries()) {
    for (const auto& [name, values, of_nodes] : all) {
      if (entry.name != name) continue;
      for (std::int64_t i = 0; i < entry.size(); ++i)
        flat[entry.offset + i] = static_cast<float>(values[of_nodes ? columns[i] : i]);
    }
  }
}

int Network::input_columns() const {
  return impl_->inputs.node_features;
}

Array<float> Network::input_rows(const Array<float>& node_features,
                                 std::span<const std::int32_t> edges) const {
  const GraphColumns& columns = config().encoder.columns;
  if (columns.count() == 0) return node_features;
  const std::int64_t width = schema().node_features,
                     nodes = static_cast<std::int64_t>(node_features.size()) / width,
                     added = columns.count();
  const std::vector<float> behind = columns.of(nodes, node_features, edges, schema());
  std::vector<float> rows;
  for (std::int64_t node = 0; node < nodes; ++node) {
    rows.insert(rows.end(), node_features.begin() + node * width,
                node_features.begin() + (node + 1) * width);
    rows.insert(rows.end(), behind.begin() + node * added, behind.begin() + (node + 1) * added);
  }
  return rows;
}

GraphArrays Network::graph_arrays(std::span<const float> node_features,
                                  std::span<const std::uint8_t> opcodes) const {
  GraphArrays arrays = GraphArrays::of(node_features, opcodes, impl_->inputs, impl_->form());
  if (impl_->encoder) {
    use_one_thread_per_worker();
    Encoder::to_arrays(impl_->encoder->encode(GraphInput(arrays, impl_->inputs), at::kFloat),
                       arrays);
  }
  return arrays;
}

std::shared_ptr<const GraphInput> Network::graph_of(const GraphArrays& arrays) const {
  auto graph = std::make_shared<GraphInput>(arrays, impl_->inputs);
  if (impl_->encoder) graph->set_encoded(impl_->encoder->of_arrays(arrays));
  return graph;
}

std::uint64_t Network::graph_key() const {
  Hasher hasher;
  hasher.update(std::string_view(libtorch_version()));
  hasher.update(std::string_view(cpu_kernels(Precision::fp32)));
  hasher.update(impl_->form());
  if (impl_->encoder) hasher.update(impl_->encoder->encoded_key());
  return hasher.digest();
}

std::uint64_t Network::graph_bytes(std::int64_t nodes) const {
  return GraphInput::bytes(nodes, impl_->inputs, impl_->form()) +
         (impl_->encoder ? impl_->encoder->encoded_bytes(nodes) : 0);
}

void Network::prepare_unit(UnitInput& input) const {
  input.prepared = impl_->executor->prepare(input);
}

UnitInput Network::join(const std::vector<std::vector<const UnitInput*>>& blocks) const {
  UnitInput joined = join_units(blocks, impl_->schema.config_features);
  prepare_unit(joined);
  return joined;
}

std::vector<std::int64_t> Network::kept_channels() const {
  const PlanShape& shape = impl_->plan_shape;
  const bool along_edges = std::ranges::all_of(shape.layers, [](const LayerShape& layer) {
    return std::ranges::all_of(layer.edge_kinds, along_graph);
  });
  if (device() || schema().tile || config().head.violations || !along_edges) return {};
  std::vector<std::int64_t> channels(shape.layers.size() + 2);
  channels[0] = impl_->encoder ? impl_->encoder->channels() : config().encoder.width;
  std::size_t depth = 0;
  for (const auto& block : config().blocks) {
    depth += block->steps().size();
    channels[depth] = block->channels();
  }
  // Cells are in double: one number of fused layers, as of the rows that they sum, else those of
  // each pool.
  if (config().is_composed()) {
    if (!config().reads_config_nodes())
      channels.back() = 2 * std::ssize(config().pools) * config().blocks.back()->channels();
  } else {
    channels[depth] = channels.back() = 2;
  }
  return channels;
}

int Network::members_together(const Plan& plan) const {
  return impl_->executor->members_together(plan);
}

double Network::leaf_bytes(const Plan& plan) const {
  constexpr double kParameters = 3;  // a copy, gradients tensor by tensor, and put together
  const double floats = training_floats(config_on(0, config()), schema(), plan, impl_->recompute) +
                        kParameters * static_cast<double>(impl_->table.length());
  return sizeof(float) * floats;
}

Parameters Network::place(std::span<const float> flat) const {
  Parameters parameters = flat;
  parameters.placed = impl_->executor->place(flat);
  return parameters;
}

DeviceCopies* Network::device() const {
  return impl_->executor->device();
}

CopyCounts Network::copies() const {
  return device() ? device()->counts() : CopyCounts();
}

UnitScores Network::scores(const Parameters& parameters, int first_member, int count,
                           const UnitInput& input,
                           std::span<const std::uint64_t> dropout_keys) const {
  const MemberRange members{parameters.flat, first_member, count, dropout_keys,
                            parameters.placed.get()};
  impl_->check(members, input);
  return impl_->executor->scores(members, input);
}

void Network::gradient(const Parameters& parameters, int first_member, int count,
                       const UnitInput& input, const LossGradient& loss_gradient,
                       const GradientRows& gradients, bool common,
                       std::span<const std::uint64_t> dropout_keys) const {
  const MemberRange members{parameters.flat, first_member, count, dropout_keys,
                            parameters.placed.get()};
  impl_->check(members, input);
  const std::int64_t length = this->parameters().length();
  bool fits = gradients.device ? gradients.stride >= length
                               : static_cast<int>(gradients.host.size()) == count;
  for (const std::span<float> gradient : gradients.host)
    fits = fits && static_cast<std::int64_t>(gradient.size()) == length;
  require(fits, "gradients are not [count, P]");
  impl_->executor->gradient(members, input, checked(loss_gradient), gradients, common);
}

void Network::gradient(const Parameters& parameters, int first_member, int count,
                       const std::vector<int>& kept, const UnitInput& joined,
                       const LossGradient& loss_gradient, const GradientRows& gradients,
                       std::span<const std::uint64_t> dropout_keys) const {
  require(joined.plan && joined.plan->units && parameters.placed && gradients.device &&
              gradients.stride >= this->parameters().length(),
          "it takes joined units, and parameters and gradients on the device");
  const MemberRange members{parameters.flat, first_member, count, dropout_keys,
                            parameters.placed.get()};
  impl_->check(members, joined);
  impl_->executor->gradient(members, kept, joined, checked(loss_gradient), gradients);
}

}  // namespace tpudist
