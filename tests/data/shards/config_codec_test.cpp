#include "data/shards/config_codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>

#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

// A vector that is told apart from others by `state` only.
void append(std::vector<float>& features, int state) {
  for (int k = 0; k < kLayoutConfigFeatures; ++k)
    features.push_back(static_cast<float>(k == kLayoutConfigFeatures - 1 ? state : k - 1));
}

std::vector<float> rows_of(const std::vector<std::vector<int>>& rows) {
  std::vector<float> features;
  for (const auto& row : rows) {
    for (const int state : row) append(features, state);
  }
  return features;
}

TEST(ConfigEncoder, NumbersStatesByFirstOccurrenceInEachNode) {
  const auto features = rows_of({{7, 5}, {7, 6}, {8, 5}, {7, 6}});
  std::vector<std::uint16_t> codes(8);
  ConfigEncoder encoder(2, kLayoutConfigFeatures);
  ASSERT_TRUE(encoder.encode(features, codes));
  EXPECT_EQ(codes, (std::vector<std::uint16_t>{0, 0, 0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(encoder.state_count(), 4);
  EXPECT_EQ(encoder.max_states_per_node(), 2);

  const ConfigStates states = encoder.states();
  EXPECT_EQ(states.offsets, (std::vector<std::int32_t>{0, 2, 4}));
  EXPECT_EQ(states.features[17], 7);
  EXPECT_EQ(states.features[2 * kLayoutConfigFeatures - 1], 8);
  std::vector<float> decoded(features.size());
  decode_configs<std::uint16_t>(states, codes, decoded);
  EXPECT_EQ(decoded, features);
}

TEST(ConfigEncoder, TellsStatesApartByTheirBits) {
  auto features = rows_of({{0}, {0}, {0}, {0}});
  features[kLayoutConfigFeatures] = std::copysign(0.0f, -1.0f);
  features[0] = features[36] = 0.0f;
  features[54] = std::nanf("");
  std::vector<std::uint16_t> codes(4);
  ConfigEncoder encoder(1, kLayoutConfigFeatures);
  ASSERT_TRUE(encoder.encode(features, codes));
  EXPECT_EQ(codes, (std::vector<std::uint16_t>{0, 1, 0, 2}));
  EXPECT_EQ(encoder.first_difference(codes, features), std::nullopt);
}

TEST(ConfigEncoder, TheProofFindsADifference) {
  auto features = rows_of({{1, 2}, {3, 2}});
  std::vector<std::uint16_t> codes(4);
  ConfigEncoder encoder(2, kLayoutConfigFeatures);
  ASSERT_TRUE(encoder.encode(features, codes));
  auto wrong = codes;
  wrong[2] = 0;
  EXPECT_EQ(encoder.first_difference(wrong, features), 2u);
  wrong[2] = 9;  // no such state
  EXPECT_EQ(encoder.first_difference(wrong, features), 2u);
  features[3 * kLayoutConfigFeatures] = -0.0f;
  EXPECT_EQ(encoder.first_difference(codes, features), 3u);
}

TEST(ConfigEncoder, CountsTheStatesOfTheNodeWithMost) {
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back({0, i % 257});
  std::vector<std::uint16_t> codes(2000);
  ConfigEncoder encoder(2, kLayoutConfigFeatures);
  EXPECT_TRUE(encoder.encode(rows_of(rows), codes));
  EXPECT_EQ(encoder.state_count(), 258);
  EXPECT_EQ(encoder.max_states_per_node(), 257);
  EXPECT_EQ(codes[2 * 256 + 1], 256);
  EXPECT_EQ(codes[2 * 257 + 1], 0);
}

// Whatever states meet in the table of a node while it grows.
TEST(ConfigEncoder, AStateKeepsItsNumberInManyNodes) {
  constexpr int kNodes = 64, kStates = 257;
  std::vector<std::vector<int>> rows(2 * kStates);
  for (int i = 0; i < 2 * kStates; ++i) {
    for (int node = 0; node < kNodes; ++node) rows[i].push_back(1000 * node + i % kStates);
  }
  std::vector<std::uint16_t> codes(2 * kStates * kNodes);
  ConfigEncoder encoder(kNodes, kLayoutConfigFeatures);
  EXPECT_TRUE(encoder.encode(rows_of(rows), codes));
  EXPECT_EQ(encoder.state_count(), kNodes * kStates);
  for (std::size_t i = 0; i < codes.size(); ++i) ASSERT_EQ(codes[i], i / kNodes % kStates) << i;
}

TEST(ConfigEncoder, GivesUpOnConfigurationsThatDoNotRepeat) {
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 3000; ++i) rows.push_back({i, 0});
  const auto features = rows_of(rows);
  std::vector<std::uint16_t> codes(6000);
  const auto encode = [&](ConfigEncoder::Limits limits) {
    return ConfigEncoder(2, kLayoutConfigFeatures, limits).encode(features, codes);
  };
  EXPECT_FALSE(encode({}));  // 3001 states in 6000 vectors
  EXPECT_TRUE(encode({.trial_rows = 4000}));
  EXPECT_FALSE(encode({.dictionary_bytes = 72 * 1000, .trial_rows = 4000}));
}

TEST(ConfigEncoder, ShapesMustAgree) {
  std::vector<std::uint16_t> codes(3);
  EXPECT_THROW(
      static_cast<void>(ConfigEncoder(2, kLayoutConfigFeatures).encode(rows_of({{1, 2}}), codes)),
      std::invalid_argument);
}

TEST(ConfigCodec, PaysWhenCodesAndStatesAreSmallerThanNarrowFeatures) {
  EXPECT_TRUE(coding_pays(112, 62, kLayoutConfigFeatures, 316, 1));
  EXPECT_FALSE(coding_pays(1, 10, kLayoutConfigFeatures, 10, 1));  // 10 + 180 bytes against 180
  EXPECT_TRUE(
      coding_pays(2, 10, kLayoutConfigFeatures, kLayoutConfigFeatures, 1));  // 20 + 324 against 360
  EXPECT_FALSE(coding_pays(2, 10, kLayoutConfigFeatures, kLayoutConfigFeatures, 2));
}

RC_GTEST_PROP(ConfigCodec, DecodesToTheSameBits, ()) {
  const auto nc = *rc::gen::inRange<std::size_t>(1, 6);
  const auto count = *rc::gen::inRange<std::size_t>(0, 60);
  const auto pieces = *rc::gen::inRange<std::size_t>(1, 8);
  std::vector<float> features(count * nc * kLayoutConfigFeatures);
  for (float& value : features) {
    value = *rc::gen::weightedElement<float>({{50, 1.0f}, {1, 0.0f}, {1, -0.0f}, {1, 2.5f}});
  }
  std::vector<std::uint16_t> codes(count * nc);
  ConfigEncoder encoder(static_cast<std::int64_t>(nc), kLayoutConfigFeatures);
  for (std::size_t begin = 0; begin < count; begin += pieces) {
    const std::size_t rows = std::min(pieces, count - begin);
    const bool coded =
        encoder.encode(std::span(features).subspan(begin * nc * kLayoutConfigFeatures,
                                                   rows * nc * kLayoutConfigFeatures),
                       std::span(codes).subspan(begin * nc, rows * nc));
    RC_ASSERT(coded);
  }
  std::vector<float> decoded(features.size());
  decode_configs<std::uint16_t>(encoder.states(), codes, decoded);
  const bool same = features.empty() || std::memcmp(decoded.data(), features.data(),
                                                    features.size() * sizeof(float)) == 0;
  RC_ASSERT(same);
  RC_ASSERT(!encoder.first_difference(codes, features).has_value());
}

}  // namespace
}  // namespace tpudist
