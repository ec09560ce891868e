#include "models/inputs/encoder.hpp"

#include <ATen/ATen.h>

#include <string>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/kernels/row_functions.hpp"
#include "models/layers/layer.hpp"
#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

// The integers that the code embedding has a row for: -2 (no state) .. 5.
constexpr std::int64_t kFirstCode = -2, kCodes = 8;

// log(1 + x) of x >= 0.
at::Tensor logs(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return at::log1p(x);
  const at::Tensor from = x.contiguous();
  at::Tensor y = at::empty_like(from);
  log1p_values(from.const_data_ptr<float>(), from.numel(), y.mutable_data_ptr<float>());
  return y;
}

at::Tensor transformed(const at::Tensor& x, FeatureTransform transform) {
  if (transform == FeatureTransform::log_positive) return logs(at::relu(x));
  if (transform != FeatureTransform::log) return x;
  return at::copysign(logs(x.abs()), x);
}

// Rows of the code embedding for integers stored as floats.
std::vector<std::int32_t> codes_of(const at::Tensor& values, const std::string& what) {
  const at::Tensor flat = values.to(at::kFloat).contiguous().view(-1);
  std::vector<std::int32_t> codes;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const float value = flat.const_data_ptr<float>()[i];
    const float code = value - static_cast<float>(kFirstCode);
    if (!(code >= 0 && code < kCodes) || code != static_cast<float>(static_cast<int>(code))) {
      throw DataError(what + " " + std::to_string(value) +
                      " has no row in the code embedding, which knows the integers -2 to 5: use "
                      "model.encoder.code_width 0");
    }
    codes.push_back(static_cast<std::int32_t>(code));
  }
  return codes;
}

// The tables of a joined plan's units lie one after another: one for each run of rows.
std::int64_t tables_of(const JoinedUnits* units) {
  return units ? std::ssize(units->nodes->runs) : 1;
}

// The index of each value, `per_row` of each row, in the table of its row's unit, of `table` rows.
// `rows`: of the plan's units, null for one unit. Padding takes part in nothing.
std::unique_ptr<StateIndex> table_index(std::vector<std::int32_t> values, std::int64_t table,
                                        std::int64_t per_row, const UnitRows* rows) {
  if (!rows) return std::make_unique<StateIndex>(std::move(values), table);
  std::vector<std::int32_t> index(values.size(), -1);
  for (std::size_t run = 0; run < rows->runs.size(); ++run) {
    const auto [begin, count] = rows->runs[run];
    const auto first = static_cast<std::int32_t>(static_cast<std::int64_t>(run) * table);
    for (std::int64_t i = begin * per_row; i < (begin + count) * per_row; ++i)
      index[i] = first + values[i];
  }
  return std::make_unique<StateIndex>(std::move(index), std::ssize(rows->runs) * table);
}

// Rows of an embedding [M, n, w] as [M, rows, w].
at::Tensor embed(const at::Tensor& weight, const StateIndex& index, const JoinedUnits* units,
                 const Backend& backend) {
  const std::int64_t tables = tables_of(units);
  const at::Tensor table =
      tables == 1
          ? weight
          : weight.reshape({weight.size(0) / tables, tables * weight.size(1), weight.size(2)});
  return gather_rows(table, {index.index, index.transposed}, backend);
}

// `per_row` codes of each row, side by side: [M, rows, per_row * w].
at::Tensor embed_codes(const at::Tensor& weight, const StateIndex& index, std::int64_t per_row,
                       const JoinedUnits* units, const Backend& backend) {
  const at::Tensor all = embed(weight, index, units, backend);
  return all.view({all.size(0), -1, per_row * all.size(2)});
}

// (x - mean) * scale for each member, with the statistics under `name`: [M, rows, F], or
// [1, rows, F] where each member has a block of the rows.
at::Tensor for_members(const at::Tensor& x, FeatureTransform transform, const LayerWeights& weights,
                       const std::string& name, const JoinedUnits* units) {
  const std::int64_t slots = units ? units->slots : 1, blocks = units ? units->blocks : 1,
                     members = weights.members() / slots;
  const at::Tensor rows = blocks == 1 ? x.unsqueeze(0).expand({members, x.size(0), x.size(1)})
                                      : x.view({members, -1, x.size(1)});
  at::Tensor y = rows;
  if (takes_statistics(transform)) {
    const auto statistic = [&](const char* what) {
      return weights[name + what].unflatten(0, {members, slots}).narrow(1, 0, 1);
    };
    y = (rows - statistic(".mean")) * statistic(".scale");
  }
  return as_planes(blocks == 1 ? y : y.reshape({1, x.size(0), x.size(1)}));
}

ParameterEntry statistic(const std::string& name, std::int64_t columns, double value) {
  ParameterEntry entry{name, {columns}};
  entry.group = ParameterGroup::statistics;
  entry.initialiser = {Initialiser::Kind::constant, value};
  return entry;
}

ParameterEntry embedding(const std::string& name, std::int64_t rows, std::int64_t width) {
  ParameterEntry entry{name, {rows, width}};
  entry.group = ParameterGroup::embeddings;
  entry.initialiser = {Initialiser::Kind::normal};
  return entry;
}

}  // namespace

Encoder::Encoder(const EncoderConfig& config, const FeatureSchema& schema)
    : config_(config), schema_(schema) {
  if (!config_.node_columns.empty()) return;
  for (std::int64_t c = 0; c < schema_.node_features; ++c) config_.node_columns.push_back(c);
}

std::int64_t Encoder::node_columns() const {
  return static_cast<std::int64_t>(config_.node_columns.size());
}

std::int64_t Encoder::added_columns() const {
  return config_.columns.walk_steps +
         (config_.dimension_features ? 2 * schema_.dimension_columns.count : 0);
}

std::int64_t Encoder::node_channels() const {
  const std::int64_t columns = node_columns() + added_columns();
  return config_.opcode_width + (config_.node_width ? config_.node_width : columns) +
         config_.code_width * schema_.layout_columns.count;
}

std::int64_t Encoder::state_channels() const {
  return schema_.config_features * (embeds_states() ? config_.code_width : 1);
}

// Layout values are small integers; tile values are sizes.
bool Encoder::embeds_states() const {
  return config_.code_width > 0 && !schema_.tile;
}

std::int64_t Encoder::channels() const {
  return config_.width ? config_.width : joined_channels();
}

std::int64_t Encoder::joined_channels() const {
  return node_channels() + (config_.early_join ? state_channels() : 0);
}

std::vector<ParameterEntry> Encoder::parameters() const {
  const std::int64_t columns = node_columns() + added_columns();
  std::vector<ParameterEntry> entries;
  if (config_.opcode_width)
    entries.push_back(embedding("encoder.opcode.weight", schema_.opcodes, config_.opcode_width));
  if (config_.code_width)
    entries.push_back(embedding("encoder.code.weight", kCodes, config_.code_width));
  const auto add_statistics = [&](const std::string& name, std::int64_t count) {
    entries.push_back(statistic(name + ".mean", count, 0));
    entries.push_back(statistic(name + ".scale", count, 1));
  };
  if (takes_statistics(config_.node_transform)) add_statistics("encoder.node", node_columns());
  if (takes_statistics(config_.config_transform))
    add_statistics("encoder.config", schema_.config_features);
  if (config_.node_width) {
    entries.push_back(linear_weight("encoder.node.weight", columns, config_.node_width));
    entries.push_back(linear_bias("encoder.node.bias", columns, config_.node_width));
  }
  if (config_.width == 0) return entries;
  entries.push_back(linear_weight("encoder.join.weight", joined_channels(), config_.width));
  entries.push_back(linear_bias("encoder.join.bias", joined_channels(), config_.width));
  config_.start.apply(entries[entries.size() - 2], entries.back());
  return entries;
}

void Encoder::add_work(NetworkWork& network) const {
  network.input_row += product_work(node_columns() + added_columns(), config_.node_width);
  network.input_row += product_work(node_channels(), config_.width);
  if (config_.early_join) network.state += product_work(state_channels(), config_.width);
  const auto joined = static_cast<double>(joined_channels());
  const double sum = config_.activation == Activation::none ? 0 : static_cast<double>(channels());
  network.steps.back().add_rows(channels(), config_.width ? sum : joined);
  network.kept_of_input += 2 * static_cast<double>(node_channels());
  if (embeds_states() || takes_statistics(config_.config_transform) || config_.config_scale != 1)
    network.kept_of_state += static_cast<double>(state_channels());
}

std::shared_ptr<const EncodedGraph> Encoder::encode(const GraphInput& graph,
                                                    at::ScalarType dtype) const {
  const at::Tensor raw =
      at::from_blob(const_cast<float*>(graph.raw_features().data()),
                    {graph.nodes(), schema_.node_features + config_.columns.count()}, at::kFloat);
  EncodedGraph made{encoded_key(), {}, {}};
  const at::Tensor taken = raw.to(dtype).index_select(1, at::tensor(config_.node_columns));
  std::vector<at::Tensor> parts{transformed(taken, config_.node_transform)};
  if (config_.dimension_features) {
    const ColumnRange& columns = schema_.dimension_columns;
    const at::Tensor sizes = raw.narrow(1, columns.first, columns.count).to(dtype).relu();
    parts.push_back(logs(at::remainder(sizes, 128)));
    parts.push_back(logs(at::floor_divide(sizes, 128)));
  }
  if (config_.columns.walk_steps > 0)
    parts.push_back(raw.narrow(1, schema_.node_features, config_.columns.walk_steps).to(dtype));
  made.features = (parts.size() == 1 ? parts[0] : at::cat(parts, 1)).contiguous();
  if (config_.code_width) {
    const ColumnRange& layout = schema_.layout_columns;
    made.codes = codes_of(raw.narrow(1, layout.first, layout.count),
                          "the layout value (columns " + to_text(layout) + ") of a node");
  }
  return std::make_shared<const EncodedGraph>(std::move(made));
}

void Encoder::to_arrays(const std::shared_ptr<const EncodedGraph>& nodes, GraphArrays& arrays) {
  const at::Tensor& features = nodes->features;
  arrays.encoded = {
      std::span(features.const_data_ptr<float>(), static_cast<std::size_t>(features.numel())),
      nodes};
  arrays.codes = nodes->codes;
}

std::shared_ptr<const EncodedGraph> Encoder::of_arrays(const GraphArrays& arrays) const {
  const std::size_t nodes = arrays.opcode.size();
  const auto columns = static_cast<std::size_t>(node_columns() + added_columns());
  const std::size_t codes = config_.code_width ? schema_.layout_columns.count : 0;
  if (arrays.encoded.size() != nodes * columns || arrays.codes.size() != nodes * codes)
    throw DataError("the encoded features of a graph are not those of this encoder");
  // The tensor keeps the array's memory.
  const at::Tensor features = at::from_blob(
      const_cast<float*>(arrays.encoded.data()),
      {static_cast<std::int64_t>(nodes), static_cast<std::int64_t>(columns)},
      [kept = arrays.encoded](void*) {}, at::kFloat);
  return std::make_shared<const EncodedGraph>(EncodedGraph{encoded_key(), features, arrays.codes});
}

std::uint64_t Encoder::encoded_key() const {
  Hasher hasher;
  hasher.update(config_.node_transform);
  hasher.update(std::span<const std::int64_t>(config_.node_columns));
  if (config_.dimension_features) {
    hasher.update(schema_.dimension_columns.first);
    hasher.update(schema_.dimension_columns.count);
  }
  if (config_.columns.count() > 0) {
    hasher.update(config_.columns.walk_steps);
    hasher.update(static_cast<int>(config_.columns.walk_loops));
    hasher.update(config_.columns.largest ? static_cast<int>(config_.columns.tensor) : -1);
  }
  hasher.update(config_.code_width > 0 ? schema_.layout_columns.first : -1);
  hasher.update(config_.code_width > 0 ? schema_.layout_columns.count : 0);
  return hasher.digest();
}

std::uint64_t Encoder::encoded_bytes(std::int64_t nodes) const {
  const std::size_t codes = config_.code_width ? schema_.layout_columns.count : 0;
  return static_cast<std::uint64_t>(nodes) *
         (sizeof(float) * static_cast<std::size_t>(node_columns() + added_columns()) +
          sizeof(std::int32_t) * codes);
}

// The EncodedGraph kept with a graph, if it equals the result of encode().
std::shared_ptr<const EncodedGraph> Encoder::encoded(const GraphInput& graph,
                                                     at::ScalarType dtype) const {
  const auto& kept = graph.encoded();
  const bool same = kept && kept->features.scalar_type() == dtype && kept->key == encoded_key();
  return same ? kept : encode(graph, dtype);
}

UnitTensors Encoder::prepare(const UnitInput& unit, at::ScalarType dtype) const {
  UnitTensors tensors;
  tensors.units = unit.plan->units;
  const JoinedUnits* const units = tensors.units.get();
  std::vector<at::Tensor> features;
  std::vector<std::int32_t> opcodes, codes;
  const std::int64_t columns = node_columns() + added_columns(),
                     code_columns = config_.code_width ? schema_.layout_columns.count : 0;
  const auto pad_to = [&](std::int64_t rows) {
    const std::int64_t count = rows - std::ssize(opcodes);
    if (count <= 0) return;
    features.push_back(at::zeros({count, columns}, dtype));
    opcodes.resize(static_cast<std::size_t>(rows), -1);
    codes.resize(static_cast<std::size_t>(rows * code_columns), -1);
  };
  const std::vector<std::int64_t> begins = unit.graph_begins();
  for (std::size_t g = 0; g < begins.size(); ++g) {
    pad_to(begins[g]);
    const GraphInput& graph = *unit.graphs[g];
    const auto nodes = encoded(graph, dtype);
    features.push_back(nodes->features);
    codes.insert(codes.end(), nodes->codes.begin(), nodes->codes.end());
    opcodes.insert(opcodes.end(), graph.opcode().begin(), graph.opcode().end());
  }
  if (units) pad_to(unit.plan->nodes);
  tensors.node_features = features.size() == 1 ? features[0] : at::cat(features);
  const UnitRows* const node_rows = units ? units->nodes.get() : nullptr;
  if (config_.opcode_width)
    tensors.opcode = table_index(std::move(opcodes), schema_.opcodes, 1, node_rows);
  const at::Tensor states = at::from_blob(const_cast<float*>(unit.states.data()),
                                          {unit.plan->states, schema_.config_features}, at::kFloat);
  const double none = embeds_states() ? static_cast<double>(kFirstCode) : 0.0;
  const at::Tensor with_none =
      at::cat({states, at::full({1, schema_.config_features}, none, at::kFloat)});
  if (units) {
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < units->states->runs.size(); ++i) {
      if (units->states->runs[i].count > 0) rows.push_back(units->none_state(i));
    }
    tensors.none_states = at::tensor(rows, at::kLong);
    with_none.index_fill_(0, tensors.none_states, none);
  }
  tensors.state_features = transformed(with_none.to(dtype), config_.config_transform);
  if (config_.code_width) {
    tensors.node_codes = table_index(std::move(codes), kCodes, code_columns, node_rows);
    if (embeds_states()) {
      tensors.state_codes =
          table_index(codes_of(with_none, "the configuration value"), kCodes,
                      schema_.config_features, units ? units->states.get() : nullptr);
    }
  }
  tensors.state = std::make_unique<StateIndex>(unit.plan->state, *unit.plan);
  tensors.state_of_config = std::make_unique<StateIndex>(unit.plan->state_of_config, *unit.plan);
  return tensors;
}

at::Tensor Encoder::states(const UnitTensors& unit, const LayerWeights& weights,
                           const Backend& backend) const {
  at::Tensor states = embeds_states()
                          ? embed_codes(weights["encoder.code.weight"], *unit.state_codes,
                                        schema_.config_features, unit.units.get(), backend)
                          : for_members(unit.state_features, config_.config_transform, weights,
                                        "encoder.config", unit.units.get());
  // A node without a state has zeros after each transform.
  if (!embeds_states() && takes_statistics(config_.config_transform)) {
    if (unit.units) {
      states.index_fill_(1, unit.none_states, 0);
    } else {
      states.narrow(1, states.size(1) - 1, 1).zero_();
    }
  }
  return config_.config_scale == 1 ? states : states * config_.config_scale;
}

at::Tensor Encoder::nodes(const UnitTensors& unit, const LayerWeights& weights,
                          const Backend& backend) const {
  const JoinedUnits* const units = unit.units.get();
  const std::int64_t added = added_columns();
  const bool apart = added > 0 && takes_statistics(config_.node_transform);
  at::Tensor features =
      for_members(apart ? unit.node_features.narrow(1, 0, node_columns()) : unit.node_features,
                  config_.node_transform, weights, "encoder.node", units);
  if (apart) {
    const at::Tensor others = for_members(unit.node_features.narrow(1, node_columns(), added),
                                          FeatureTransform::raw, weights, "", units);
    features = join_channels({as_planes(features), others}, backend);
  }
  if (config_.node_width) features = apply_linear(features, weights, "encoder.node", backend);
  std::vector<at::Tensor> parts{features};
  if (config_.opcode_width)
    parts.insert(parts.begin(),
                 embed(weights["encoder.opcode.weight"], *unit.opcode, units, backend));
  if (config_.code_width)
    parts.push_back(embed_codes(weights["encoder.code.weight"], *unit.node_codes,
                                schema_.layout_columns.count, units, backend));
  return join_channels(parts, backend);
}

RowStates Encoder::rows(const UnitTensors& unit, const at::Tensor& states, const Plan& plan,
                        const LayerWeights& weights, const Backend& backend) const {
  const at::Tensor inputs = nodes(unit, weights, backend);
  const GatherView node(plan.node, plan.rows_of_node),
      state(unit.state->index, unit.state->transposed);
  if (config_.width == 0) {
    std::vector<at::Tensor> parts{gather_rows(inputs, node, backend)};
    if (config_.early_join) parts.push_back(gather_rows(states, state, backend));
    return parts.size() == 1 ? parts[0] : join_channels(parts, backend);
  }
  // The Linear over [node | state] is a sum of two, each computed once for all rows that share it.
  const std::vector<at::Tensor> weight = weights["encoder.join.weight"].split_with_sizes(
      {node_channels(), config_.early_join ? state_channels() : 0}, 1);
  std::vector<GatheredTerm> terms{
      {linear_rows(inputs, weight[0], weights["encoder.join.bias"], backend), node}};
  if (config_.early_join)
    terms.push_back({linear_rows(states, weight[1], at::Tensor(), backend), state});
  return activate_rows(sum_of_gathered(terms, backend), config_.activation, backend);
}

}  // namespace tpudist
