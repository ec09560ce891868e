#include "core/array.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace tpudist {
namespace {

using ::testing::ElementsAre;

TEST(Array, TakesAVectorOverAndSharesItWithCopies) {
  std::vector<int> values{1, 2, 3};
  const int* place = values.data();
  const Array<int> array = std::move(values);
  const Array<int> copy = array;
  EXPECT_EQ(array.data(), place);
  EXPECT_EQ(copy.data(), place);
  EXPECT_THAT(copy, ElementsAre(1, 2, 3));
  EXPECT_EQ(array.bytes(), 3 * sizeof(int));
  EXPECT_EQ(array.front() + array[1] + array.back(), 6);
  const std::span<const int> view = array;
  EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0), 6);
}

TEST(Array, IsEmptyByDefault) {
  const Array<float> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_EQ(none, Array<float>(std::vector<float>{}));
}

TEST(Array, ComparesElements) {
  const Array<int> a{1, 2}, b{1, 2}, c{1, 3};
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == c);
  EXPECT_EQ(a, (std::vector<int>{1, 2}));
}

TEST(Array, KeepsTheOwnerOfElementsThatLieElsewhere) {
  auto owner = std::make_shared<std::vector<int>>(5, 7);
  Array<int> array(std::span<const int>(*owner).subspan(1, 2), owner);
  const std::weak_ptr<std::vector<int>> watched = owner;
  owner.reset();
  EXPECT_THAT(array, ElementsAre(7, 7));
  array = {};
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace tpudist
