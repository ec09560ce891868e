#include "data/hdf5/element_type.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "data/hdf5/hdf5.hpp"

namespace tpudist {
namespace {

template <typename T>
class ElementTypeOf : public ::testing::Test {};
using ElementTypes = ::testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                      std::uint8_t, std::uint16_t, float, double>;
TYPED_TEST_SUITE(ElementTypeOf, ElementTypes);

TYPED_TEST(ElementTypeOf, HasOneSizeHereAndInHdf5) {
  const ElementType type = element_type<TypeParam>();
  EXPECT_EQ(element_bytes(type), sizeof(TypeParam));
  const Hdf5Lock lock;
  EXPECT_EQ(H5Tget_size(hdf5_type(type)), sizeof(TypeParam));
  const bool real = std::is_floating_point_v<TypeParam>;
  EXPECT_EQ(H5Tget_class(hdf5_type(type)), real ? H5T_FLOAT : H5T_INTEGER);
  if (!real) {
    EXPECT_EQ(H5Tget_sign(hdf5_type(type)), std::is_signed_v<TypeParam> ? H5T_SGN_2 : H5T_SGN_NONE);
  }
}

TEST(ElementName, TellsKindAndBits) {
  EXPECT_EQ(element_name(ElementType::i8), "i8");
  EXPECT_EQ(element_name(ElementType::u16), "u16");
  EXPECT_EQ(element_name(ElementType::f64), "f64");
}

ElementType type_of(std::vector<float> values) {
  return narrowest_type(values);
}

TEST(Narrow, FindsTheNarrowestType) {
  EXPECT_EQ(type_of({}), ElementType::i8);
  EXPECT_EQ(type_of({-1, 0, 5}), ElementType::i8);
  EXPECT_EQ(type_of({-128, 127}), ElementType::i8);
  EXPECT_EQ(type_of({128}), ElementType::i16);
  EXPECT_EQ(type_of({-32768, 32767}), ElementType::i16);
  EXPECT_EQ(type_of({32768}), ElementType::i32);
  EXPECT_EQ(type_of({-2147483648.0f, 2147483520.0f}), ElementType::i32);
}

TEST(Narrow, WhatIsNotAWholeNumberStaysFloat) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value :
       {0.5f, -0.0f, 2147483648.0f, 3e38f, kInfinity, -kInfinity,
        std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::denorm_min()}) {
    EXPECT_EQ(type_of({1, value}), ElementType::f32) << value;
  }
}

TEST(Narrow, TellsTheFirstValueThatDoesNotFit) {
  std::vector<float> values(3000, 1);
  std::vector<std::byte> out(values.size());
  EXPECT_EQ(narrow(values, ElementType::i8, out), std::nullopt);
  values[2500] = 0.25f;
  values[2900] = 1000;
  EXPECT_EQ(narrow(values, ElementType::i8, out), 2500u);
}

RC_GTEST_PROP(Narrow, GivesTheSameBitsBack, ()) {
  const auto bits = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::oneOf(
      rc::gen::arbitrary<std::uint32_t>(), rc::gen::map(rc::gen::inRange(-40000, 40000), [](int v) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(v));
      })));
  std::vector<float> values(bits.size()), back(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) values[i] = std::bit_cast<float>(bits[i]);
  for (ElementType type = ElementType::i8;; type = wider(type)) {
    std::vector<std::byte> stored(values.size() * element_bytes(type));
    if (!narrow(values, type, stored)) {
      widen(stored, type, back);
      const bool same = values.empty() ||
                        std::memcmp(back.data(), values.data(), values.size() * sizeof(float)) == 0;
      RC_ASSERT(same);
      RC_ASSERT(narrowest_type(values) <= type || type == ElementType::f32);
      break;
    }
    RC_ASSERT(type != ElementType::f32);
  }
}

}  // namespace
}  // namespace tpudist
