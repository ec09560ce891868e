// What dropout draws: for which rows the draws are equal, how many are lost, and what is left.

#include "models/layers/layers.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.hpp"
#include "models/operators/cpu_backend.hpp"
#include "tests/models/layers/layer_case.hpp"

namespace tpudist {
namespace {

using namespace test;

constexpr std::int64_t kNodes = 400, kChannels = 48;

// Equal nodes without edges, the first of which is configurable. Configurations 1 and 2 are equal.
LayerGraph equal_nodes() {
  LayerGraph graph;
  graph.nodes = kNodes;
  graph.configs = 3;
  graph.state_rows = 2;
  graph.config_nodes = {0};
  graph.codes = {0, 1, 1};
  graph.node_class.assign(kNodes, 0);
  return graph;
}

// A dropout layer on rows of ones.
class DropoutCase {
 public:
  explicit DropoutCase(const std::string& keys) {
    ConfigDocument document =
        ConfigDocument::parse("{layer: dropout, " + keys + "}\n", "dropout.yaml");
    LayerPosition position;
    position.channels = kChannels;
    layer_ = read_layer(document.root(), position);
    document.finish();
    // One layer without edges, so that the refined plan is one.
    shape_.layers = {{{}, Aggregation::sum, false}};
    shape_.per_element = layer_->per_element();
  }

  Plan dense() const { return dense_plan_of(equal_nodes(), shape_); }
  Plan refined() const { return refined_plan_of(equal_nodes(), shape_); }

  // [rows, C]
  at::Tensor drop(const Plan& plan, std::uint64_t key = 1) {
    const PlanContext context(
        plan, shape_,
        row_keys(plan, std::vector<std::uint64_t>{11}, std::vector<std::uint64_t>{22, 33}));
    const std::vector<std::uint64_t> keys{key};
    const LayerCall call{plan, context, backend_, at::Tensor(), keys};
    return layer_->forward(at::ones({1, plan.first_rows(), kChannels}, at::kDouble), {}, call)
        .squeeze(0);
  }

 private:
  ThreadPool pool_{1};
  CpuBackend backend_{pool_};
  std::shared_ptr<const Layer> layer_;
  PlanShape shape_;
};

std::int64_t distinct_rows(const at::Tensor& rows) {
  std::set<std::vector<double>> distinct;
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    const double* const row = rows.const_data_ptr<double>() + i * rows.size(1);
    distinct.emplace(row, row + rows.size(1));
  }
  return static_cast<std::int64_t>(distinct.size());
}

TEST(Dropout, OfScopeRowIsEqualForEqualRows) {
  DropoutCase made("rate: 0.5");
  // A row of a node without state, and one for each of the two states.
  EXPECT_EQ(distinct_rows(made.drop(made.dense())), 3);
  EXPECT_EQ(distinct_rows(made.drop(made.refined())), 3);
}

TEST(Dropout, OfScopeElementIsDrawnForEveryNodeAndConfiguration) {
  DropoutCase made("rate: 0.5, scope: element");
  const Plan plan = made.dense();
  ASSERT_EQ(plan.first_rows(), 3 * kNodes);
  ASSERT_EQ(static_cast<std::int64_t>(plan.config.size()), 3 * kNodes);
  EXPECT_EQ(plan.needed_rows(1), 3 * kNodes);
  const at::Tensor rows = made.drop(plan);
  EXPECT_EQ(distinct_rows(rows), 2 * kNodes);  // configurations 1 and 2 are one
  EXPECT_TRUE(at::equal(rows, made.drop(plan)));
  EXPECT_FALSE(at::equal(rows, made.drop(plan, 2)));
}

TEST(Dropout, OfScopeElementNeedsADensePlan) {
  DropoutCase made("rate: 0.5, scope: element");
  EXPECT_THROW(made.drop(made.refined()), Error);
}

TEST(Dropout, OfChannelsKeepsTheMean) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    DropoutCase made(fmt::format("rate: {}, scope: element", rate));
    const at::Tensor rows = made.drop(made.dense());
    const at::Tensor kept = rows.gt(0);
    EXPECT_TRUE(rows.masked_select(kept).allclose(at::full({1}, 1 / (1 - rate), at::kDouble)));
    // Two of three configurations are equal: their mean varies as that of 34,560 independent draws.
    EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 1 - rate,
                4 * std::sqrt(rate * (1 - rate) / 34'560));
  }
}

// A node is lost as a whole, and the others are not scaled.
TEST(Dropout, OfNodesTakesWholeStates) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    DropoutCase made(fmt::format("rate: {}, drop: nodes, scope: element", rate));
    const at::Tensor rows = made.drop(made.dense());
    const at::Tensor kept = rows.mean(1);
    EXPECT_TRUE(at::logical_or(kept.eq(0), kept.eq(1)).all().item<bool>());
    EXPECT_NEAR(kept.mean().item<double>(), 1 - rate, 4 * std::sqrt(rate * (1 - rate) / 720));
  }
}

TEST(Dropout, OfNothingIsNone) {
  for (const char* keys : {"rate: 0", "rate: 0, drop: nodes", "rate: 0, scope: element"}) {
    DropoutCase made(keys);
    EXPECT_EQ(made.drop(made.dense()).min().item<double>(), 1) << keys;
  }
}

}  // namespace
}  // namespace tpudist
