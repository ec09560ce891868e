#include "models/inputs/unit_input.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "models/plans/join_plans.hpp"

namespace tpudist {
namespace {

void require_length(std::size_t found, std::int64_t nodes, std::int64_t width) {
  if (static_cast<std::int64_t>(found) == nodes * width) return;
  throw DataError("a graph of " + std::to_string(nodes) + " nodes needs " +
                  std::to_string(nodes * width) + " node features, not " + std::to_string(found));
}

std::vector<std::int32_t> checked_opcodes(std::span<const std::uint8_t> opcodes,
                                          const FeatureSchema& schema) {
  std::vector<std::int32_t> checked;
  checked.reserve(opcodes.size());
  const int most = std::max(schema.opcodes, 1);
  for (const std::uint8_t opcode : opcodes) {
    if (opcode >= most) {
      throw DataError("opcode " + std::to_string(opcode) + " of node " +
                      std::to_string(checked.size()) + " is not below " + std::to_string(most));
    }
    checked.push_back(opcode);
  }
  return checked;
}

Array<float> feature_rows_of(std::span<const float> node_features, std::int64_t nodes,
                             std::int64_t width) {
  const std::int64_t stride = pad16(width);
  const auto rows = std::make_shared<AlignedFloats>(static_cast<std::size_t>(nodes * stride), 0.0f);
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t c = 0; c < width; ++c) {
      const double x = node_features[node * width + c];
      (*rows)[node * stride + c] = static_cast<float>(std::copysign(std::log1p(std::abs(x)), x));
    }
  }
  return {std::span<const float>(*rows), rows};
}

}  // namespace

GraphArrays GraphArrays::of(std::span<const float> node_features,
                            std::span<const std::uint8_t> opcodes, const FeatureSchema& schema,
                            FeatureForm form) {
  const auto nodes = static_cast<std::int64_t>(opcodes.size());
  require_length(node_features.size(), nodes, schema.node_features);
  GraphArrays arrays;
  arrays.opcode = checked_opcodes(opcodes, schema);
  if (form == FeatureForm::raw)
    arrays.raw = std::vector<float>(node_features.begin(), node_features.end());
  else
    arrays.rows = feature_rows_of(node_features, nodes, schema.node_features);
  return arrays;
}

GraphInput::GraphInput(const GraphArrays& arrays, const FeatureSchema& schema)
    : stride_(pad16(schema.node_features)),
      rows_(arrays.rows),
      raw_(arrays.raw),
      opcode_(arrays.opcode) {
  if (!rows_.empty()) require_length(rows_.size(), nodes(), stride_);
  if (!raw_.empty()) require_length(raw_.size(), nodes(), schema.node_features);
}

std::uint64_t GraphInput::bytes(std::int64_t nodes, const FeatureSchema& schema, FeatureForm form) {
  const auto features = static_cast<std::size_t>(schema.node_features);
  const std::size_t width = form == FeatureForm::raw ? features : pad16(features);
  return static_cast<std::uint64_t>(nodes) * (sizeof(float) * width + sizeof(std::int32_t));
}

void GraphInput::refuse_form() {
  throw Error(ErrorKind::failed,
              "a graph's inputs were prepared for a network of another kind and lack its features");
}

std::vector<std::int64_t> UnitInput::graph_begins() const {
  std::vector<std::int64_t> begins;
  std::int64_t rows = 0;
  std::size_t run = 0;
  for (const auto& graph : graphs) {
    if (plan->units) {
      const std::vector<RowRun>& runs = plan->units->nodes->runs;
      while (runs[run].count == 0 || runs[run].begin + runs[run].count <= rows) ++run;
      rows = std::max(rows, runs[run].begin);
    }
    begins.push_back(rows);
    rows += graph->nodes();
  }
  return begins;
}

UnitInput join_units(const std::vector<std::vector<const UnitInput*>>& blocks,
                     std::int64_t config_features) {
  UnitInput joined;
  std::vector<std::vector<const Plan*>> plans;
  for (const auto& block : blocks) {
    plans.emplace_back();
    for (const UnitInput* const unit : block) {
      plans.back().push_back(unit ? unit->plan.get() : nullptr);
      if (!unit) continue;
      joined.use = unit->use;
      joined.graphs.insert(joined.graphs.end(), unit->graphs.begin(), unit->graphs.end());
    }
  }
  joined.plan = join_plans(plans);
  joined.states.resize(static_cast<std::size_t>(joined.plan->states * config_features));
  std::size_t run = 0;
  for (const auto& block : blocks) {
    for (const UnitInput* const unit : block) {
      const std::int64_t row = joined.plan->units->states->runs[run++].begin;
      if (unit) std::ranges::copy(unit->states, joined.states.begin() + row * config_features);
    }
  }
  return joined;
}

}  // namespace tpudist
