// The complete networks of the 1st and the 2nd place of "Fast or Slow?" against PyTorch and PyTorch
// Geometric: tests/golden/layers/README.md.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fmt/format.h>

#include "models/device/device_backend.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/composed_network.hpp"
#include "models/plans/row_keys.hpp"
#include "tests/models/layers/golden_case.hpp"
#include "tests/models/layers/layer_case.hpp"

namespace tpudist {
namespace {

using namespace test;

std::string latenciaga(const std::string& name) {
  const bool xla = name.find("xla") != std::string::npos;
  const bool residual = name == "latenciaga_nlp_list_mle";
  std::string blocks;
  for (const int width :
       xla ? std::vector{8, 8, 16, 16, 32, 32} : std::vector{16, 16, 16, 16, 32, 32, 32, 32}) {
    blocks += fmt::format("  - {{layer: sage, width: {}, residual: {}}}\n", width, residual);
  }
  return fmt::format(
      "encoder: {{opcode_width: 4, node_width: 4, width: {}, node_transform: {}}}\nblocks:\n{}"
      "readout: {{pool: sum, scale: {}}}\n",
      xla ? 4 : 8, name.find("diff_mat") != std::string::npos ? "log_positive" : "log", blocks,
      name.find("tile") != std::string::npos ? "1" : "1e-3");
}

std::string first_place(const std::string& name) {
  const bool tile = name == "first_place_tile", cross = name == "first_place_layout_crossattn";
  const std::string attention =
      std::string("{layer: channel_attention}") + (cross ? ", {layer: config_attention}" : "");
  const int inner = cross ? 16 : 32;
  const std::string norms = "{layer: instance_norm}, ", gelu = "{layer: activation, kind: gelu}";
  const std::string residual = fmt::format(
      "{{layer: residual, blocks: [{}{{layer: sage, width: {}, activation: none}}, {}]}}", norms,
      inner, attention);
  return fmt::format(
      "encoder: {{opcode_width: 4, node_columns: 0-133, node_width: 0, node_transform: "
      "standardised, "
      "code_width: 2, width: {0}, activation: none{5}}}\n"
      "blocks: [{1}{2}, {3}, {{layer: linear, width: {0}}}, {1}{2}, {3}, {4}, {3}, {4}, {3}]\n"
      "readout: {{pool: {6}, scale: 1{7}}}\n",
      inner, norms, attention, gelu, residual,
      tile ? ", join: late, config_transform: standardised" : "", tile ? "max+mean" : "mean",
      tile ? ", widths: [32, 32], config_widths: [32, 32], activation: gelu" : "");
}

// PyTorch's name of one of our parameters.
std::string torch_name(const ParameterEntry& entry, bool first, bool tile) {
  std::string name = entry.torch_name;
  const auto replace = [&](const std::string& from, const std::string& to) {
    if (name.rfind(from, 0) == 0) name = to + name.substr(from.size());
  };
  if (!first) return name;
  replace("encoder.code.", "encoder.layout.");
  replace("encoder.join.", "blocks.0.linear.");
  if (tile && (name == "head.weight" || name == "head.bias")) name = "head.2." + name.substr(5);
  return name;
}

at::Tensor tensor_of(const GoldenTensor& golden) {
  return at::tensor(golden.values, at::kDouble).view(golden.shape);
}

std::vector<std::int32_t> narrow(const std::vector<std::int64_t>& wide) {
  return {wide.begin(), wide.end()};
}

class GoldenNetwork {
 public:
  explicit GoldenNetwork(GoldenCase& golden)
      : golden_(golden),
        first_(golden.name().rfind("first", 0) == 0),
        tile_(golden.name().find("tile") != std::string::npos),
        config_(read(golden, schema())),
        cpu_network_(config_, schema()),
        device_network_(config_, schema(), {at::kCPU, make_device_backend}) {
    read_graph();
    for (const ParameterEntry& entry : cpu_network_.parameters().entries()) add_weight(entry);
  }

  // `on_device`: three equal members in one call on the emulated device, whose loss is their mean.
  void expect_equal(bool refined, bool on_device) {
    SCOPED_TRACE(std::string(refined ? "refined" : "dense") + (on_device ? " on a device" : ""));
    const ComposedNetwork& network = on_device ? device_network_ : cpu_network_;
    const std::int64_t members = on_device ? 3 : 1;
    UnitInput input;
    FeatureSchema inputs = kLayoutSchema;
    inputs.node_features += config_.encoder.columns.count();
    input.graphs = {std::make_shared<const GraphInput>(
        GraphArrays::of(features_, opcodes_, inputs, FeatureForm::raw), inputs)};
    input.states = states_;
    const PlanShape shape = config_.plan_shape();
    input.plan = std::make_shared<const Plan>(refined ? refined_plan_of(graph_, shape)
                                                      : dense_plan_of(graph_, shape));
    const auto unit = network.prepare(input, at::kDouble, pool_);
    const at::Tensor all = network.scores({*unit, weights_of(members)});
    const at::Tensor expected = tensor_of(golden_.tensor("output"));
    ASSERT_EQ(all.size(0), members);
    for (std::int64_t m = 0; m < members; ++m)
      expect_near(all[m], expected, expected.abs().max().item<double>(), "scores");
    const at::Tensor scores = all.mean(0);
    const at::Tensor loss = (scores * tensor_of(golden_.tensor("coefficients"))).sum();
    const auto gradients =
        torch::autograd::grad({loss}, leaves_, {}, std::nullopt, false, /*allow_unused=*/true);
    double scale = 0;
    for (const auto& [name, gradient] : golden_.tensors("gradients")) {
      for (const double value : gradient.values) scale = std::max(scale, std::abs(value));
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const at::Tensor golden = tensor_of(golden_.tensor("gradients." + names_[i]));
      at::Tensor own = gradients[i].defined() ? gradients[i].squeeze(0) : at::zeros_like(golden);
      if (transposes_[i]) own = own.t();
      expect_near(own, golden, scale, names_[i]);
    }
  }

  std::size_t trained() const { return leaves_.size(); }

 private:
  const FeatureSchema& schema() const { return tile_ ? kTileSchema : kLayoutSchema; }
  // A case says its network itself, or is one of the two places'.
  static NetworkConfig read(const GoldenCase& golden, const FeatureSchema& schema) {
    const std::string& name = golden.name();
    const std::string yaml = !golden.model().empty()       ? golden.model()
                             : name.rfind("first", 0) == 0 ? first_place(name)
                                                           : latenciaga(name);
    ConfigDocument document = ConfigDocument::parse(yaml, name);
    NetworkConfig config = NetworkConfig::read(document.root(), schema);
    document.finish();
    config.general = true;
    return config;
  }

  // The graph that the network sees: the reduced one of the 1st place's layouts.
  void read_graph() {
    const bool reduced = first_ && !tile_;
    const std::string from = reduced ? "reduced." : "graph.";
    const auto values = golden_.tensor("graph.node_features").values;
    const auto opcodes = golden_.integers("graph.opcodes");
    std::vector<std::int64_t> kept;
    if (reduced) kept = golden_.integers("reduced.nodes");
    for (std::size_t n = 0; !reduced && n < opcodes.size(); ++n) kept.push_back(n);
    graph_.nodes = static_cast<std::int64_t>(kept.size());
    graph_.edges = narrow(golden_.integers(from + "edges"));
    const GraphColumns& columns = config_.encoder.columns;
    const std::vector<float> all(values.begin(), values.end());
    std::vector<float> behind;
    if (columns.count() > 0) behind = columns.of(graph_.nodes, all, graph_.edges, schema());
    for (const std::int64_t node : kept) {
      features_.insert(features_.end(), values.begin() + node * kNodeFeatures,
                       values.begin() + (node + 1) * kNodeFeatures);
      if (columns.count() > 0)
        features_.insert(features_.end(), behind.begin() + node * columns.count(),
                         behind.begin() + (node + 1) * columns.count());
      opcodes_.push_back(static_cast<std::uint8_t>(opcodes[node]));
    }
    if (!tile_) graph_.config_nodes = narrow(golden_.integers(from + "config_nodes"));
    // Every node keeps an input row of its own.
    for (std::int64_t n = 0; n < graph_.nodes; ++n)
      graph_.node_class.push_back(static_cast<int>(n));
    const GoldenTensor configs = golden_.tensor("configs");
    graph_.configs = configs.shape[0];
    states_.assign(configs.values.begin(), configs.values.end());
    graph_.state_rows = static_cast<std::int64_t>(states_.size()) / schema().config_features;
    for (std::int64_t s = 0; s < graph_.state_rows; ++s)
      graph_.codes.push_back(static_cast<int>(s));
  }

  void add_weight(const ParameterEntry& entry) {
    if (entry.group == ParameterGroup::statistics) {
      std::string name = entry.name.substr(8);  // after "encoder."
      std::ranges::replace(name, '.', '_');
      weights_.add(entry.name, tensor_of(golden_.tensor("statistics." + name)).unsqueeze(0));
      return;
    }
    std::string name = torch_name(entry, first_, tile_);
    if (first_) name = by_order(entry, name);
    at::Tensor value = tensor_of(golden_.tensor("weights." + name));
    if (entry.torch_transposes) value = value.t();
    value = value.contiguous().unsqueeze(0).set_requires_grad(true);
    weights_.add(entry.name, value);
    leaves_.push_back(value);
    names_.push_back(name);
    transposes_.push_back(entry.torch_transposes);
  }

  // The 1st place's blocks are counted otherwise there: a new one begins with each Linear or SAGE.
  std::string by_order(const ParameterEntry& entry, const std::string& name) {
    if (entry.name.rfind("blocks.", 0) != 0) return name;
    const auto part = [&](const std::string& text) {
      const std::size_t at = entry.torch_name.find(text);
      return at == std::string::npos ? std::string() : entry.torch_name.substr(at);
    };
    if (entry.name.find(".linear.weight") != std::string::npos ||
        entry.name.find("sage.neighbours.weight") != std::string::npos) {
      ++block_;
    }
    std::string inner = part("linear.");
    if (const auto sage = part("sage."); !sage.empty()) inner = sage;
    if (const auto gate = part("channel_attention."); !gate.empty()) {
      inner = "channel." + gate.substr(std::string("channel_attention.").size());
      const auto replace = [&](const std::string& from, const std::string& to) {
        const std::size_t at = inner.find(from);
        if (at != std::string::npos) inner.replace(at, from.size(), to);
      };
      replace("squeeze", "linear1");
      replace("excite", "linear2");
    }
    if (const auto cross = part("temperature"); !cross.empty()) inner = "cross.temperature";
    return "blocks." + std::to_string(block_) + "." + inner;
  }

  // The weights once for each member.
  LayerWeights weights_of(std::int64_t members) const {
    LayerWeights weights;
    for (const ParameterEntry& entry : cpu_network_.parameters().entries()) {
      const at::Tensor& own = weights_[entry.name];
      std::vector<std::int64_t> sizes = own.sizes().vec();
      sizes[0] = members;
      weights.add(entry.name, own.expand(sizes).contiguous());
    }
    return weights;
  }

  static void expect_near(const at::Tensor& actual, const at::Tensor& expected, double scale,
                          const std::string& what) {
    ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
    EXPECT_LE((actual - expected).abs().max().item<double>(), 1e-9 * scale) << what;
  }

  GoldenCase& golden_;
  bool first_, tile_;
  NetworkConfig config_;
  ComposedNetwork cpu_network_, device_network_;
  ThreadPool pool_{1};
  LayerGraph graph_;
  std::vector<float> features_, states_;
  std::vector<std::uint8_t> opcodes_;
  LayerWeights weights_;
  std::vector<at::Tensor> leaves_;
  std::vector<std::string> names_;
  std::vector<bool> transposes_;
  int block_ = 0;
};

TEST(GoldenNetworks, GiveTheNumbersOfPyTorch) {
  int cases = 0;
  for (const auto& path : golden_files("networks")) {
    GoldenCase golden(path);
    SCOPED_TRACE(golden.name());
    GoldenNetwork network(golden);
    EXPECT_EQ(network.trained(), golden.tensors("weights").size());
    for (const bool refined : {false, true}) {
      for (const bool on_device : {false, true}) network.expect_equal(refined, on_device);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 25);
}

}  // namespace
}  // namespace tpudist
