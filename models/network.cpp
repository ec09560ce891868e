#include "models/network.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "models/executors/aten_executor.hpp"
#include "models/executors/cpu_executor.hpp"
#include "models/executors/executor.hpp"
#include "models/inputs/graph_input.hpp"
#include "models/network/network_layout.hpp"

namespace tpudist {

struct Network::Impl {
  Impl(const NetworkConfig& config, int config_features, int device_index, ThreadPool& pool,
       const NetworkOptions& options)
      : config(config),
        layout(config, config_features),
        executor(
            device_index < 0
                ? make_cpu_executor(layout, config.output_scale, options.recompute, pool)
                : make_aten_executor(layout, config.output_scale, device_index, options.replay)) {}

  const NetworkConfig config;
  const NetworkLayout layout;
  const std::unique_ptr<Executor> executor;
};

Network::Network(const NetworkConfig& config, int config_features, int device_index,
                 ThreadPool& pool, const NetworkOptions& options) {
  if (config.layers.empty()) throw ConfigError("model: a network needs at least one block");
  impl_ = std::make_unique<Impl>(config, config_features, device_index, pool, options);
}

Network::~Network() = default;

const NetworkConfig& Network::config() const {
  return impl_->config;
}
const ParameterTable& Network::parameters() const {
  return impl_->layout.table;
}
int Network::config_features() const {
  return static_cast<int>(impl_->layout.config_features);
}
PlanShape Network::plan_shape() const {
  return impl_->config.plan_shape();
}

void Network::initialise(std::span<float> flat, std::uint64_t key) const {
  if (static_cast<std::int64_t>(flat.size()) != parameters().length()) {
    throw Error(ErrorKind::failed, "initialise: the buffer is not one member's parameters");
  }
  initialise_parameters(parameters(), flat, key);
}

std::shared_ptr<const GraphInput> Network::prepare_graph(
    std::span<const float> node_features, std::span<const std::uint8_t> opcodes) const {
  auto graph = std::make_shared<GraphInput>(node_features, opcodes);
  graph->set_device(impl_->executor->upload(*graph));
  return graph;
}

void Network::stage(UnitInput& input) const {
  input.staged = impl_->executor->stage(input);
}

int Network::members_together(const Plan& plan) const {
  return impl_->executor->members_together(plan);
}

UnitScores Network::scores(std::span<const float> flat, int first_member, int count,
                           const UnitInput& input) const {
  const MemberRange members{flat, first_member, count};
  check_call(impl_->layout, members, input);
  return impl_->executor->scores(members, input);
}

void Network::gradient(std::span<const float> flat, int first_member, int count,
                       const UnitInput& input, const LossGradient& loss_gradient,
                       std::span<const std::span<float>> gradients, bool common) const {
  const MemberRange members{flat, first_member, count};
  check_call(impl_->layout, members, input);
  bool fits = static_cast<int>(gradients.size()) == count;
  for (const std::span<float> gradient : gradients) {
    fits = fits && static_cast<std::int64_t>(gradient.size()) == parameters().length();
  }
  if (!fits) throw Error(ErrorKind::failed, "network call: gradients are not [count, P]");
  impl_->executor->gradient(members, input, loss_gradient, gradients, common);
}

}  // namespace tpudist
