// Refined against dense plans on the graphs of the real data set that this machine has: equal in
// double, and no less precise in float32.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/random.hpp"
#include "data/convert/converter.hpp"
#include "data/loading/dataset.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/models/float_error.hpp"
#include "tests/models/network_case.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/temp_dir.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {
namespace {

class RealPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = test::real_data_root();
    if (!root_) GTEST_SKIP() << "no files of the real data set here; see TPUDIST_REAL_DATA";
    use_one_thread_per_worker();
  }

  // Compares both plans on `units` units of one random slate of `configs` rows for each graph.
  void compare(const std::string& collection_name, const char* preset, int units, int configs) {
    const Collection collection = Collection::parse(collection_name);
    NoProgress progress;
    convert({.npz_root = *root_ / "npz", .shard_root = shards_, .collections = {collection}},
            progress);
    ThreadPool pool(1);
    const Dataset data = Dataset::open({.shards = shards_,
                                        .collection = collection,
                                        .split = "train",
                                        .duplicates = DuplicatesPolicy::min},
                                       pool);
    const Network network(NetworkConfig::preset(preset), collection.schema, -1, pool);
    const UnitBuilder dense(data, network, PlanMode::dense),
        refined(data, network, PlanMode::refined);
    for (int i = 0; i < units * data.size(); ++i) {
      CounterRng random(1, i);
      SlateRows rows{i % data.size(), {}};
      for (int k = 0; k < configs; ++k) rows.rows.push_back(random.below(data.rows(rows.graph)));
      SCOPED_TRACE(data.graph(rows.graph).name);
      const AlignedFloats member = test::random_parameters(network, 1, random.next_u64());
      const Unit unit = dense.build({&rows, 1});
      const auto& drawn = unit.slates[0].configs;
      if (std::ranges::count(drawn, drawn[0]) == std::ssize(drawn)) continue;  // nothing to rank
      compare(network, member, unit.input, refined.build({&rows, 1}).input, random);
    }
    report(collection_name);
  }

 private:
  void compare(const Network& network, std::span<const float> member, const UnitInput& dense,
               const UnitInput& refined, CounterRng& random) {
    std::vector<double> weights;
    for (std::int64_t k = 0; k < dense.plan->configs; ++k) weights.push_back(random.normal());
    weights = test::centred(weights, *dense.plan);
    const test::ExactValues exact = test::exact_values(network, member, dense, weights),
                            other = test::exact_values(network, member, refined, weights);
    EXPECT_LE(test::distance(other.scores, exact.scores), 1e-9 * test::norm(exact.scores));
    EXPECT_LE(test::distance(other.gradient, exact.gradient), 1e-9 * test::norm(exact.gradient));
    dense_error_.add(test::float_error(network, member, dense, weights, exact));
    refined_error_.add(test::float_error(network, member, refined, weights, exact));
    dense_rows_ += dense.plan->total_rows();
    refined_rows_ += refined.plan->total_rows();
  }

  void report(const std::string& collection) const {
    fmt::print("{}: rows {} and {}\n", collection, dense_rows_, refined_rows_);
    test::expect_at_most_twice("centred scores", dense_error_.scores(), refined_error_.scores());
    test::expect_at_most_twice("gradient", dense_error_.gradient(), refined_error_.gradient());
  }

  std::optional<std::filesystem::path> root_;
  test::TempDir folder_;
  std::filesystem::path shards_ = folder_ / "shards";
  test::SumOfErrors dense_error_, refined_error_;
  std::int64_t dense_rows_ = 0, refined_rows_ = 0;
};

TEST_F(RealPlans, AgreeOnAlexNet) {
  compare("layout:xla:random", "latenciaga_xla", 2, 10);
}
TEST_F(RealPlans, AgreeOnResNet) {
  compare("layout:xla:default", "latenciaga_xla", 1, 6);
}
TEST_F(RealPlans, AgreeOnTileGraphs) {
  compare("tile:xla", "latenciaga_xla", 1, 10);
}

}  // namespace
}  // namespace tpudist
