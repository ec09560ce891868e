#pragma once

#include <gmock/gmock.h>

#include "tests/support/thrown.hpp"

// GoogleTest, and the matchers that most tests use.
namespace tpudist::test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

}  // namespace tpudist::test
