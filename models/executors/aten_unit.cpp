#include "models/executors/aten_unit.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

#include <cstring>
#include <map>

#include "models/inputs/graph_input.hpp"
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

// One traversal of a unit's arrays that is done twice. The first time it notes where the arrays are
// on the host and gives each an offset; the second time, with a buffer, it hands out views of the
// buffer at those offsets.
class ArrayTraversal {
 public:
  ArrayTraversal() = default;
  ArrayTraversal(const std::vector<UnitArray>& places, const at::Tensor& buffer)
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

  DeviceSparseMatrix operator()(const SparseMatrix& matrix) {
    auto& self = *this;
    DeviceSparseMatrix views;
    views.forward = self(matrix.forward);
    views.transposed = self(matrix.transposed);
    views.replicas = matrix.replicas;
    return views;
  }

  DeviceGatherIndex operator()(const GatherIndex& gather) {
    auto& self = *this;
    DeviceGatherIndex views;
    if (gather.is_identity()) return views;
    views.index = self(gather.index);
    views.transposed = self(gather.transposed);
    return views;
  }

  DeviceLayer operator()(const PlanLayer& plan_layer) {
    auto& self = *this;
    DeviceLayer views;
    views.self = self(plan_layer.self);
    for (const EdgeSet& edges : plan_layer.edges) {
      DeviceEdgeSet& set = views.edges.emplace_back();
      set.aggregate = self(edges.aggregate);
      set.neighbourhood = self(edges.neighbourhood);
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
    const UnitArray& place = places_[next_++];
    const std::int64_t bytes = place.count * static_cast<std::int64_t>(at::elementSize(place.type));
    return buffer_.narrow(0, place.begin, bytes).view(place.type);
  }

  std::vector<UnitArray> places_;
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
  made.nodes_of_opcode = transpose_index(made.opcode, kOpcodes);
  return made;
}

// The one order in which both traversals take the arrays. The second one reads no numbers, so
// `derived` may be empty there.
DeviceUnit visit(const Plan& plan, const DerivedArrays& derived, ArrayTraversal& traverse) {
  DeviceUnit unit;
  unit.opcode = traverse(derived.opcode);
  unit.states = traverse(derived.states);
  unit.node = traverse(plan.node);
  unit.state = traverse(derived.state);
  unit.rows_of_node = traverse(plan.rows_of_node);
  unit.rows_of_state = traverse(plan.rows_of_state);
  unit.nodes_of_opcode = traverse(derived.nodes_of_opcode);
  std::map<const PlanLayer*, std::shared_ptr<const DeviceLayer>> known;
  for (const auto& plan_layer : plan.layers) {
    auto& views = known[plan_layer.get()];
    if (!views) views = std::make_shared<const DeviceLayer>(traverse(*plan_layer));
    unit.layers.push_back(views);
  }
  return unit;
}

}  // namespace

DeviceGraph to_device(const GraphInput& graph, at::Device device) {
  const at::Tensor rows = at::from_blob(const_cast<float*>(graph.feature_rows()),
                                        {graph.nodes(), GraphInput::stride}, at::kFloat);
  return {rows.narrow(1, 0, kNodeFeatures).contiguous().to(device)};
}

StagedUnit stage_unit(const UnitInput& input, std::int64_t config_features, at::Device device) {
  const c10::InferenceMode no_autograd;
  const DerivedArrays derived = derive(input, config_features);
  ArrayTraversal traverse;
  visit(*input.plan, derived, traverse);
  return std::move(traverse).pack(device.is_cuda());
}

DeviceUnit view_unit(const UnitInput& input, const StagedUnit& staged, const at::Tensor& buffer,
                     std::int64_t config_features) {
  ArrayTraversal traverse(staged.arrays, buffer);
  DeviceUnit unit = visit(*input.plan, {}, traverse);
  unit.states = unit.states.view({-1, config_features});
  unit.needed_first_rows = input.plan->needed_first_rows;
  unit.needed_counts = input.plan->needed_counts;
  std::vector<at::Tensor> features;
  for (const auto& graph : input.graphs) {
    const DeviceGraph* const kept = graph->device().get();
    features.push_back(kept ? kept->features : to_device(*graph, buffer.device()).features);
  }
  unit.features = features.size() == 1 ? features.front() : at::cat(features);
  return unit;
}

}  // namespace tpudist
