#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

struct EdgeMlpConfig {
  std::int64_t width = 0, hidden = 0, config_width = 0, config_hidden = 0;
  std::vector<std::int64_t> config_columns;  // empty: all
  std::vector<EdgeKind> directions;
};

class EdgeMlp : public Layer {
 public:
  EdgeMlp(const EdgeMlpConfig& config, const LayerPosition& position)
      : Layer(position, "edge_mlp"),
        config_(config),
        states_(config.config_columns.empty()
                    ? position.state_channels
                    : static_cast<std::int64_t>(config.config_columns.size())) {}

  std::string description() const override {
    return "edge_mlp " + std::to_string(config_.width) + " x " +
           std::to_string(config_.config_width) + direction_text(config_.directions);
  }
  std::int64_t channels() const override { return (config_.width + 1) * config_.config_width; }
  std::vector<LayerShape> steps() const override {
    return {{config_.directions, Aggregation::sum, true},
            {{EdgeKind::nodes}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    // An MLP over two parts has a first Linear for each of them.
    const auto add_first = [&](const char* one, std::int64_t in, const char* other,
                               std::int64_t of_other, std::int64_t out) {
      const std::size_t begin = entries.size();
      add_linear(entries, prefix_ + one, in, out);
      add_linear(entries, prefix_ + other, of_other, out, false);
      for (std::size_t i = begin; i < entries.size(); ++i)
        entries[i].initialiser.fan_in = in + of_other;
    };
    add_first("own", in_, "neighbour", in_, config_.hidden);
    add_linear(entries, prefix_ + "edge", config_.hidden, config_.width);
    add_first("state", states_, "mean", config_.width, config_.config_hidden);
    add_linear(entries, prefix_ + "config", config_.config_hidden, config_.config_width);
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    const double edges = product_work(config_.hidden, config_.width),
                 configs = product_work(config_.config_hidden, config_.config_width);
    network.state += product_work(states_, config_.config_hidden);
    network.add_step(
        {2 * product_work(in_, config_.hidden), edges, edges, 2 * config_.hidden + config_.width,
         static_cast<int>(config_.directions.size()), 2 * config_.hidden + config_.width},
        {.entry = static_cast<double>(2 * config_.hidden + config_.width)});
    // Kept of each row: f and the mean with their numbers, the hidden rows before and after ReLU, c,
    // and both factors of F^T C, each repeated. Its gradients are as large as these factors.
    const auto factors = static_cast<double>(2 * config_.width * config_.config_width);
    network.add_step({0, product_work(config_.width, config_.config_hidden), configs,
                      channels() + config_.config_hidden, 1},
                     {.behind = static_cast<double>(2 * (config_.width + 1) +
                                                    config_.config_hidden + config_.config_width) +
                                factors});
    network.steps.back().widest = factors;
  }

  // The entries' factors: how often an entry is an edge of a configurable node.
  void prepare(const Plan& plan, at::ScalarType dtype, PlanContext& context) const override {
    const auto step = static_cast<std::size_t>(step_);
    const NeighbourEntries& entries = context.make_entries(plan, step);
    const Csr& of_row = entries.of_row.forward;
    std::vector<double> factors(entries.count.begin(), entries.count.end());
    const std::vector<std::int32_t>& state = plan.layers[step]->state;
    for (std::size_t row = 0; row < state.size(); ++row) {
      for (std::int32_t e = of_row.begin[row]; e < of_row.begin[row + 1]; ++e) {
        // The first entry of a row is the row itself.
        if (state[row] < 0 || e == of_row.begin[row]) factors[of_row.source[e]] = 0;
      }
    }
    context.factors[step] = at::tensor(factors, at::kDouble).to(dtype).view({1, -1, 1});
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Backend& backend = call.backend;
    const PlanLayer &edges = *call.plan.layers[step_], &nodes = *call.plan.layers[step_ + 1];
    const NeighbourEntries& entries = *call.context.entries[step_];
    const auto linear = [&](const at::Tensor& rows, const char* name, bool bias = true) {
      return apply_linear(rows, weights, prefix_ + name, backend, bias);
    };
    const auto relu = [&](const at::Tensor& rows) {
      return activate_rows(rows, Activation::relu, backend);
    };

    // [sum over j of f_ij | number of edges], of the rows after the edges' step.
    const std::vector<at::Tensor> uses = split_uses(x, 2, backend);
    const at::Tensor own = gather_rows(linear(uses[0], "own"), edges.self, backend);
    const at::Tensor of_edges = linear(
        relu(sum_of_gathered(
            {{own, entries.rows()}, {linear(uses[1], "neighbour", false), entries.sources()}},
            backend)),
        "edge");
    const at::Tensor counted = map_rows(
        [](const auto& in, const auto&) {
          return at::cat({in[0] * in[1], in[1]}, 2);
        },
        {of_edges, call.context.factors[step_]}, {}, backend);
    const std::vector<at::Tensor> sums =
        split_uses(aggregate_rows(entries.of_row, counted, Aggregation::sum, backend), 2, backend);

    // [mean of f | number of edges] of each configuration.
    const at::Tensor totals =
        aggregate_rows(nodes.edges[0].aggregate, sums[0], Aggregation::sum, backend);
    const std::int64_t width = config_.width;
    const std::vector<at::Tensor> means = split_uses(
        map_rows(
            [width](const auto& in, const auto&) {
              const at::Tensor number = in[0].narrow(2, width, 1);
              return at::cat({in[0].narrow(2, 0, width) / number.clamp_min(1), number}, 2);
            },
            {totals}, {}, backend),
        2, backend);
    const at::Tensor mean =
        map_rows([width](const auto& in, const auto&) { return in[0].narrow(2, 0, width); },
                 {means[0]}, {}, backend);

    const StateIndex& index = *call.context.state_index[step_];
    const at::Tensor states =
        gather_rows(linear(chosen(call.states), "state"), {index.index, index.transposed}, backend);
    const at::Tensor of_configs = linear(
        relu(sum_of_gathered(
            {{states, nodes.self}, {linear(mean, "mean", false), nodes.edges[0].neighbourhood}},
            backend)),
        "config");
    return map_rows(
        [width](const auto& in, const auto&) {
          const at::Tensor f = in[0].narrow(2, 0, width), number = in[0].narrow(2, width, 1),
                           all = in[1].narrow(2, width, 1);
          const at::Tensor of_config = repeat_channels(in[2].unsqueeze(3), width).transpose(2, 3),
                           of_edges = repeat_channels(f.unsqueeze(3), in[2].size(2));
          return at::cat({(of_edges * of_config).flatten(2), in[2] * (number / all.clamp_min(1))},
                         2);
        },
        {gather_rows(sums[1], nodes.self, backend),
         gather_rows(means[1], nodes.edges[0].neighbourhood, backend), of_configs},
        {}, backend);
  }

 private:
  // The chosen columns of the states.
  at::Tensor chosen(const at::Tensor& states) const {
    if (config_.config_columns.empty()) return states;
    return states.index_select(2,
                               at::tensor(config_.config_columns, at::kLong).to(states.device()));
  }

  EdgeMlpConfig config_;
  std::int64_t states_;
};

}  // namespace

std::shared_ptr<const Layer> read_edge_mlp(ConfigNode block, const LayerPosition& position) {
  EdgeMlpConfig config;
  block.require("width");
  block.require("config_width");
  config.width = block.integer("width", 16, {1, 1024});
  config.hidden = block.integer("hidden", config.width, {1, kMaxWidth});
  config.config_width = block.integer("config_width", 16, {1, 1024});
  config.config_hidden = block.integer("config_hidden", config.config_width, {1, kMaxWidth});
  config.config_columns = block.integers("config_columns", {}, {0, kMaxWidth});
  for (const std::int64_t column : config.config_columns) {
    if (column < position.state_channels) continue;
    block.mistake("config_columns", "must be below " + std::to_string(position.state_channels) +
                                        ", the columns of a configuration");
    config.config_columns.clear();
    break;
  }
  config.directions = read_directions(block, true, {"producer_to_consumer"});
  return std::make_shared<EdgeMlp>(config, position);
}

}  // namespace tpudist
