#include "core/process.hpp"

#include <gmock/gmock.h>

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Process, TellsItsCommandWithoutItsFolder) {
  EXPECT_THAT(command_line(), StartsWith("core_test --file="));
  EXPECT_THAT(command_line(), Not(HasSubstr("\n")));
}

TEST(Process, TellsItsProcessor) {
  EXPECT_THAT(processor_name(), Not(IsEmpty()));
}

}  // namespace
}  // namespace tpudist
