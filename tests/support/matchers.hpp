#pragma once

#include <gmock/gmock.h>

#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

// What most tests use: GoogleTest, the names of its matchers, and an empty folder.
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

class FolderTest : public ::testing::Test {
 protected:
  const TempDir folder_;
};

}  // namespace tpudist::test
