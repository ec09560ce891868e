#include "core/version.hpp"

#include <gmock/gmock.h>

#include <string>

namespace tpudist {
namespace {

TEST(Version, IsThatOfTheBuild) {
  EXPECT_THAT(std::string(version()), ::testing::ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+$"));
}

}  // namespace
}  // namespace tpudist
