#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {

// A small network on LibTorch's autograd in double, trained by Adam on the loss pairwise_logistic:
// a reference for trainings that see parts of graphs.
class GraphReference {
 public:
  static constexpr const char* kEncoderAndBlocks =
      "encoder: {opcode_width: 3, node_width: 0, width: 6}, blocks: [{layer: sage, width: 5}]";
  static std::vector<std::string> training() {
    return {"loss={pairwise_logistic: {}}",
            "optimizer={name: adam, lr: 0.01, eps: 0.01, clip_norm: 0, decay: {all: 0, output: 0}}",
            "schedule={name: constant}", "ensemble={members: 1, folds: none, vary: [init]}",
            "train.last_evaluation=none"};
  }

  // The network of the setup with the experiment's initial parameters.
  explicit GraphReference(const TrainingSetup& setup)
      : data_(setup.data), table_(setup.network.parameters()) {
    AlignedFloats flat(static_cast<std::size_t>(table_.length()));
    setup.network.initialise(flat, mix_key({setup.experiment.init_seed, 0}));
    for (const ParameterEntry& entry : table_.entries()) {
      weights_[entry.name] = at::from_blob(flat.data() + entry.offset, entry.shape, at::kFloat)
                                 .to(at::kDouble)
                                 .clone()
                                 .requires_grad_(true);
      first_[entry.name] = at::zeros(entry.shape, at::kDouble);
      second_[entry.name] = at::zeros(entry.shape, at::kDouble);
    }
  }

  const at::Tensor& operator[](const std::string& name) const { return weights_.at(name); }

  // [K, n', 5] rows of a part's nodes: embedding and logarithms, Linear, ReLU, one SAGE layer with
  // the mean over consumers, ReLU.
  at::Tensor rows(const std::vector<std::int32_t>& part, const Slate& slate) const {
    const Graph& graph = data_.graph(slate.graph);
    const std::int64_t nodes = std::ssize(part),
                       configs = static_cast<std::int64_t>(slate.configs.size());
    const at::Tensor features =
        at::from_blob(const_cast<float*>(&*graph.node_features.begin()),
                      {graph.nodes, static_cast<std::int64_t>(graph.feature_count())}, at::kFloat)
            .index_select(0, at::tensor(part).to(at::kLong))
            .to(at::kDouble);
    std::vector<std::int64_t> opcodes;
    std::map<std::int32_t, std::int64_t> place;  // of a node in the part
    for (const std::int32_t node : part) {
      place.emplace(node, std::ssize(opcodes));
      opcodes.push_back(graph.opcodes[node]);
    }
    const at::Tensor fixed =
        at::cat({at::embedding((*this)["encoder.opcode.weight"], at::tensor(opcodes)),
                 at::copysign(at::log1p(features.abs()), features)},
                1);
    at::Tensor adjacency = at::zeros({nodes, nodes}, at::kDouble);
    for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
      const std::int32_t consumer = graph.edge_index[e], producer = graph.edge_index[e + 1];
      if (place.contains(consumer) && place.contains(producer))
        adjacency[place[producer]][place[consumer]] += 1;
    }
    adjacency = adjacency / adjacency.sum(1, true).clamp_min(1);
    const auto& states = data_.states(slate.graph).features;
    std::vector<at::Tensor> all;
    for (std::int64_t k = 0; k < configs; ++k) {
      at::Tensor own = at::zeros({nodes, kLayoutConfigFeatures}, at::kDouble);
      for (std::size_t j = 0; j < graph.config_nodes.size(); ++j) {
        const auto node = place.find(graph.config_nodes[j]);
        if (node == place.end()) continue;
        const auto state = static_cast<std::size_t>(
            slate.states[static_cast<std::size_t>(k) * graph.config_nodes.size() + j]);
        for (int c = 0; c < kLayoutConfigFeatures; ++c)
          own[node->second][c] = static_cast<double>(
              states[state * kLayoutConfigFeatures + static_cast<std::size_t>(c)]);
      }
      const at::Tensor x = at::relu(at::addmm(
          (*this)["encoder.join.bias"], at::cat({fixed, own}, 1), (*this)["encoder.join.weight"]));
      all.push_back(at::relu(adjacency.mm(x).mm((*this)["blocks.0.sage.neighbours.weight"]) +
                             (*this)["blocks.0.sage.neighbours.bias"] +
                             x.mm((*this)["blocks.0.sage.self.weight"])));
    }
    return at::stack(all);
  }

  // The sum of log(1 + exp(-(slower - faster))) over pairs of unequal run times, divided by K x K.
  static at::Tensor loss(const at::Tensor& scores, const std::vector<double>& times) {
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (std::size_t i = 0; i < times.size(); ++i)
      for (std::size_t j = 0; j < times.size(); ++j)
        if (times[i] > times[j])
          sum = sum + at::softplus(-(scores[static_cast<std::int64_t>(i)] -
                                     scores[static_cast<std::int64_t>(j)]));
    return sum / static_cast<double>(times.size() * times.size());
  }

  void step(const at::Tensor& loss) {
    loss.backward();
    ++steps_;
    for (auto& [name, weight] : weights_) {
      const at::NoGradGuard guard;
      const at::Tensor gradient = weight.grad().defined() ? weight.grad() : at::zeros_like(weight);
      first_[name] = 0.9 * first_[name] + 0.1 * gradient;
      second_[name] = 0.999 * second_[name] + 0.001 * gradient * gradient;
      weight -= 0.01 * (first_[name] / (1 - std::pow(0.9, steps_))) /
                ((second_[name] / (1 - std::pow(0.999, steps_))).sqrt() + 0.01);
      weight.mutable_grad() = at::Tensor();
    }
  }

  // Expects parameters [1, P] within 1e-5 of these.
  void expect_near(const std::vector<float>& parameters) const {
    for (const ParameterEntry& entry : table_.entries()) {
      const at::Tensor expected = weights_.at(entry.name).detach().contiguous().view({-1});
      const auto* const values = expected.data_ptr<double>();
      for (std::int64_t i = 0; i < entry.size(); ++i)
        ASSERT_NEAR(parameters[entry.offset + i], values[i], 1e-5) << entry.name << " " << i;
    }
  }

 private:
  using Tensors = std::map<std::string, at::Tensor>;  // in double
  const Dataset& data_;
  const ParameterTable& table_;
  Tensors weights_, first_, second_;
  int steps_ = 0;
};

}  // namespace tpudist::test
