#include "data/hdf5/element_type.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

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

}  // namespace
}  // namespace tpudist
