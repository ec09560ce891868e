// Every layer against PyTorch and PyTorch Geometric: tests/golden/layers/README.md.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "models/layers/layer.hpp"
#include "models/layers/layers.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/operators.hpp"
#include "tests/models/layers/golden_case.hpp"
#include "tests/models/layers/layer_case.hpp"

namespace tpudist {
namespace {

using namespace test;

at::Tensor tensor_of(const GoldenTensor& golden) {
  return at::tensor(golden.values, at::kDouble).view(golden.shape);
}

LayerGraph graph_of(GoldenCase& golden) {
  LayerGraph graph;
  const auto narrow = [&](const char* name) {
    const auto wide = golden.integers(name);
    return std::vector<std::int32_t>(wide.begin(), wide.end());
  };
  graph.edges = narrow("graph.edges");
  graph.config_nodes = narrow("graph.config_nodes");
  graph.node_class = narrow("graph.node_class");
  graph.codes = narrow("inputs.codes");
  graph.nodes = static_cast<std::int64_t>(graph.node_class.size());
  graph.configs = static_cast<std::int64_t>(graph.codes.size() / graph.config_nodes.size());
  graph.state_rows = golden.tensor("inputs.states").shape[0];
  return graph;
}

// How a case is said in YAML, and what its weights are called there.
struct Spelling {
  std::string yaml;
  std::vector<std::pair<std::string, std::string>> names;  // (PyTorch's, ours)
};

Spelling spelling_of(const GoldenCase& golden) {
  const auto& o = golden.options();
  const std::string layer = golden.layer();
  const std::string direction = o.value("direction", "both"),
                    directions = direction == "u_to_v"   ? "[consumer_to_producer]"
                                 : direction == "v_to_u" ? "[producer_to_consumer]"
                                 : direction == "config" ? "[config_consumer_to_producer]"
                                                         : "[consumer_to_producer, "
                                                           "producer_to_consumer]",
                    begin = "{layer: " + layer +
                            ", width: 6, activation: none, directions: " + directions;
  // An option of a case as a key, where the case has it.
  const auto key = [&](const char* option, const char* name) {
    return o.contains(option) ? std::string(", ") + name + ": " + o.at(option).dump() : "";
  };
  if (layer == "sage") {
    return {
        begin + key("aggregation", "aggregation") + key("both", "join") +
            key("normalise", "normalise") + "}",
        {{o.value("both", "sum") == "concat" ? "reverse.lin_l." : "lin_l_1.", "sage.neighbours_1."},
         {"reverse.lin_r.", "sage.self_1."},
         {"lin_l.", "sage.neighbours."},
         {"lin_r.", "sage.self."}}};
  }
  if (layer == "gcn") {
    const std::string first = o.value("normalise", "") == "right" ? "convs.0." : "";
    return {begin + key("self_loops", "self_loops") + key("normalise", "normalise") + "}",
            {{"convs.1.lin", "gcn.lin_1"}, {"convs.1.bias", "gcn.bias_1"}, {first, "gcn."}}};
  }
  if (layer == "gat" || layer == "gatv2")
    return {begin + key("heads", "heads") + key("join", "join") + "}", {{"", layer + "."}}};
  if (layer == "pna")
    return {begin + key("average_log_degree", "average_log_degree") + "}",
            {{"pre_nns.0.0.", "pna.pre."}, {"post_nns.0.0.", "pna.post."}, {"lin.", "pna.lin."}}};
  if (layer == "virtual_node")
    return {
        "{layer: virtual_node" + key("hidden", "hidden") + key("aggregation", "aggregation") + "}",
        {{"", "virtual_node."}}};
  if (layer == "self_attention")
    return {"{layer: self_attention, width: 3" + key("heads", "heads") + key("others", "others") +
                ", directions: " + directions + "}",
            {{"", "self_attention."}}};
  if (layer == "linear_attention")
    return {
        "{layer: linear_attention, width: 3" + key("heads", "heads") + key("bias", "bias") + "}",
        {{"", "linear_attention."}}};
  if (layer == "prelu")
    return {"{layer: prelu" + key("per_channel", "per_channel") + "}", {{"", "prelu."}}};
  if (layer == "gin" || layer == "gine")
    return {begin + key("hidden", "hidden") + key("train_eps", "train_eps") + "}",
            {{"", layer + "."}}};
  if (layer == "mlp") {
    std::string yaml;
    std::vector<std::pair<std::string, std::string>> names;
    const auto widths = o.at("widths").get<std::vector<int>>();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool last = i + 1 == widths.size() && !o.value("activate_last", false);
      yaml += (i ? ", " : "") + ("{layer: linear, width: " + std::to_string(widths[i])) +
              ", activation: " + (last ? "none" : o.value("activation", "none")) + "}";
      names.push_back(
          {"lins." + std::to_string(i) + ".", "blocks." + std::to_string(i) + ".linear."});
    }
    return {"[" + yaml + "]", names};
  }
  if (layer == "residual") {
    const std::string kind = o.at("kind");
    const std::vector<std::pair<std::string, std::string>> names{
        {"sage.lin_l.", "blocks.0.sage.neighbours."},
        {"sage.lin_r.", "blocks.0.sage.self."},
        {"skip.", "skip."}};
    const std::string sage = "{layer: sage, width: " + std::string(kind == "same" ? "8" : "6") +
                             ", activation: " + (kind == "concat" ? "relu" : "none") + "}";
    const std::string residual = "{layer: residual, blocks: [" + sage + "], skip: " +
                                 (kind == "same"        ? "identity"
                                  : kind == "projected" ? "project"
                                                        : "concat") +
                                 "}";
    if (kind == "concat") return {residual, names};
    return {"[" + residual + ", {layer: activation, kind: relu}]", names};
  }
  if (layer == "activation")
    return {"{layer: activation, kind: " + o.at("kind").get<std::string>() + "}", {}};
  if (layer == "cross_config_attention")
    return {"{layer: config_attention}", {{"temperature", "config_attention.temperature"}}};
  if (layer == "channel_attention")
    return {
        "{layer: channel_attention, reduction: 8}",
        {{"linear1.", "channel_attention.squeeze."}, {"linear2.", "channel_attention.excite."}}};
  return {"{layer: " + layer + "}", {{"", layer + "."}}};
}

// The name of PyTorch's for one of our parameters, whose prefix is blocks.0.
std::string torch_name(const std::string& ours, const Spelling& spelling) {
  for (const auto& [torch, own] : spelling.names) {
    for (const std::string& prefix : {std::string("blocks.0."), std::string()}) {
      const std::string begin = prefix + own;
      if (ours.rfind(begin, 0) == 0) return torch + ours.substr(begin.size());
    }
  }
  return ours;
}

void expect_near(const at::Tensor& actual, const at::Tensor& expected, double scale,
                 const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const double error = (actual - expected).abs().max().item<double>();
  EXPECT_LE(error, 1e-9 * std::max(scale, 1e-3)) << what;
}

// The inputs of a case as leaves, and the rows before the first layer of a plan that are made of
// them.
struct CaseRows {
  CaseRows(GoldenCase& golden, const LayerGraph& graph, const Plan& plan, const Backend& backend)
      : nodes(first_of_class(golden, graph)),
        states(at::cat({tensor_of(golden.tensor("inputs.states")),
                        at::zeros({1, nodes.size(2)}, at::kDouble)})
                   .unsqueeze(0)
                   .set_requires_grad(true)),
        state(plan.state, plan),
        rows(sum_of_gathered(
            {{nodes, {plan.node, plan.rows_of_node}}, {states, {state.index, state.transposed}}},
            backend)) {}

  // The inputs of the first node of every class, [1, classes, C].
  static at::Tensor first_of_class(GoldenCase& golden, const LayerGraph& graph) {
    const at::Tensor nodes = tensor_of(golden.tensor("inputs.nodes"));
    std::vector<at::Tensor> first(static_cast<std::size_t>(graph.classes()));
    for (std::int64_t n = graph.nodes; n-- > 0;) first[graph.node_class[n]] = nodes[n];
    return at::stack(first).unsqueeze(0).set_requires_grad(true);
  }

  at::Tensor nodes, states;
  StateIndex state;
  RowStates rows;
};

using Layers = std::vector<std::shared_ptr<const Layer>>;

class GoldenLayer {
 public:
  explicit GoldenLayer(GoldenCase& golden) : golden_(golden), graph_(graph_of(golden)) {
    const Spelling spelling = spelling_of(golden);
    const std::string list =
        spelling.yaml.front() == '[' ? spelling.yaml : "[" + spelling.yaml + "]";
    ConfigDocument document = ConfigDocument::parse("blocks: " + list + "\n", "case.yaml");
    LayerPosition position;
    position.channels = golden.tensor("inputs.x").shape.back();
    layers_ = read_layers(document.root().items("blocks"), "blocks.", position);
    document.finish();
    for (const auto& layer : layers_) {
      for (LayerShape& step : layer->steps()) shape_.layers.push_back(std::move(step));
      for (const ParameterEntry& entry : layer->parameters()) {
        at::Tensor value = tensor_of(golden.tensor("weights." + torch_name(entry.name, spelling)));
        if (entry.torch_transposes) value = value.t();
        value = value.contiguous().unsqueeze(0).set_requires_grad(true);
        weights_.add(entry.name, value);
        leaves_.push_back(value);
        entries_.push_back(entry);
        names_.push_back(torch_name(entry.name, spelling));
      }
    }
  }

  void expect_equal(const Plan& plan) {
    SCOPED_TRACE(std::to_string(plan.total_rows()) + " rows");
    const CaseRows inputs(golden_, graph_, plan, backend_);
    RowStates x = inputs.rows;
    PlanContext context(plan, shape_, {});
    for (const auto& layer : layers_) layer->prepare(plan, at::kDouble, context);
    const LayerCall call{plan, context, backend_, at::Tensor()};
    for (const auto& layer : layers_) x = layer->forward(x, weights_, call);
    const at::Tensor output = x.squeeze(0).index_select(
                         0, at::tensor(rows_of_pairs(graph_, shape_, plan), at::kLong)),
                     expected = tensor_of(golden_.tensor("output"));
    expect_near(output.view(expected.sizes()), expected, expected.abs().max().item<double>(),
                "output");
    const at::Tensor loss =
        (output.view(expected.sizes()) * tensor_of(golden_.tensor("coefficients"))).sum();
    expect_gradients(loss, inputs.nodes, inputs.states);
  }

  const LayerGraph& graph() const { return graph_; }
  const PlanShape& shape() const { return shape_; }

 private:
  void expect_gradients(const at::Tensor& loss, const at::Tensor& nodes, const at::Tensor& states) {
    std::vector<at::Tensor> leaves = leaves_;
    leaves.push_back(nodes);
    leaves.push_back(states);
    const auto gradients = torch::autograd::grad({loss}, leaves);
    double scale = 0;
    for (const auto& [name, gradient] : golden_.tensors("gradients")) {
      for (const double value : gradient.values) scale = std::max(scale, std::abs(value));
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      at::Tensor own = gradients[i].squeeze(0);
      if (entries_[i].torch_transposes) own = own.t();
      expect_near(own, tensor_of(golden_.tensor("gradients." + names_[i])), scale, names_[i]);
    }
    // Nodes of one class share their input, so that its gradient is the sum of theirs.
    const at::Tensor of_nodes = tensor_of(golden_.tensor("gradients.nodes"));
    at::Tensor summed = at::zeros_like(nodes.squeeze(0)).detach();
    for (std::int64_t n = 0; n < graph_.nodes; ++n) summed[graph_.node_class[n]] += of_nodes[n];
    expect_near(gradients[entries_.size()].squeeze(0), summed, scale, "nodes");
    expect_near(gradients[entries_.size() + 1].squeeze(0).narrow(0, 0, graph_.state_rows),
                tensor_of(golden_.tensor("gradients.states")), scale, "states");
  }

  GoldenCase& golden_;
  ThreadPool pool_{1};
  CpuBackend backend_{pool_};
  LayerGraph graph_;
  Layers layers_;
  PlanShape shape_;
  LayerWeights weights_;
  std::vector<at::Tensor> leaves_;
  std::vector<ParameterEntry> entries_;
  std::vector<std::string> names_;
};

TEST(GoldenLayers, GiveTheNumbersOfPyTorch) {
  const std::vector<std::string> known = layer_names();
  int cases = 0;
  for (const auto& path : golden_files("cases")) {
    GoldenCase golden(path);
    SCOPED_TRACE(golden.name());
    if (golden.layer() == "readout") continue;  // has a test of its own
    GoldenLayer layer(golden);
    layer.expect_equal(plain_plan(layer.graph(), layer.shape()));
    layer.expect_equal(dense_plan_of(layer.graph(), layer.shape()));
    layer.expect_equal(refined_plan_of(layer.graph(), layer.shape()));
    ++cases;
  }
  EXPECT_EQ(cases, 62);
}

// Pools the rows after the last layer of a plan as a case says and runs its head, an affine one or
// an MLP of one hidden layer, by the operators that a composed network takes for it.
class GoldenReadout {
 public:
  explicit GoldenReadout(GoldenCase& golden) : golden_(golden), graph_(graph_of(golden)) {
    // One step without edges makes the refined plan one of several depths.
    shape_.layers = {{{}, Aggregation::sum, false}};
    if (golden.options().at("head") == "affine") {
      names_ = {"head"};
    } else {
      names_ = {"head.lins.0", "head.lins.1"};
    }
  }

  void expect_equal(const Plan& plan) {
    SCOPED_TRACE(std::to_string(plan.total_rows()) + " rows");
    const CaseRows inputs(golden_, graph_, plan, backend_);
    std::vector<at::Tensor> leaves;
    at::Tensor x = pooled(gather_rows(inputs.rows, plan.layers[0]->self, backend_), plan);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i > 0) x = activate_rows(x, Activation::relu, backend_);
      leaves.push_back(leaf(names_[i] + ".weight", true));
      leaves.push_back(leaf(names_[i] + ".bias", false));
      x = linear_rows(x, leaves[2 * i], leaves[2 * i + 1], backend_);
    }
    const at::Tensor output = x.view({-1}), expected = tensor_of(golden_.tensor("output"));
    expect_near(output, expected, expected.abs().max().item<double>(), "output");
    const at::Tensor loss = (output * tensor_of(golden_.tensor("coefficients"))).sum();
    leaves.push_back(inputs.nodes);
    leaves.push_back(inputs.states);
    expect_gradients(torch::autograd::grad({loss}, leaves));
  }

  const LayerGraph& graph() const { return graph_; }
  const PlanShape& shape() const { return shape_; }

 private:
  at::Tensor pooled(const RowStates& x, const Plan& plan) {
    std::vector<at::Tensor> parts;
    for (const std::string kind : golden_.options().at("pool")) {
      parts.push_back(pool_rows(x, plan.readout,
                                kind == "sum"    ? Aggregation::sum
                                : kind == "mean" ? Aggregation::mean
                                                 : Aggregation::max,
                                backend_));
    }
    return at::cat(parts, 2);
  }

  // A weight as [1, in, out], or a bias as [1, out].
  at::Tensor leaf(const std::string& name, bool transposes) {
    const at::Tensor value = tensor_of(golden_.tensor("weights." + name));
    return (transposes ? value.t() : value).contiguous().unsqueeze(0).set_requires_grad(true);
  }

  void expect_gradients(const std::vector<at::Tensor>& gradients) {
    const auto golden = [&](const std::string& name) {
      return tensor_of(golden_.tensor("gradients." + name));
    };
    const at::Tensor of_nodes = golden("nodes"), of_states = golden("states");
    double scale =
        std::max(of_nodes.abs().max().item<double>(), of_states.abs().max().item<double>());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const at::Tensor weight = golden(names_[i] + ".weight"), bias = golden(names_[i] + ".bias");
      scale = std::max(scale, weight.abs().max().item<double>());
      expect_near(gradients[2 * i].squeeze(0).t(), weight, scale, names_[i] + ".weight");
      expect_near(gradients[2 * i + 1].squeeze(0), bias, scale, names_[i] + ".bias");
    }
    // Nodes of one class share their input, so that its gradient is the sum of theirs.
    const at::Tensor nodes = gradients[2 * names_.size()].squeeze(0);
    at::Tensor summed = at::zeros_like(nodes);
    for (std::int64_t n = 0; n < graph_.nodes; ++n) summed[graph_.node_class[n]] += of_nodes[n];
    expect_near(nodes, summed, scale, "nodes");
    expect_near(gradients.back().squeeze(0).narrow(0, 0, graph_.state_rows), of_states, scale,
                "states");
  }

  GoldenCase& golden_;
  ThreadPool pool_{1};
  CpuBackend backend_{pool_};
  LayerGraph graph_;
  PlanShape shape_;
  std::vector<std::string> names_;  // of the head's Linears
};

TEST(GoldenLayers, ReadoutsGiveTheNumbersOfPyTorch) {
  int cases = 0;
  for (const auto& path : golden_files("cases")) {
    GoldenCase golden(path);
    if (golden.layer() != "readout") continue;
    SCOPED_TRACE(golden.name());
    GoldenReadout readout(golden);
    readout.expect_equal(dense_plan_of(readout.graph(), readout.shape()));
    readout.expect_equal(refined_plan_of(readout.graph(), readout.shape()));
    ++cases;
  }
  EXPECT_EQ(cases, 12);
}

}  // namespace
}  // namespace tpudist
