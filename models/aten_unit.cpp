#include "models/aten_unit.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

#include <cstring>
#include <map>

#include "models/graph_input.hpp"
#include "models/plans/csr.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kBoundary = 256;  // bytes; as cudaMalloc aligns at least

at::ScalarType type_of(const float*) {
  return at::kFloat;
}
at::ScalarType type_of(const std::int32_t*) {
  return at::kInt;
}
at::ScalarType type_of(const std::int64_t*) {
  return at::kLong;
}

// Goes over a unit's arrays in one order. A first round notes where they are on the host and gives
// each a place; a second, with a buffer, hands out the views of those places.
class ArrayRound {
 public:
  ArrayRound() = default;
  ArrayRound(const std::vector<ArrayPlace>& places, const at::Tensor& buffer)
      : places_(places), buffer_(buffer) {}

  template <typename T>
  at::Tensor operator()(const std::vector<T>& values) {
    if (buffer_.defined()) return next_view();
    const auto count = static_cast<std::int64_t>(values.size());
    places_.push_back({type_of(values.data()), count, bytes_});
    sources_.push_back(values.data());
    bytes_ +=
        (count * static_cast<std::int64_t>(sizeof(T)) + kBoundary - 1) / kBoundary * kBoundary;
    return {};
  }

  DeviceCsr operator()(const Csr& csr) {
    auto& self = *this;
    DeviceCsr views;
    views.begin = self(csr.begin);
    views.source = self(csr.source);
    if (!csr.weight.empty()) views.weight = self(csr.weight);
    return views;
  }

  DeviceRelation operator()(const Relation& relation) {
    auto& self = *this;
    DeviceRelation views;
    views.in = self(relation.in);
    views.out = self(relation.out);
    views.lanes = relation.lanes;
    return views;
  }

  DeviceSelection operator()(const Selection& selection) {
    auto& self = *this;
    DeviceSelection views;
    if (selection.identity()) return views;
    views.of = self(selection.of);
    views.rows = self(selection.rows);
    return views;
  }

  DeviceStep operator()(const Step& step) {
    auto& self = *this;
    DeviceStep views;
    views.self = self(step.self);
    for (const EdgeSet& edges : step.edges) {
      DeviceEdgeSet& set = views.edges.emplace_back();
      set.sum = self(edges.sum);
      set.group = self(edges.group);
    }
    return views;
  }

  // Copies what was noted, each to its place.
  StagedUnit pack(bool page_locked) && {
    StagedUnit staged{at::empty({bytes_}, at::TensorOptions(at::kByte).pinned_memory(page_locked)),
                      {}};
    auto* const to = staged.buffer.mutable_data_ptr<std::uint8_t>();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t bytes = places_[i].count * at::elementSize(places_[i].type);
      if (bytes > 0) std::memcpy(to + places_[i].begin, sources_[i], bytes);
    }
    staged.arrays = std::move(places_);
    return staged;
  }

 private:
  at::Tensor next_view() {
    const ArrayPlace& place = places_[next_++];
    const std::int64_t bytes = place.count * static_cast<std::int64_t>(at::elementSize(place.type));
    return buffer_.narrow(0, place.begin, bytes).view(place.type);
  }

  std::vector<ArrayPlace> places_;
  std::vector<const void*> sources_;
  std::int64_t bytes_ = 0;
  at::Tensor buffer_;
  std::size_t next_ = 0;
};

// What is made of a unit for the device alone.
struct DerivedArrays {
  std::vector<float> states;  // with the row of zeros
  std::vector<std::int32_t> state, opcode;
  Csr nodes_of_opcode;
};

DerivedArrays derive(const UnitInput& input, std::int64_t config_features) {
  DerivedArrays made;
  made.states = input.states;
  made.states.resize(input.states.size() + config_features, 0.0f);
  made.state = input.plan->state;
  for (std::int32_t& state : made.state) {
    if (state < 0) state = to_index32(input.plan->states);
  }
  for (const auto& graph : input.graphs)
    made.opcode.insert(made.opcode.end(), graph->opcode().begin(), graph->opcode().end());
  made.nodes_of_opcode = rows_of(made.opcode, GraphInput::opcodes);
  return made;
}

// The one order, for both rounds. The second round takes none of the numbers, so `derived` may be
// empty there.
DeviceUnit visit(const Plan& plan, const DerivedArrays& derived, ArrayRound& round) {
  DeviceUnit unit;
  unit.opcode = round(derived.opcode);
  unit.states = round(derived.states);
  unit.node = round(plan.node);
  unit.state = round(derived.state);
  unit.rows_of_node = round(plan.rows_of_node);
  unit.rows_of_state = round(plan.rows_of_state);
  unit.nodes_of_opcode = round(derived.nodes_of_opcode);
  std::map<const Step*, std::shared_ptr<const DeviceStep>> known;
  for (const auto& step : plan.steps) {
    auto& views = known[step.get()];
    if (!views) views = std::make_shared<const DeviceStep>(round(*step));
    unit.steps.push_back(views);
  }
  return unit;
}

}  // namespace

DeviceGraph to_device(const GraphInput& graph, at::Device device) {
  const at::Tensor rows = at::from_blob(const_cast<float*>(graph.feature_rows()),
                                        {graph.nodes(), GraphInput::stride}, at::kFloat);
  return {rows.narrow(1, 0, GraphInput::features).contiguous().to(device)};
}

StagedUnit stage_unit(const UnitInput& input, std::int64_t config_features, at::Device device) {
  const c10::InferenceMode no_autograd;
  const DerivedArrays derived = derive(input, config_features);
  ArrayRound round;
  visit(*input.plan, derived, round);
  return std::move(round).pack(device.is_cuda());
}

DeviceUnit view_unit(const UnitInput& input, const StagedUnit& staged, const at::Tensor& buffer,
                     std::int64_t config_features) {
  ArrayRound round(staged.arrays, buffer);
  DeviceUnit unit = visit(*input.plan, {}, round);
  unit.states = unit.states.view({-1, config_features});
  unit.needed = input.plan->needed;
  unit.needed_part = input.plan->needed_part;
  std::vector<at::Tensor> features;
  for (const auto& graph : input.graphs) {
    const auto* const kept = static_cast<const DeviceGraph*>(graph->device().get());
    features.push_back(kept ? kept->features : to_device(*graph, buffer.device()).features);
  }
  unit.features = features.size() == 1 ? features.front() : at::cat(features);
  return unit;
}

}  // namespace tpudist
