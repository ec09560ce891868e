#pragma once

#include <gmock/gmock.h>

// GoogleTest, and the matchers that most tests of launch/ use.
namespace tpudist::test {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

}  // namespace tpudist::test
