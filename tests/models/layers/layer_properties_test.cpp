// Properties that every layer has, in double: its gradients are the derivatives of its outputs,
// refined plans give what dense ones do, and parts of a slate and of an ensemble give what the
// whole does.

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/layers/layers.hpp"
#include "models/plans/plan.hpp"
#include "tests/models/layers/property_network.hpp"
#include "tests/models/plans/check_plan.hpp"
#include "tests/models/score_vectors.hpp"

namespace tpudist {
namespace {

using namespace test;

constexpr std::uint64_t kPropertyKey = 0x1234567ull;

// Kinds of units that the properties are tested on, by number.
constexpr int kVariants = 5;
Configurable configurable_of(int variant) {
  return variant == 2 ? Configurable::tile : variant == 4 ? Configurable::all : Configurable::few;
}

struct Case {
  Case(const LayerSpelling& spelling, int variant, const std::string& readout = "")
      : random(91, variant),
        network(spelling.yaml, variant, configurable_of(variant) == Configurable::tile, pool,
                readout),
        unit(small_unit(random, 1 + variant % 2, variant % 2 ? 3 : 1, configurable_of(variant))) {
    use_one_thread_per_worker();
  }

  CounterRng random;
  ThreadPool pool{1};
  PropertyNetwork network;
  RepeatedUnit unit;
};

// Adds up the rows of a gradient over inputs of equal content, in the order of the contents: plans
// may take any of equal inputs.
std::vector<double> by_content(std::span<const float> contents, std::int64_t width,
                               const at::Tensor& gradient) {
  std::map<std::vector<float>, std::vector<double>> sums;
  const std::int64_t columns = gradient.size(1);
  const std::vector<double> rows = values(gradient);
  for (std::size_t i = 0; i * width < contents.size(); ++i) {
    const auto row = contents.subspan(i * width, width);
    auto& sum = sums[{row.begin(), row.end()}];
    sum.resize(columns);
    for (std::int64_t c = 0; c < columns; ++c) sum[c] += rows[i * columns + c];
  }
  std::vector<double> all;
  for (const auto& [content, sum] : sums) all.insert(all.end(), sum.begin(), sum.end());
  return all;
}

std::vector<double> node_gradient(const UnitInput& input, const at::Tensor& gradient) {
  std::vector<float> contents;
  for (const auto& graph : input.graphs) {
    const auto raw = graph->raw_features();
    for (std::int64_t i = 0; i < graph->nodes(); ++i) {
      contents.insert(contents.end(), raw.begin() + i * kNodeFeatures,
                      raw.begin() + (i + 1) * kNodeFeatures);
      contents.push_back(static_cast<float>(graph->opcode()[i]));
    }
  }
  return by_content(contents, kNodeFeatures + 1, gradient);
}

// `scale`: the size of what the numbers are sums of, whose rounding remains.
void expect_near(std::span<const double> actual, std::span<const double> expected, double tolerance,
                 double scale, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  EXPECT_LE(distance(actual, expected), tolerance * (norm(expected) + 1e-3 * scale))
      << what << ", norm " << norm(expected);
}

double largest(const std::vector<at::Tensor>& tensors) {
  double most = 0;
  for (const at::Tensor& tensor : tensors) most = std::max(most, tensor.abs().max().item<double>());
  return most;
}

class LayerProperties : public EveryLayer {};

// Central differences of the loss along a direction of one leaf. A step may cross a kink of a ReLU
// or a change of the largest row; then a smaller one does not.
bool agrees_with_differences(const DoubleCall& call, const at::Tensor& leaf,
                             const at::Tensor& direction, double slope, double tolerance) {
  const at::NoGradGuard no_graph;
  const at::Tensor before = leaf.detach().clone();
  bool agrees = false;
  for (const double step : {1e-5, 6e-7, 4e-8}) {
    leaf.copy_(before + step * direction);
    const double above = call.loss().item<double>();
    leaf.copy_(before - step * direction);
    const double below = call.loss().item<double>();
    agrees = std::abs((above - below) / (2 * step) - slope) <= tolerance;
    if (agrees) break;
  }
  leaf.copy_(before);
  return agrees;
}

TEST_P(LayerProperties, GradientsAreDerivatives) {
  for (int variant = 0; variant < kVariants; ++variant) {
    SCOPED_TRACE(variant);
    Case made(GetParam(), variant);
    // On plans where equal nodes stay equal whatever is changed, so that ties of a maximum do.
    const UnitInput input = compact_unit(made.network.network(), made.unit);
    const DoubleCall call(made.network, input, made.network.parameters(1, kPropertyKey),
                          {kPropertyKey});
    const std::vector<at::Tensor> gradients = call.gradients();
    const double all = largest(gradients);
    ASSERT_GT(all, 0);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::int64_t size = gradients[i].numel();
      const double tolerance = 2e-6 * gradients[i].abs().max().item<double>() + 1e-7 * all;
      for (int trial = 0; trial < 6; ++trial) {
        at::Tensor direction = at::zeros({size}, at::kDouble);
        double* const values = direction.mutable_data_ptr<double>();
        if (trial < 2) {  // all numbers of the leaf at once
          for (std::int64_t j = 0; j < size; ++j) values[j] = made.random.uniform(-1, 1);
        } else {
          values[made.random.below(size)] = 1;
        }
        direction = direction.view(gradients[i].sizes());
        EXPECT_TRUE(agrees_with_differences(call, call.leaves()[i], direction,
                                            (gradients[i] * direction).sum().item<double>(),
                                            tolerance * (trial < 2 ? std::sqrt(size) : 1.0)))
            << call.names()[i];
      }
    }
  }
}

TEST_P(LayerProperties, RefinedPlansGiveWhatDenseOnesDo) {
  for (int variant = 0; variant < 3 * kVariants; ++variant) {
    SCOPED_TRACE(variant);
    Case made(GetParam(), variant);
    const UnitInput dense = dense_unit(made.network.network(), made.unit),
                    refined = compact_unit(made.network.network(), made.unit);
    check_plan(*dense.plan);
    check_plan(*refined.plan);
    const AlignedFloats flat = made.network.parameters(1, kPropertyKey);
    if (made.network.network().plan_shape().per_element) {
      // Rows that stand for several (node, configuration) cannot tell them apart.
      const UnitInput shared = refined_unit(made.network.network(), made.unit);
      EXPECT_THROW(DoubleCall(made.network, shared, flat, {kPropertyKey}).scores(), Error);
    } else {
      EXPECT_LT(refined.plan->total_rows(), dense.plan->total_rows());
    }
    const DoubleCall expected(made.network, dense, flat, {kPropertyKey}),
        actual(made.network, refined, flat, {kPropertyKey});
    expect_near(values(actual.scores()), values(expected.scores()), 1e-9, 1, "scores");
    const auto own = actual.gradients(), golden = expected.gradients();
    const double scale = largest(golden);
    for (std::size_t i = 0; i < expected.parameters(); ++i)
      expect_near(values(own[i]), values(golden[i]), 1e-9, scale, expected.names()[i]);
    const std::size_t nodes = expected.parameters(), states = nodes + 1;
    expect_near(node_gradient(refined, own[nodes]), node_gradient(dense, golden[nodes]), 1e-9,
                scale, "nodes");
    const std::int64_t width = golden[states].size(1);
    // The last row is that of nodes without a state.
    const std::int64_t rows = golden[states].size(0) - 1;
    expect_near(by_content(dense.states, width, own[states].narrow(0, 0, rows)),
                by_content(dense.states, width, golden[states].narrow(0, 0, rows)), 1e-9, scale,
                "states");
    expect_near(values(own[states][rows]), values(golden[states][rows]), 1e-9, scale, "no state");
  }
}

// The gradient of a loss that ignores a shift needs the needed rows alone, forward and back.
TEST_P(LayerProperties, NeededRowsGiveTheWholeGradientOfDifferences) {
  int parts = 0;
  bool mixes_nodes = false;
  for (int variant = 0; variant < 3 * kVariants; ++variant) {
    SCOPED_TRACE(variant);
    static const char* const readouts[] = {"pool: sum", "pool: mean", "pool: sum+mean"};
    Case made(GetParam(), variant, readouts[variant % 3]);
    ASSERT_TRUE(made.network.composed().adds_up_rows());
    for (const LayerShape& layer : made.network.network().plan_shape().layers)
      mixes_nodes = mixes_nodes || layer.edge_kinds == std::vector{EdgeKind::nodes};
    const AlignedFloats flat = made.network.parameters(1, kPropertyKey);
    for (const bool refine : {false, true}) {
      const UnitInput whole = refine ? compact_unit(made.network.network(), made.unit)
                                     : dense_unit(made.network.network(), made.unit);
      UnitInput needed = whole;
      needed.plan = needed_part(*whole.plan, made.network.composed().plan_shape());
      if (!needed.plan) continue;
      ++parts;
      check_plan(*needed.plan);
      const DoubleCall expected(made.network, whole, flat, {kPropertyKey}, true),
          actual(made.network, needed, flat, {kPropertyKey}, true);
      EXPECT_NEAR(actual.loss().item<double>(), expected.loss().item<double>(),
                  1e-12 * norm(values(expected.scores())));
      const auto own = actual.gradients(), golden = expected.gradients();
      const double scale = largest(golden);
      for (std::size_t i = 0; i < golden.size(); ++i)
        expect_near(values(own[i]), values(golden[i]), 1e-12, 1e3 * scale, expected.names()[i]);
    }
  }
  // After a layer that mixes the nodes of a configuration nearly all rows are needed, and all
  // where dropout draws for every (node, configuration).
  const Case made(GetParam(), 0);
  if (made.network.network().plan_shape().per_element) {
    EXPECT_EQ(parts, 0);
  } else if (!mixes_nodes) {
    EXPECT_GT(parts, 0);
  }
}

// What `batch.config_chunk` and scoring rest on.
TEST_P(LayerProperties, PartsOfASlateGiveWhatTheWholeDoes) {
  for (const int variant : {0, 2, 4}) {
    SCOPED_TRACE(variant);
    Case made(GetParam(), variant);
    const bool mixes = made.network.network().config().mixes_configs();
    EXPECT_EQ(mixes, GetParam().yaml.find("config_attention") != std::string::npos);
    if (mixes) continue;  // its scores depend on the whole slate
    const AlignedFloats flat = made.network.parameters(1, kPropertyKey);
    for (const bool refine : {false, true}) {
      const auto scores_of = [&](std::int64_t first, std::int64_t count) {
        RepeatedUnit part = made.unit;
        RepeatedSlate& slate = part.slates[0];
        const std::int64_t width = part.graphs[0].states_per_config();
        slate.states.assign(made.unit.slates[0].states.begin() + first * width,
                            made.unit.slates[0].states.begin() + (first + count) * width);
        slate.configs = count;
        const UnitInput input = refine ? compact_unit(made.network.network(), part)
                                       : dense_unit(made.network.network(), part);
        return values(DoubleCall(made.network, input, flat, {kPropertyKey}).scores());
      };
      const std::int64_t configs = made.unit.slates[0].configs;
      const std::vector<double> whole = scores_of(0, configs);
      std::vector<double> parts = scores_of(0, 1);
      const std::vector<double> rest = scores_of(1, configs - 1);
      parts.insert(parts.end(), rest.begin(), rest.end());
      expect_near(parts, whole, 1e-12, 0, refine ? "refined" : "dense");
    }
  }
}

TEST_P(LayerProperties, MembersTogetherGiveTheBitsThatEachGivesAlone) {
  const std::vector<std::uint64_t> keys = {kPropertyKey, kPropertyKey + 5, kPropertyKey + 17, 4, 9};
  for (int variant = 0; variant < kVariants; ++variant) {
    SCOPED_TRACE(variant);
    Case made(GetParam(), variant);
    for (const bool refine : {false, true}) {
      const UnitInput input = refine ? compact_unit(made.network.network(), made.unit)
                                     : dense_unit(made.network.network(), made.unit);
      const AlignedFloats flat =
          made.network.parameters(static_cast<int>(keys.size()), kPropertyKey);
      const DoubleCall together(made.network, input, flat, keys);
      const at::Tensor scores = together.scores();
      const std::vector<at::Tensor> gradients = together.gradients();
      for (std::size_t m = 0; m < keys.size(); ++m) {
        const std::size_t length = flat.size() / keys.size();
        const DoubleCall alone(made.network, input, std::span(flat).subspan(m * length, length),
                               {keys[m]});
        const auto member = static_cast<std::int64_t>(m);
        EXPECT_EQ(values(scores[member]), values(alone.scores()));
        const auto own = alone.gradients();
        for (std::size_t i = 0; i < alone.parameters(); ++i)
          EXPECT_EQ(values(gradients[i][member]), values(own[i][0])) << alone.names()[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, LayerProperties, ::testing::ValuesIn(layer_spellings()),
                         name_of);

TEST(LayerSpellings, NameEveryLayer) {
  std::set<std::string> spelled, names;
  for (const LayerSpelling& spelling : layer_spellings()) {
    spelled.insert(spelling.layer);
    EXPECT_TRUE(names.insert(spelling.name).second) << spelling.name << " stands there twice";
  }
  for (const std::string& layer : layer_names()) {
    EXPECT_TRUE(spelled.count(layer))
        << layer << ": add it to tests/models/layers/layer_spellings.hpp";
  }
}

}  // namespace
}  // namespace tpudist
