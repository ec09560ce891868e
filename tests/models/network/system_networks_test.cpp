// The networks of published systems, as experiments/systems has them, against the same networks
// written from their sources in PyTorch, at equal weights: tests/golden/layers/README.md.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "models/device/device_backend.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/composed_network.hpp"
#include "models/network/network.hpp"
#include "models/network/network_config.hpp"
#include "models/plans/row_keys.hpp"
#include "tests/models/layers/golden_case.hpp"
#include "tests/models/layers/layer_case.hpp"

namespace tpudist {
namespace {

using namespace test;

// Numbers in [-1, 1), a function of the name (system_cases.py).
std::vector<double> numbers(const std::string& name, std::int64_t count) {
  std::uint64_t start = 0xcbf29ce484222325;
  for (const char byte : name) start = (start ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t x = (start + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    values.push_back(static_cast<double>(x >> 40) / (1 << 23) - 1);
  }
  return values;
}

at::Tensor values_of(const GoldenTensor& golden) {
  return at::tensor(golden.values, at::kDouble).view(golden.shape);
}

// [1, ...]: from its name in PyTorch and its shape there, or a statistic of the case, which has those
// of all node features; `columns`: what the network takes of them.
at::Tensor weight_of(const ParameterEntry& entry, GoldenCase& golden,
                     const std::vector<std::int64_t>& columns) {
  if (entry.group == ParameterGroup::statistics) {
    std::string name = entry.name.substr(8);  // after "encoder."
    std::ranges::replace(name, '.', '_');
    const at::Tensor values = values_of(golden.tensor("statistics." + name));
    const bool chosen = name.starts_with("node") && !columns.empty();
    return (chosen ? values.index_select(0, at::tensor(columns)) : values).unsqueeze(0);
  }
  std::vector<std::int64_t> shape = entry.shape;
  if (entry.torch_transposes) std::ranges::reverse(shape);
  const double scale = shape.size() > 1 ? std::sqrt(static_cast<double>(shape.back())) : 4;
  at::Tensor value =
      at::tensor(numbers(entry.torch_name, entry.size()), at::kDouble).view(shape) / scale;
  if (entry.torch_transposes) value = value.t();
  return value.contiguous().unsqueeze(0);
}

// The graph of a case; every node keeps an input row of its own.
LayerGraph graph_of(GoldenCase& golden, bool tile) {
  const auto narrow = [&](const std::string& name) {
    const auto wide = golden.integers(name);
    return std::vector<std::int32_t>(wide.begin(), wide.end());
  };
  LayerGraph graph;
  graph.edges = narrow("graph.edges");
  if (!tile) graph.config_nodes = narrow("graph.config_nodes");
  graph.nodes = golden.tensor("graph.node_features").shape[0];
  for (std::int32_t n = 0; n < graph.nodes; ++n) graph.node_class.push_back(n);
  const GoldenTensor configs = golden.tensor("configs");
  graph.configs = configs.shape[0];
  graph.state_rows = tile ? configs.shape[0] : configs.shape[0] * configs.shape[1];
  for (std::int32_t s = 0; s < graph.state_rows; ++s) graph.codes.push_back(s);
  return graph;
}

void expect_scores(const ComposedNetwork& network, const UnitInput& input, GoldenCase& golden,
                   const std::vector<std::int64_t>& columns) {
  ThreadPool pool(1);
  const auto unit = network.prepare(input, at::kDouble, pool);
  LayerWeights weights;
  for (const ParameterEntry& entry : network.parameters().entries())
    weights.add(entry.name, weight_of(entry, golden, columns));
  const at::Tensor scores = network.scores({*unit, weights})[0],
                   expected = values_of(golden.tensor("output"));
  ASSERT_EQ(scores.sizes(), expected.sizes());
  const double spread = (expected.max() - expected.min()).item<double>();
  EXPECT_LE((scores - expected).abs().max().item<double>(), 1e-5 * spread);
}

std::string file_of(const std::string& system) {
  return source_folder() / "experiments/systems" / (system + ".yaml");
}

const FeatureSchema& schema_of(const std::string& system) {
  return system.find("tile") != std::string::npos ? kTileSchema : kLayoutSchema;
}

NetworkConfig network_of(const std::string& system) {
  ConfigDocument document = ConfigDocument::load(file_of(system), {});
  NetworkConfig config = NetworkConfig::read(document.root().child("model"), schema_of(system));
  config.general = true;
  return config;
}

// The network of the file of `system` against a case.
void expect_network(const std::string& system, GoldenCase& golden) {
  const FeatureSchema& schema = schema_of(system);
  const NetworkConfig config = network_of(system);
  const LayerGraph graph = graph_of(golden, schema.tile);
  const auto features = golden.tensor("graph.node_features").values,
             configs = golden.tensor("configs").values;
  const auto opcodes = golden.integers("graph.opcodes");
  UnitInput input;
  ThreadPool pool(1);
  const Network rows(config, schema, -1, pool);
  FeatureSchema inputs = schema;
  inputs.node_features = rows.input_columns();
  const GraphArrays arrays = GraphArrays::of(
      rows.input_rows(std::vector<float>(features.begin(), features.end()), graph.edges),
      std::vector<std::uint8_t>(opcodes.begin(), opcodes.end()), inputs, FeatureForm::raw);
  input.graphs = {std::make_shared<const GraphInput>(arrays, inputs)};
  input.states.assign(configs.begin(), configs.end());
  const ComposedNetwork cpu(config, schema),
      device(config, schema, {at::kCPU, make_device_backend});
  EXPECT_EQ(cpu.parameters().parameters(), golden.parameters());
  for (const bool refined : {false, true}) {
    const PlanShape shape = config.plan_shape();
    input.plan = std::make_shared<const Plan>(refined ? refined_plan_of(graph, shape)
                                                      : dense_plan_of(graph, shape));
    expect_scores(cpu, input, golden, config.encoder.node_columns);
    expect_scores(device, input, golden, config.encoder.node_columns);
  }
}

TEST(SystemNetworks, AreThoseOfTheirSources) {
  int cases = 0;
  for (const auto& path : golden_files("systems")) {
    GoldenCase golden(path);
    SCOPED_TRACE(golden.name());
    expect_network(golden.name(), golden);
    ++cases;
  }
  EXPECT_EQ(cases, 33);
}

// Files that train the network of another one differently.
const std::map<std::string, std::string> kSameNetwork = {
    {"harvard_500_nodes", "harvard"},
    {"harvard_1000_nodes", "harvard"},
    {"harvard_10000_nodes", "harvard"},
    {"latenciaga_xla_cyclic", "latenciaga_xla"},
    {"latenciaga_xla_four_folds", "latenciaga_xla"},
    {"latenciaga_xla_hard_mining", "latenciaga_xla"},
    {"latenciaga_xla_merged", "latenciaga_xla"},
    {"latenciaga_xla_train_valid", "latenciaga_xla"},
};

std::filesystem::path case_of(const std::string& system) {
  return source_folder() / "tests/models/layers/systems" / (system + ".safetensors");
}

TEST(SystemNetworks, AreAllCompared) {
  for (const auto& [system, other] : kSameNetwork) {
    SCOPED_TRACE(system);
    GoldenCase golden(case_of(other));
    expect_network(system, golden);
  }
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder() / "experiments/systems")) {
    const std::string system = entry.path().stem();
    EXPECT_TRUE(std::filesystem::exists(case_of(system)) || kSameNetwork.contains(system))
        << system << ": add a case to tests/golden/layers/system_cases.py";
    ++files;
  }
  EXPECT_EQ(files, 41);
}

// What scores at given weights do not show: first values other than PyTorch's, and dropout.
std::string training_of(const std::string& system) {
  const NetworkConfig config = network_of(system);
  const ComposedNetwork network(config, schema_of(system));
  std::string text;
  for (const ParameterEntry& entry : network.parameters().entries()) {
    if (entry.group == ParameterGroup::statistics) continue;
    if (entry.initialiser.kind == Initialiser::Kind::xavier) text += entry.name + " xavier\n";
    if (entry.initialiser.kind == Initialiser::Kind::constant)
      text += fmt::format("{} {}\n", entry.name, entry.initialiser.value);
  }
  for (const LayerRow& row : layer_table(config, schema_of(system), network.parameters())) {
    if (row.name.starts_with("dropout")) text += row.name + "\n";
  }
  return text;
}

TEST(SystemNetworks, BeginAndDropAsTheirSourcesSay) {
  const std::string linear =
      "encoder.join.weight xavier\nencoder.join.bias 0.01\n"
      "blocks.3.linear.weight xavier\nblocks.3.linear.bias 0.01\ndropout 0.2\ndropout 0.2\n";
  EXPECT_EQ(training_of("first_place_layout"), linear);
  EXPECT_EQ(training_of("first_place_tile"), linear);
  EXPECT_EQ(training_of("first_place_layout_crossattn"),
            "encoder.join.weight xavier\nencoder.join.bias 0.01\n"
            "blocks.2.config_attention.temperature 0.5\n"
            "blocks.4.linear.weight xavier\nblocks.4.linear.bias 0.01\n"
            "blocks.7.config_attention.temperature 0.5\n"
            "blocks.9.blocks.3.config_attention.temperature 0.5\n"
            "blocks.12.blocks.3.config_attention.temperature 0.5\ndropout 0.2\ndropout 0.2\n");
  for (const char* system : {"gst", "latenciaga_nlp_diffmat", "latenciaga_tile_diffmat"})
    EXPECT_EQ(training_of(system), "") << system;
}

}  // namespace
}  // namespace tpudist
