#include "models/network/composed_network.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/layers/layer.hpp"
#include "models/layers/layers.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/operators.hpp"
#include "models/plans/row_keys.hpp"

namespace tpudist {
namespace {

// A hash of each row's floats, with -0.0 as 0.
std::vector<std::uint64_t> hashes_of_rows(std::span<const float> values, std::int64_t width) {
  std::vector<std::uint64_t> hashes;
  std::vector<float> row(static_cast<std::size_t>(width));
  for (std::size_t at = 0; at < values.size(); at += row.size()) {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = values[at + c] + 0.0f;
    hashes.push_back(hash64(std::as_bytes(std::span(row))));
  }
  return hashes;
}

std::vector<std::vector<std::uint64_t>> keys_of_unit(const UnitInput& input,
                                                     const FeatureSchema& schema) {
  std::vector<std::uint64_t> nodes(static_cast<std::size_t>(input.plan->nodes));
  const std::vector<std::int64_t> begins = input.graph_begins();
  for (std::size_t g = 0; g < begins.size(); ++g) {
    const GraphInput& graph = *input.graphs[g];
    const std::span<const float> raw = graph.raw_features();
    const auto own = hashes_of_rows(raw, std::ssize(raw) / graph.nodes());
    for (std::size_t i = 0; i < own.size(); ++i)
      nodes[static_cast<std::size_t>(begins[g]) + i] =
          own[i] ^ (static_cast<std::uint64_t>(graph.opcode()[i]) << 56);
  }
  return row_keys(*input.plan, nodes, hashes_of_rows(input.states, schema.config_features));
}

// Whether the plan's readout makes only cells that kept rows lack.
bool takes_cells(const KeptUse& use) {
  return !use.levels.empty() && !use.levels.back().taken.empty();
}

// `count` rows, each with the source of its number.
Csr identity(std::int64_t count) {
  Csr matrix;
  for (std::int32_t i = 0; i < count; ++i) {
    matrix.begin.push_back(i);
    matrix.source.push_back(i);
  }
  matrix.begin.push_back(static_cast<std::int32_t>(count));
  return matrix;
}

// The readout of a plan that takes kept cells as two: the computed cells from rows, as if each were a
// configuration, and the configurations from all cells.
std::pair<Readout, Readout> two_readouts(const Readout& readout, const KeptLevel& level) {
  Readout of_rows, of_cells;
  of_rows.cells.forward = readout.cells.forward;
  of_rows.common.forward = readout.common.forward;
  of_rows.scores.forward = identity(std::ssize(level.computed));
  of_rows.slate_of_config.assign(level.computed.size(), 0);
  const std::int64_t cells = std::ssize(level.taken) - 1;
  of_cells.cells.forward = identity(cells);
  of_cells.common.forward.begin = {0, 1};
  of_cells.common.forward.source = {static_cast<std::int32_t>(cells)};
  of_cells.scores.forward = readout.scores.forward;
  of_cells.slate_of_config = readout.slate_of_config;
  // Each configuration has as many cells, and counts all nodes.
  of_cells.left_out = {readout.left_out[0] - readout.scores.forward.begin[1] - 1};
  return {std::move(of_rows), std::move(of_cells)};
}

}  // namespace

ComposedNetwork::ComposedNetwork(const NetworkConfig& config, const FeatureSchema& schema,
                                 const DeviceContext& context)
    : config_(config),
      shape_(config.plan_shape()),
      context_(context),
      copies_(std::make_unique<DeviceCopies>(context.device)),
      schema_(schema),
      encoder_(config.encoder, schema),
      blocks_(config.blocks) {
  int depth = 0;
  const auto begin_segment = [&] {
    first_entry_.push_back(table_.entries().size());
    depth_.push_back(depth);
  };
  begin_segment();
  for (const ParameterEntry& entry : encoder_.parameters()) table_.add(entry);
  std::int64_t channels = encoder_.channels();
  for (const auto& block : blocks_) {
    begin_segment();
    std::vector<ParameterEntry> entries = block->parameters();
    // The weights of a fused layer lie side by side, so that one product takes all of them.
    if (config.is_sage_stack())
      std::ranges::stable_partition(entries, [](const auto& e) { return e.shape.size() == 2; });
    for (const ParameterEntry& entry : entries) table_.add(entry);
    channels = block->channels();
    depth += static_cast<int>(block->steps().size());
    drops_ = drops_ || block->drops() > 0;
  }
  begin_segment();
  channels *= static_cast<std::int64_t>(config.pools.size());
  channels += config.head.violations ? 1 : 0;
  if (config.head.takes_config()) {
    if (!schema.tile) {
      throw ConfigError(
          std::string("model.readout.") +
          (config.head.joins_config ? "join_config" : "config_widths") +
          ": only the configurations of a tile collection have one state each; remove it for a "
          "layout collection");
    }
    add_mlp("config.", encoder_.state_channels(), config.head.config_widths, true);
    channels +=
        config.head.joins_config ? encoder_.state_channels() : config.head.config_widths.back();
  }
  add_mlp("head.", channels, config.head.widths, config.head.bias);
  if (!config.head.widths.empty()) channels = config.head.widths.back();
  ParameterEntry weight = linear_weight("head.weight", channels, 1),
                 bias = linear_bias("head.bias", channels, 1);
  weight.group = bias.group = ParameterGroup::output;
  table_.add(weight);
  if (config.head.bias) table_.add(bias);
  first_entry_.push_back(table_.entries().size());
  placed_at_ = placed_offsets(table_);
}

void ComposedNetwork::add_mlp(const std::string& name, std::int64_t in,
                              const std::vector<std::int64_t>& widths, bool bias) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    table_.add(linear_weight(name + std::to_string(i) + ".weight", in, widths[i]));
    if (bias) table_.add(linear_bias(name + std::to_string(i) + ".bias", in, widths[i]));
    in = widths[i];
  }
}

std::shared_ptr<const PreparedPlan> ComposedNetwork::prepare(const UnitInput& input,
                                                             at::ScalarType dtype,
                                                             ThreadPool& pool) const {
  const auto& plan = input.plan;
  std::vector<std::vector<std::uint64_t>> keys;
  // A call that takes kept rows drops nothing.
  if (drops_ && !input.kept.rows) keys = keys_of_unit(input, schema_);
  auto part = std::make_shared<PreparedPlan>(PreparedPlan{
      plan, encoder_.prepare(input, dtype), PlanContext(*plan, shape_, std::move(keys)), nullptr});
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (plan->rows(static_cast<std::size_t>(depth_[i + 2])) > 0)
      blocks_[i]->prepare(*plan, dtype, part->context);
  }
  if (config_.reads_config_nodes()) {
    std::vector<double> configurable;
    for (const std::int32_t state : plan->layers.back()->state)
      configurable.push_back(state < 0 ? 0.0 : 1.0);
    part->context.factors.back() = at::tensor(configurable, at::kDouble).to(dtype).view({1, -1, 1});
  }
  if (config_.head.violations)
    part->tensors.graph_features =
        at::tensor(violation_ratios(*config_.head.violations, input, schema_), at::kDouble)
            .view({-1, 1});
  if (config_.has_head_of_nodes() && config_.head.bias)
    part->tensors.node_counts =
        takes_cells(input.kept) ? at::full({plan->configs}, plan->readout.left_out[0], at::kDouble)
                                : at::tensor(node_counts(plan->readout), at::kDouble);
  if (!context_.is_device()) {
    part->backend = std::make_shared<const CpuBackend>(pool, config_.precision);
    return part;
  }
  DeviceArrays arrays;
  add_arrays(*part, arrays);
  arrays.upload(*copies_);
  part->backend = context_.make_backend(std::move(arrays), config_.precision);
  return part;
}

bool ComposedNetwork::adds_up_rows() const {
  return config_.adds_up_rows();
}

std::span<const ParameterEntry> ComposedNetwork::entries(int segment) const {
  const auto s = static_cast<std::size_t>(segment);
  return std::span(table_.entries())
      .subspan(first_entry_[s], first_entry_[s + 1] - first_entry_[s]);
}

LayerWeights ComposedNetwork::views(const float* member, bool trained) const {
  LayerWeights weights;
  for (const ParameterEntry& entry : table_.entries()) {
    std::vector<std::int64_t> sizes{1};
    sizes.insert(sizes.end(), entry.shape.begin(), entry.shape.end());
    at::Tensor view = at::from_blob(const_cast<float*>(member) + entry.offset, sizes, at::kFloat);
    view.set_requires_grad(trained && entry.group != ParameterGroup::statistics);
    weights.add(entry.name, view);
  }
  return weights;
}

at::Tensor ComposedNetwork::place(std::span<const float> flat) const {
  const std::int64_t length = table_.length(), placed = placed_at_.back(),
                     members = static_cast<std::int64_t>(flat.size()) / length;
  std::vector<HostPart> parts;
  for (std::int64_t m = 0; m < members; ++m) {
    for (std::size_t i = 0; i < table_.entries().size(); ++i) {
      const ParameterEntry& entry = table_.entries()[i];
      const auto begin = static_cast<std::size_t>(m * placed + placed_at_[i]);
      parts.push_back({flat.data() + m * length + entry.offset, begin * sizeof(float),
                       static_cast<std::size_t>(entry.size()) * sizeof(float)});
    }
  }
  const auto bytes = static_cast<std::size_t>(members * placed) * sizeof(float);
  return copies_->upload(parts, bytes).view(at::kFloat).view({members, placed});
}

LayerWeights ComposedNetwork::weights_of(const at::Tensor& rows, bool trained,
                                         std::int64_t slots) const {
  LayerWeights weights;
  const at::Tensor placed =
      slots == 1 ? rows : rows.unsqueeze(1).expand({-1, slots, -1}).reshape({-1, rows.size(1)});
  for (std::size_t i = 0; i < table_.entries().size(); ++i) {
    const ParameterEntry& entry = table_.entries()[i];
    std::vector<std::int64_t> sizes{placed.size(0)};
    sizes.insert(sizes.end(), entry.shape.begin(), entry.shape.end());
    const at::Tensor view = placed.detach().narrow(1, placed_at_[i], entry.size()).view(sizes);
    weights.add(entry.name,
                view.set_requires_grad(trained && entry.group != ParameterGroup::statistics));
  }
  return weights;
}

// The output of an MLP on the state of every configuration, [M, configurations, width] in double.
at::Tensor ComposedNetwork::config_branch(const at::Tensor& states, const NetworkCall& call) const {
  at::Tensor x = states;
  for (std::size_t i = 0; i < config_.head.config_widths.size(); ++i) {
    const std::string name = "config." + std::to_string(i);
    x = activate_rows(apply_linear(x, call.weights, name, call.backend()), config_.head.activation,
                      call.backend());
  }
  const StateIndex& state = *call.unit.tensors.state_of_config;
  return gather_rows(x, {state.index, state.transposed}, call.backend()).to(at::kDouble);
}

at::Tensor ComposedNetwork::head(const at::Tensor& pooled, const NetworkCall& call) const {
  const LayerWeights& weights = call.weights;
  const auto in_double = [&](const std::string& name) { return weights[name].to(at::kDouble); };
  const auto linear = [&](const at::Tensor& x, const std::string& name, bool has_bias) {
    return linear_rows(x, in_double(name + ".weight"),
                       has_bias ? in_double(name + ".bias") : at::Tensor(), call.backend());
  };
  at::Tensor x = pooled;
  for (std::size_t i = 0; i < config_.head.widths.size(); ++i)
    x = activate_rows(linear(x, "head." + std::to_string(i), config_.head.bias),
                      config_.head.activation, call.backend());
  // A head of nodes applies its Linear before the sum over the nodes, so its bias counts once per
  // node.
  const bool of_nodes = config_.has_head_of_nodes();
  at::Tensor scores = linear(x, "head", config_.head.bias && !of_nodes).squeeze(2);
  if (config_.head.bias && of_nodes)
    scores =
        scores + scaled_bias(in_double("head.bias"), call.unit.tensors.node_counts, call.backend());
  return scores * config_.output_scale;
}

at::Tensor ComposedNetwork::pooled(const Flow& before, const NetworkCall& call) const {
  std::vector<at::Tensor> parts;
  if (config_.head.takes_config()) parts.push_back(config_branch(before.states, call));
  const RowStates rows =
      config_.reads_config_nodes()
          ? gather_rows(before.rows, call.unit.plan->layers.back()->self, call.backend())
          : before.rows;
  if (call.kept && takes_cells(*call.kept)) return at::cat(pooled_cells(rows, call), 2);
  for (const Pool& pool : config_.pools) parts.push_back(pooled(rows, pool, call));
  if (const at::Tensor& more = call.unit.tensors.graph_features; more.defined())
    parts.push_back(more.expand({rows.size(0), more.size(0), more.size(1)}));
  return parts.size() == 1 ? parts[0] : at::cat(parts, 2);
}

// [M, configurations, C] in double. A pool of configurable nodes sets the rows of other nodes to
// zero.
at::Tensor ComposedNetwork::pooled(const RowStates& rows, const Pool& pool,
                                   const NetworkCall& call) const {
  const Readout& readout = call.unit.plan->readout;
  if (!pool.of_config_nodes && !pool.l2)
    return pool_rows(rows, readout, pool.aggregation, call.backend());
  RowStates own = rows;
  at::Tensor configurable;
  if (pool.of_config_nodes) {
    configurable = call.unit.context.factors.back();
    own = map_rows([](const auto& x, const auto&) { return x[0] * x[1]; }, {rows, configurable}, {},
                   call.backend());
  }
  at::Tensor y = pool_rows(own, readout, Aggregation::sum, call.backend());
  if (pool.of_config_nodes && pool.aggregation == Aggregation::mean)
    y = y / pool_rows(configurable, readout, Aggregation::sum, call.backend()).clamp_min(1);
  return pool.l2 ? normalise_l2(y, call.backend()) : y;
}

// Each pool in two steps: the new cells from rows, the configurations from all cells.
std::vector<at::Tensor> ComposedNetwork::pooled_cells(const RowStates& rows,
                                                      const NetworkCall& call) const {
  const KeptUse& kept = *call.kept;
  const KeptLevel& level = kept.levels.back();
  const auto [of_rows, of_cells] = two_readouts(call.unit.plan->readout, level);
  std::vector<at::Tensor> parts;
  for (const Pool& pool : config_.pools) {
    const bool max = pool.aggregation == Aggregation::max;
    if (!level.computed.empty())
      parts.push_back(
          pool_rows(rows, of_rows, max ? Aggregation::max : Aggregation::sum, call.backend()));
  }
  const at::Tensor computed = parts.empty() ? at::Tensor() : at::cat(parts, 2).contiguous();
  const std::int64_t channels = blocks_.back()->channels(),
                     width = channels * std::ssize(config_.pools);
  at::Tensor cells = at::empty({1, std::ssize(level.taken), width}, at::kDouble);
  kept.rows->exchange(kept.levels.size() - 1, call.member, level,
                      computed.defined()
                          ? reinterpret_cast<const float*>(computed.const_data_ptr<double>())
                          : nullptr,
                      reinterpret_cast<float*>(cells.mutable_data_ptr<double>()), 2 * width);
  parts.clear();
  for (const Pool& pool : config_.pools) {
    const at::Tensor own = cells.narrow(2, channels * std::ssize(parts), channels).contiguous();
    const at::Tensor y = pool_rows(own, of_cells, pool.aggregation, call.backend());
    parts.push_back(pool.l2 ? normalise_l2(y, call.backend()) : y);
  }
  return parts;
}

ComposedNetwork::Flow ComposedNetwork::run(int segment, const Flow& before,
                                           const NetworkCall& call) const {
  const PreparedPlan& unit = call.unit;
  if (segment == 0) {
    const at::Tensor states = encoder_.states(unit.tensors, call.weights, call.backend());
    return {encoder_.rows(unit.tensors, states, *unit.plan, call.weights, call.backend()), states};
  }
  if (segment == segments() - 1) return {head(pooled(before, call), call), before.states};
  const LayerCall layer{*unit.plan, unit.context, call.backend(), before.states, call.dropout_keys};
  const Layer& block = *blocks_[static_cast<std::size_t>(segment) - 1];
  return {block.forward(before.rows, call.weights, layer), before.states};
}

// The rows before a segment, given those that the plan computes: others if it reads neighbours.
RowStates ComposedNetwork::take_kept(const RowStates& computed, int segment,
                                     const NetworkCall& call) const {
  const auto at = static_cast<std::size_t>(depth(segment));
  if (!call.kept || !call.kept->rows || segment == 0 ||
      (segment + 1 < segments() && depth(segment + 1) == depth(segment)))
    return computed;
  const KeptLevel& level = call.kept->levels[at];
  const std::int64_t channels =
      segment == 1 ? encoder_.channels() : blocks_[segment - 2]->channels();
  RowStates taken = make_rows(1, std::ssize(level.taken), channels, at::kFloat);
  call.kept->rows->exchange(at, call.member, level,
                            computed.defined() ? computed.const_data_ptr<float>() : nullptr,
                            taken.mutable_data_ptr<float>(), channels);
  return taken;
}

at::Tensor ComposedNetwork::scores(const NetworkCall& call) const {
  Flow flow;
  for (int segment = 0; segment < segments(); ++segment) {
    flow.rows = take_kept(flow.rows, segment, call);
    const bool computes = segment + 1 == segments() ||
                          call.unit.plan->rows(static_cast<std::size_t>(depth(segment + 1))) > 0;
    if (segment == 0 && !computes) {
      flow.states = encoder_.states(call.unit.tensors, call.weights, call.backend());
    } else if (computes) {
      flow = run(segment, flow, call);
    }
  }
  return flow.rows;
}

}  // namespace tpudist
