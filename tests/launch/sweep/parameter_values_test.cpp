#include "launch/sweep/sweep_file.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<SweptKey> read(const std::string& over, bool draws_variants = false) {
  ConfigDocument document = ConfigDocument::parse("over: " + over, "sweep.yaml");
  std::vector<SweptKey> keys = read_swept_keys(document.root().child("over"), draws_variants);
  document.finish();
  return keys;
}

std::string mistake(const std::string& over, bool draws_variants = false) {
  return test::message_of<ConfigError>([&] { read(over, draws_variants); });
}

TEST(ParameterValues, ListsKeepValuesOfAnyKind) {
  const auto keys = read(
      "{optimizer.lr: [1e-3, 0.01], model.blocks: [[{layer: sage, width: 8}]], "
      "loss.list_mle.clip_norm: [.inf, 500], data.include.train: [['a*', b]]}");
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0].key, "optimizer.lr");
  EXPECT_THAT(grid_values(keys[0]), ElementsAre("1e-3", "0.01"));
  EXPECT_THAT(grid_values(keys[1]), ElementsAre("[{layer: sage, width: 8}]"));
  EXPECT_THAT(grid_values(keys[2]), ElementsAre(".inf", "500"));
  EXPECT_THAT(grid_values(keys[3]), ElementsAre("[\"a*\", b]"));
}

TEST(ParameterValues, RangesHoldTheirLastValue) {
  EXPECT_THAT(grid_values(read("{a: {range: [100, 500, 200]}}")[0]),
              ElementsAre("100", "300", "500"));
  EXPECT_THAT(grid_values(read("{a: {range: [0.1, 0.3, 0.1]}}")[0]),
              ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(grid_values(read("{a: {range: [1, 2, 3]}}")[0]), ElementsAre("1"));
}

TEST(ParameterValues, LogUniformDrawsAreAFunctionOfKeyAndSeed) {
  const std::string text = "{a: {log_uniform: [1e-4, 1e-2], draws: 200, seed: 7}}";
  const auto values = grid_values(read(text)[0]);
  ASSERT_EQ(values.size(), 200u);
  EXPECT_EQ(values, grid_values(read(text)[0]));
  EXPECT_NE(values, grid_values(read("{b: {log_uniform: [1e-4, 1e-2], draws: 200, seed: 7}}")[0]));
  EXPECT_NE(values, grid_values(read("{a: {log_uniform: [1e-4, 1e-2], draws: 200, seed: 8}}")[0]));
  int below = 0;  // the geometric mean: half of the draws lie below it
  for (const std::string& value : values) {
    const double number = std::strtod(value.c_str(), nullptr);
    EXPECT_GE(number, 1e-4);
    EXPECT_LE(number, 1e-2);
    EXPECT_LE(value.size(), 9u) << value;
    if (number < 1e-3) ++below;
  }
  EXPECT_NEAR(below, 100, 30);  // four standard deviations
}

TEST(ParameterValues, DrawnVariantsTakeOneOfEachList) {
  const auto keys = read("{a: [left, right], b: {log_uniform: [1, 100]}}", true);
  int left = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string value = drawn_value(keys[0], 1, i);
    ASSERT_TRUE(value == "left" || value == "right");
    if (value == "left") ++left;
    const double number = std::strtod(drawn_value(keys[1], 1, i).c_str(), nullptr);
    EXPECT_GE(number, 1);
    EXPECT_LE(number, 100);
  }
  EXPECT_NEAR(left, 100, 30);
}

TEST(ParameterValues, MistakesNameTheKey) {
  EXPECT_THAT(mistake("{a: []}"), HasSubstr("\"over.a\" has no values"));
  EXPECT_THAT(mistake("{a: 3}"), HasSubstr("\"over.a\" must be a list"));
  EXPECT_THAT(mistake("{a: {}}"), HasSubstr("either `range` or `log_uniform`"));
  EXPECT_THAT(mistake("{a: {range: [1, 2, 1], log_uniform: [1, 2]}}"), HasSubstr("either"));
  EXPECT_THAT(mistake("{a: {range: [2, 1, 1]}}"), HasSubstr("first <= last"));
  EXPECT_THAT(mistake("{a: {range: [0, 1e9, 1]}}"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(mistake("{a: {log_uniform: [0, 1], draws: 2}}"), HasSubstr("0 < low <= high"));
  EXPECT_THAT(mistake("{a: {log_uniform: [0, 1], draws: 2, seed: 3}}"),
              Not(HasSubstr("unknown key")));
  EXPECT_THAT(mistake("{a: {log_uniform: [1, 2]}}"), HasSubstr("\"draws\" is missing"));
  EXPECT_THAT(mistake("{a: {log_uniform: [1, 2], draws: 2}}", true), HasSubstr("has no meaning"));
}

}  // namespace
}  // namespace tpudist
