#include "models/network.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "models/executors/aten_executor.hpp"
#include "models/executors/composed_executor.hpp"
#include "models/executors/cpu_executor.hpp"
#include "models/executors/executor.hpp"
#include "models/inputs/graph_input.hpp"
#include "models/network/network_layout.hpp"

namespace tpudist {

struct Network::Impl {
  Impl(const NetworkConfig& config, int config_features, int device_index, ThreadPool& pool,
       const NetworkOptions& options)
      : config(config), plan_shape(config.plan_shape()) {
    if (config.is_composed()) {
      table = composed_parameters(config, config_features);
      executor = make_composed_executor(config, config_features, options.recompute, pool);
    } else {
      layout = std::make_unique<const NetworkLayout>(config, config_features);
      table = layout->table;
      executor =
          device_index < 0
              ? make_cpu_executor(*layout, config.output_scale, options.recompute, pool)
              : make_aten_executor(*layout, config.output_scale, device_index, options.replay);
    }
    call_shape.parameters = table.length();
    call_shape.config_features = config_features;
    for (const LayerShape& layer : plan_shape.layers)
      call_shape.edge_sets.push_back(layer.edge_kinds.size());
  }

  const NetworkConfig config;
  const PlanShape plan_shape;
  std::unique_ptr<const NetworkLayout> layout;  // of a stack of plain SAGE layers
  ParameterTable table;
  CallShape call_shape;
  std::unique_ptr<Executor> executor;
};

namespace {

// Networks of layers have no pass on GPUs yet, and no bf16 products.
void refuse_what_is_plain(const NetworkConfig& config, int device_index) {
  const std::string what = "a network other than a stack of plain SAGE layers runs ";
  if (device_index >= 0) throw ConfigError(what + "on the CPU: set dist.device to cpu");
  if (config.precision != Precision::fp32) throw ConfigError(what + "with precision: fp32");
}

}  // namespace

Network::Network(const NetworkConfig& config, int config_features, int device_index,
                 ThreadPool& pool, const NetworkOptions& options) {
  if (config.layers.empty() && config.blocks.empty())
    throw ConfigError("model: a network needs at least one block");
  if (config.is_composed()) refuse_what_is_plain(config, device_index);
  impl_ = std::make_unique<Impl>(config, config_features, device_index, pool, options);
}

Network::~Network() = default;

const NetworkConfig& Network::config() const {
  return impl_->config;
}
const ParameterTable& Network::parameters() const {
  return impl_->table;
}
int Network::config_features() const {
  return static_cast<int>(impl_->call_shape.config_features);
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
    for (std::int64_t c = 0; c < kNodeFeatures; ++c) columns.push_back(c);
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

std::shared_ptr<const GraphInput> Network::prepare_graph(
    std::span<const float> node_features, std::span<const std::uint8_t> opcodes) const {
  auto graph = std::make_shared<GraphInput>(node_features, opcodes);
  graph->set_device(impl_->executor->upload(*graph));
  return graph;
}

void Network::stage(UnitInput& input) const {
  input.staged = impl_->executor->stage(input);
  input.prepared = impl_->executor->prepare(input);
}

int Network::members_together(const Plan& plan) const {
  return impl_->executor->members_together(plan);
}

UnitScores Network::scores(std::span<const float> flat, int first_member, int count,
                           const UnitInput& input,
                           std::span<const std::uint64_t> dropout_keys) const {
  const MemberRange members{flat, first_member, count, dropout_keys};
  check_call(impl_->call_shape, members, input);
  return impl_->executor->scores(members, input);
}

void Network::gradient(std::span<const float> flat, int first_member, int count,
                       const UnitInput& input, const LossGradient& loss_gradient,
                       std::span<const std::span<float>> gradients, bool common,
                       std::span<const std::uint64_t> dropout_keys) const {
  const MemberRange members{flat, first_member, count, dropout_keys};
  check_call(impl_->call_shape, members, input);
  bool fits = static_cast<int>(gradients.size()) == count;
  for (const std::span<float> gradient : gradients) {
    fits = fits && static_cast<std::int64_t>(gradient.size()) == parameters().length();
  }
  if (!fits) throw Error(ErrorKind::failed, "network call: gradients are not [count, P]");
  impl_->executor->gradient(members, input, loss_gradient, gradients, common);
}

}  // namespace tpudist
