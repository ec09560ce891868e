#include "train/optimizer/optimizer.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OptimizerConfig read_optimizer(std::string_view yaml) {
  ConfigDocument document = ConfigDocument::parse(yaml, "test.yaml");
  const OptimizerConfig config = OptimizerConfig::read(document.root().child("optimizer"));
  document.finish();
  return config;
}

// The tensors of tests/golden/optimizer.py in a flat buffer with its padding.
class TwoMembers {
 public:
  TwoMembers() {
    table_.add("weight", {2, 3});
    table_.add("bias", {3});
    table_.add("output.weight", {3, 1}, ParameterGroup::output);
  }

  const ParameterTable& table() const { return table_; }

  std::vector<float> parameters() const {
    return fill(1.0f / 32, [](int member) { return member * 3; });
  }
  std::vector<float> gradients(int step) const {
    return fill(1.0f / 8, [&](int member) { return member * 5 + step * 7 + 1; });
  }

  // Without padding.
  std::vector<float> values(const std::vector<float>& flat, int member) const {
    std::vector<float> result;
    for (const ParameterEntry& entry : table_.entries()) {
      const auto begin = flat.begin() + member * table_.length() + entry.offset;
      result.insert(result.end(), begin, begin + entry.size());
    }
    return result;
  }

 private:
  template <typename Salt>
  std::vector<float> fill(float scale, Salt salt) const {
    std::vector<float> flat(2 * table_.length());
    for (int member = 0; member < 2; ++member) {
      int number = 0;
      for (const ParameterEntry& entry : table_.entries()) {
        for (std::int64_t i = 0; i < entry.size(); ++i, ++number) {
          flat[member * table_.length() + entry.offset + i] =
              static_cast<float>((number * 11 + salt(member)) % 29 - 14) * scale;
        }
      }
    }
    return flat;
  }

  ParameterTable table_;
};

std::vector<float> train(const TwoMembers& two, const OptimizerConfig& config) {
  ThreadPool pool(1);
  FlatOptimizer optimizer(config, two.table(), 2);
  std::vector<float> flat = two.parameters();
  const double factors[] = {1.0, 0.5, 0.25, 2.0};
  for (int step = 0; step < 4; ++step) {
    const std::vector<float> gradients = two.gradients(step);
    const auto norms = optimizer.gradient_norms(gradients, two.table().length(), pool);
    const bool second_member = step != 2;
    optimizer.step(flat, gradients, two.table().length(), norms, {true, second_member},
                   factors[step], pool);
  }
  EXPECT_THAT(optimizer.steps(), ElementsAre(4, 3));
  return flat;
}

void expect_near(const std::vector<float>& values, const std::vector<float>& golden) {
  ASSERT_EQ(values.size(), golden.size());
  for (std::size_t i = 0; i < golden.size(); ++i) EXPECT_NEAR(values[i], golden[i], 1e-7) << i;
}

TEST(FlatOptimizer, MatchesTorchAdamWWithClipAndDecayRanges) {
  const TwoMembers two;
  const auto flat = train(
      two,
      read_optimizer("optimizer: {name: adamw, lr: 1e-2, eps: 1e-6, clip_norm: 1.5, decay: {all: "
                     "0.01, output: 0.5}}"));
  expect_near(two.values(flat, 0), {-0.417023569f, -0.0907842219f, 0.248410657f, -0.303846598f,
                                    0.0232286192f, 0.361115664f, -0.172589988f, 0.137548044f,
                                    -0.388489783f, -0.0617183894f, 0.271764785f, -0.27066642f});
  expect_near(two.values(flat, 1), {-0.334102601f, -0.022182636f, 0.32581085f, -0.196361959f,
                                    0.0961209908f, -0.420170218f, -0.0963565856f, 0.239402905f,
                                    -0.305555612f, 0.00643186457f, 0.391465396f, -0.165570468f});
}

TEST(FlatOptimizer, MatchesTorchAdamWithDecayInTheGradient) {
  const TwoMembers two;
  const auto flat =
      train(two, read_optimizer("optimizer: {name: adam, lr: 1e-1, beta1: 0.8, beta2: 0.9, "
                                "decay: {all: 0.25, output: 0.5}}"));
  expect_near(two.values(flat, 0), {-0.245144576f, -0.0481797978f, 0.22676231f, -0.239893615f,
                                    -0.029915534f, 0.218178049f, -0.0225177109f, -0.0173082612f,
                                    -0.242181361f, -0.0500386655f, 0.21223031f, -0.227568179f});
  expect_near(two.values(flat, 1), {-0.258104742f, -0.200424567f, 0.152155936f, 0.0193967521f,
                                    -0.158117473f, -0.2755799f, 0.00199508667f, 0.134633586f,
                                    -0.252422512f, -0.193617806f, 0.546349883f, 0.0261097625f});
}

TEST(FlatOptimizer, MatchesTorchWithAClipOfEachTensor) {
  const TwoMembers two;
  const std::string text =
      "optimizer: {name: adam, lr: 1e-1, eps: 1e-3, clip_tensor_norm: 1.5, decay: {all: 0.25, "
      "output: 0.5";
  const auto flat = train(two, read_optimizer(text + "}}"));
  expect_near(two.values(flat, 0), {-0.217501581f, -0.0549441241f, 0.22183463f, -0.215135545f,
                                    -0.0387023613f, 0.209696755f, -0.0388499834f, -0.0284005608f,
                                    -0.207181901f, -0.0635875463f, 0.195321739f, -0.181719139f});
  expect_near(two.values(flat, 1), {-0.226687312f, -0.212195337f, 0.147769541f, 0.0193222463f,
                                    -0.163198844f, -0.241730511f, -0.0300476439f, 0.131084844f,
                                    -0.216686428f, -0.200298026f, 0.553848922f, 0.0228957832f});
  // With the decay in what is clipped.
  const auto clipped = train(two, read_optimizer(text + ", clipped: true}}"));
  expect_near(two.values(clipped, 0), {-0.229154348f, -0.0592654273f, 0.235994905f, -0.228166521f,
                                       -0.0394295231f, 0.226759389f, -0.0431478173f, -0.0232890192f,
                                       -0.213954329f, -0.0672626346f, 0.214647889f, -0.194982156f});
  expect_near(two.values(clipped, 1), {-0.240876228f, -0.213823289f, 0.158777609f, 0.0100596398f,
                                       -0.161241457f, -0.255635649f, -0.0318516642f, 0.139307633f,
                                       -0.22323893f, -0.211466312f, 0.576843262f, 0.0139174908f});
}

TEST(OptimizerConfig, RefusesTwoClipsAndAClippedDecayWithoutOne) {
  const auto message = [](const char* yaml) {
    try {
      read_optimizer(yaml);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("optimizer: {clip_norm: 1, clip_tensor_norm: 1}"),
              HasSubstr("\"optimizer.clip_tensor_norm\" and clip_norm are two ways to clip"));
  EXPECT_THAT(message("optimizer: {name: adam, decay: {all: 1, clipped: true}}"),
              HasSubstr("\"optimizer.decay.clipped\" makes the decay a part of the gradient"));
  EXPECT_THAT(message("optimizer: {clip_tensor_norm: 1, decay: {all: 1, clipped: true}}"),
              HasSubstr("give name: adam"));
}

// Each group by itself, in tests/golden/optimizer.py.
TEST(FlatOptimizer, DecaysEachGroupAsTorchDoes) {
  using enum ParameterGroup;
  ParameterTable table;
  const ParameterGroup groups[] = {weights, biases, embeddings, norms, output};
  for (const ParameterGroup group : groups)
    table.add("entry" + std::to_string(static_cast<int>(group)), {2}, group);
  const OptimizerConfig config = read_optimizer(
      "optimizer: {lr: 1e-2, decay: {all: 9, weights: 0.1, biases: 0, embeddings: 0.2, norms: "
      "0.3, output: 0.4}}");
  ThreadPool pool(1);
  FlatOptimizer optimizer(config, table, 1);
  std::vector<float> flat(table.length()), gradients(flat.size());
  for (std::size_t g = 0; g < 5; ++g) {
    flat[16 * g] = 0.5f + static_cast<float>(g);
    flat[16 * g + 1] = -0.25f;
    gradients[16 * g] = 0.125f;
    gradients[16 * g + 1] = -2;
  }
  for (int step = 0; step < 2; ++step)
    optimizer.step(flat, gradients, table.length(), {}, {true}, 1, pool);
  std::vector<float> values;
  for (std::size_t g = 0; g < 5; ++g) values.insert(values.end(), {flat[16 * g], flat[16 * g + 1]});
  expect_near(values, {0.479010522f, -0.229510248f, 1.48000002f, -0.229999989f, 2.47003031f,
                       -0.229020998f, 3.45906138f, -0.228532225f, 4.44411135f, -0.228043988f});
}

TEST(FlatOptimizer, LeavesStatisticsAlone) {
  ParameterTable table, without;
  table.add("a", {3});
  table.add("means", {5}, ParameterGroup::statistics);
  table.add("b", {3}, ParameterGroup::output);
  without.add("a", {3});
  without.add("b", {3}, ParameterGroup::output);
  const OptimizerConfig config = read_optimizer("optimizer: {clip_norm: 0.1, decay: {all: 0.5}}");
  ThreadPool pool(1);
  FlatOptimizer optimizer(config, table, 1), other(config, without, 1);
  std::vector<float> flat(48, 0.7f), gradients(48, 0.3f), few(32, 0.7f), of_few(32, 0.3f);
  for (int step = 0; step < 3; ++step) {
    const auto norms = optimizer.gradient_norms(gradients, 48, pool);
    EXPECT_NEAR(norms[0], other.gradient_norms(of_few, 32, pool)[0], 1e-12);
    optimizer.step(flat, gradients, 48, norms, {true}, 1, pool);
    other.step(few, of_few, 32, norms, {true}, 1, pool);
  }
  EXPECT_NE(flat[0], 0.7f);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_FLOAT_EQ(flat[i], few[i]);
    EXPECT_EQ(flat[16 + i], 0.7f);
    EXPECT_FLOAT_EQ(flat[32 + i], few[16 + i]);
  }
}

TEST(FlatOptimizer, KeepsPaddingZero) {
  const TwoMembers two;
  const auto flat = train(two, read_optimizer("optimizer: {decay: {all: 0.1}, eps: 1e-30}"));
  double sum = 0, sum_of_values = 0;
  for (float value : flat) sum += std::abs(value);
  for (int member = 0; member < 2; ++member) {
    for (float value : two.values(flat, member)) sum_of_values += std::abs(value);
  }
  EXPECT_EQ(sum, sum_of_values);
}

TEST(FlatOptimizer, LeavesMembersThatSitOutAsTheyWere) {
  const TwoMembers two;
  ThreadPool pool(1);
  FlatOptimizer optimizer(OptimizerConfig{}, two.table(), 2);
  std::vector<float> flat = two.parameters();
  std::vector<float> gradients = two.gradients(0);
  gradients[0] = std::numeric_limits<float>::quiet_NaN();
  optimizer.step(flat, gradients, two.table().length(), {}, {false, true}, 1, pool);
  EXPECT_EQ(two.values(flat, 0), two.values(two.parameters(), 0));
  EXPECT_NE(two.values(flat, 1), two.values(two.parameters(), 1));
  EXPECT_THAT(optimizer.steps(), ElementsAre(0, 1));
  EXPECT_EQ(optimizer.first_moment()[0], 0);
  EXPECT_EQ(optimizer.second_moment()[0], 0);
}

TEST(FlatOptimizer, NormsAreThoseOfEachMember) {
  const TwoMembers two;
  ThreadPool pool(1);
  const FlatOptimizer optimizer(OptimizerConfig{}, two.table(), 2);
  const std::int64_t length = two.table().length(), stride = length + 16;
  std::vector<float> gradients(stride + length);
  gradients[1] = 3;
  gradients[20] = -4;
  gradients[length] = 100;  // between the members
  gradients[stride] = 2;
  EXPECT_THAT(optimizer.gradient_norms(gradients, stride, pool), ElementsAre(5.0, 2.0));
}

TEST(FlatOptimizer, SameBitsForAnyNumberOfThreads) {
  ParameterTable table;
  table.add("weight", {301, 333});
  table.add("output.weight", {40'000}, ParameterGroup::output);
  CounterRng random(7);
  std::vector<float> start(3 * table.length()), gradients(start.size());
  for (float& value : start) value = static_cast<float>(random.normal());
  for (float& value : gradients) value = static_cast<float>(random.normal());
  OptimizerConfig config;
  config.clip_norm = 10;
  config.set_decay(ParameterGroup::output, 0.1);

  std::vector<std::vector<float>> flats;
  std::vector<std::vector<double>> norms;
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    FlatOptimizer optimizer(config, table, 3);
    std::vector<float> flat = start;
    for (int step = 0; step < 3; ++step) {
      norms.push_back(optimizer.gradient_norms(gradients, table.length(), pool));
      optimizer.step(flat, gradients, table.length(), norms.back(), {true, true, true}, 1, pool);
    }
    flats.push_back(flat);
  }
  EXPECT_NE(flats[0], start);
  EXPECT_EQ(flats[1], flats[0]);
  EXPECT_EQ(flats[2], flats[0]);
  for (const auto& other : norms) EXPECT_EQ(other, norms[0]);
}

TEST(FlatOptimizer, RefusesBuffersThatDoNotFit) {
  const TwoMembers two;
  ThreadPool pool(1);
  FlatOptimizer optimizer(OptimizerConfig{}, two.table(), 2);
  std::vector<float> flat = two.parameters(), few(10);
  const std::int64_t length = two.table().length();
  EXPECT_THROW(optimizer.gradient_norms(few, length, pool), Error);
  EXPECT_THROW(optimizer.step(few, flat, length, {}, {true, true}, 1, pool), Error);
  EXPECT_THROW(optimizer.step(flat, flat, length, {}, {true}, 1, pool), Error);
}

TEST(OptimizerConfig, DecayOfAGroupDefaultsToTheDecayOfAll) {
  using enum ParameterGroup;
  const OptimizerConfig all = read_optimizer("optimizer: {decay: {all: 0.5}}");
  for (const ParameterGroup group : {weights, biases, embeddings, norms, output})
    EXPECT_EQ(all.decay_of(group), 0.5);
  EXPECT_EQ(all.decay_of(statistics), 0);
  EXPECT_EQ(read_optimizer("optimizer: {decay: {all: 0.5, output: 0}}").decay_of(output), 0);
  const OptimizerConfig one = read_optimizer("optimizer: {decay: {output: 1e-4}}");
  EXPECT_EQ(one.decay_of(weights), 0);
  EXPECT_EQ(one.decay_of(output), 1e-4);
}

TEST(OptimizerConfig, NamesAllMistakesAtOnce) {
  try {
    read_optimizer("optimizer: {name: adamm, lr: -1, beta2: 1, epss: 1}");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    for (const char* part : {"adamw", "lr", "beta2", "epss"}) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace tpudist
