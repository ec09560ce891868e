#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/schema/feature_schema.hpp"
#include "models/network/composed_network.hpp"
#include "tests/models/layers/layer_spellings.hpp"
#include "tests/models/repeated_case.hpp"

namespace tpudist::test {

// A small network around one layer, with dropout before and after it: as a Network, which trains in
// float32, and as its layers, which also run in double.
class PropertyNetwork {
 public:
  // `variant` chooses readout and encoder; `readout` overrides the readout.
  PropertyNetwork(const std::string& layer, int variant, bool tile, ThreadPool& pool,
                  const std::string& readout = "", bool recompute = false)
      : pool_(pool),
        config_(read(layer, variant, tile, readout)),
        network_(config_, tile ? kTileSchema : kLayoutSchema, -1, pool, recompute),
        composed_(config_, network_.schema()) {}

  const Network& network() const { return network_; }
  const ComposedNetwork& composed() const { return composed_; }
  ThreadPool& pool() const { return pool_; }

  // [members, P], away from the constants that norms begin with.
  AlignedFloats parameters(int members, std::uint64_t key) const {
    const std::int64_t length = network_.parameters().length();
    AlignedFloats flat(members * length);
    CounterRng random(key, 1);
    for (int m = 0; m < members; ++m) {
      network_.initialise(std::span(flat).subspan(m * length, length), key + m);
      for (const ParameterEntry& entry : network_.parameters().entries()) {
        for (std::int64_t i = 0; i < entry.size(); ++i) {
          const bool temperature = entry.name.find("temperature") != std::string::npos;
          flat[m * length + entry.offset + i] +=
              static_cast<float>(random.uniform(-0.2, 0.2) * (temperature ? 0.1 : 1.0));
        }
      }
    }
    return flat;
  }

 private:
  static NetworkConfig read(const std::string& layer, int variant, bool tile,
                            const std::string& readout) {
    static const char* const readouts[] = {"pool: sum", "pool: mean, widths: [4], activation: silu",
                                           "pool: max+mean", "pool: sum+max, widths: [3]"};
    const std::string yaml = fmt::format(
        "encoder: {{opcode_width: 2, node_columns: 0-5, node_width: {}, width: 6, activation: "
        "gelu_tanh, join: {}}}\n"
        "blocks:\n"
        "  - {{layer: sage, width: 6, activation: gelu_tanh}}\n"
        "  - {{layer: dropout, rate: 0.25}}\n"
        "  - {}\n"
        "  - {{layer: dropout, rate: 0.3}}\n"
        "  - {{layer: linear, width: 5, activation: silu}}\n"
        "  - {{layer: sage, width: 5, directions: [producer_to_consumer]}}\n"
        "{}readout: {{{}, scale: 0.5}}\n",
        variant % 2 ? 3 : 0, variant % 4 == 3 ? "late" : "early", layer,
        variant % 4 == 3 ? "  - {layer: join_config, width: 4}\n" : "",
        readout.empty() ? readouts[variant % 4] : readout);
    ConfigDocument document = ConfigDocument::parse(yaml, "network.yaml");
    NetworkConfig config = NetworkConfig::read(document.root(), tile ? kTileSchema : kLayoutSchema);
    document.finish();
    config.general = true;
    return config;
  }

  ThreadPool& pool_;
  NetworkConfig config_;
  Network network_;
  ComposedNetwork composed_;
};

// A number for each configuration; the loss of the tests is the sum of score times number.
// `centred`: the numbers of every slate sum to 0, so that the loss ignores a shift.
inline std::vector<double> loss_numbers(const Readout& readout, bool centred) {
  std::vector<double> numbers, sum, count;
  for (std::size_t k = 0; k < readout.slate_of_config.size(); ++k) {
    const auto slate = static_cast<std::size_t>(readout.slate_of_config[k]);
    numbers.push_back(static_cast<double>(k * 7 % 11) - 4.5);
    sum.resize(std::max(sum.size(), slate + 1));
    count.resize(sum.size());
    sum[slate] += numbers.back();
    ++count[slate];
  }
  for (std::size_t k = 0; centred && k < numbers.size(); ++k) {
    const auto slate = static_cast<std::size_t>(readout.slate_of_config[k]);
    numbers[k] -= sum[slate] / count[slate];
  }
  return numbers;
}

// One call in double: d (sum of score * a number for each configuration), by autograd.
class DoubleCall {
 public:
  // `flat` [members, P]; `keys` [members] of the dropout; `centred`: see loss_numbers;
  // `place`: the device of the network.
  DoubleCall(const PropertyNetwork& network, const UnitInput& input, std::span<const float> flat,
             std::vector<std::uint64_t> keys, bool centred = false, const DeviceContext& place = {})
      : network_(network),
        composed_(network.network().config(), network.network().schema(), place),
        input_(input),
        keys_(std::move(keys)),
        centred_(centred),
        prepared_(composed_.prepare(input, at::kDouble, network.pool())) {
    const ParameterTable& table = network.composed().parameters();
    const auto members = static_cast<std::int64_t>(keys_.size());
    for (const ParameterEntry& entry : table.entries()) {
      std::vector<at::Tensor> own;
      for (std::int64_t m = 0; m < members; ++m) {
        const float* const data = flat.data() + m * table.length() + entry.offset;
        const std::vector<double> values(data, data + entry.size());
        own.push_back(at::tensor(values, at::kDouble).view(entry.shape));
      }
      add_leaf(entry.name, at::stack(own).to(place.device));
      weights_.add(entry.name, leaves_.back());
    }
    add_leaf("nodes", prepared_->tensors.node_features);
    add_leaf("states", prepared_->tensors.state_features);
  }

  // [M, configurations]
  at::Tensor scores() const { return composed_.scores({*prepared_, weights_, keys_}); }
  at::Tensor loss() const {
    const std::vector<double> numbers = loss_numbers(input_.plan->readout, centred_);
    const at::Tensor scores = this->scores();
    return (scores * at::tensor(numbers, at::kDouble).to(scores.device())).sum();
  }
  // The gradients of all leaves; zeros for a leaf that takes no part.
  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> gradients =
        torch::autograd::grad({loss()}, leaves_, {}, std::nullopt, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (!gradients[i].defined()) gradients[i] = at::zeros_like(leaves_[i]).detach();
    }
    return gradients;
  }

  const UnitInput& input() const { return input_; }
  // The parameters, then the node features and the states.
  const std::vector<at::Tensor>& leaves() const { return leaves_; }
  const std::vector<std::string>& names() const { return names_; }
  std::size_t parameters() const { return leaves_.size() - 2; }

 private:
  void add_leaf(const std::string& name, const at::Tensor& value) {
    leaves_.push_back(value.contiguous().set_requires_grad(true));
    names_.push_back(name);
  }

  const PropertyNetwork& network_;
  const ComposedNetwork composed_;
  const UnitInput& input_;
  std::vector<std::uint64_t> keys_;
  bool centred_;
  std::shared_ptr<const PreparedPlan> prepared_;
  LayerWeights weights_;
  std::vector<at::Tensor> leaves_;
  std::vector<std::string> names_;
};

// Some slates of some graphs of repeated blocks.
inline RepeatedUnit small_unit(CounterRng& random, int graphs, int slates,
                               Configurable configurable) {
  const int features =
      configurable == Configurable::tile ? kTileConfigFeatures : kLayoutConfigFeatures;
  RepeatedUnit unit;
  for (int g = 0; g < graphs; ++g) {
    unit.graphs.push_back(
        random_graph(random, 2 + random.below(4), 2 + random.below(3), configurable, features));
  }
  for (int s = 0; s < slates; ++s)
    unit.slates.push_back(random_configs(random, unit.graphs, s % graphs, 2 + random.below(5)));
  return unit;
}

// A test for every spelling.
class EveryLayer : public ::testing::TestWithParam<LayerSpelling> {};

inline std::string name_of(const ::testing::TestParamInfo<LayerSpelling>& info) {
  return info.param.name;
}

}  // namespace tpudist::test
