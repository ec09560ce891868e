#include "launch/exit_code.hpp"

#include <gmock/gmock.h>

#include <new>
#include <stdexcept>

#include "core/error.hpp"
#include "launch/command_line.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const auto kSaysWhatToLower = AllOf(
    HasSubstr("out of memory"), HasSubstr("batch.configs"), HasSubstr("batch.config_chunk"),
    HasSubstr("batch.member_chunk"), HasSubstr("train.recompute"), HasSubstr("data.cache_bytes"),
    HasSubstr("evaluate.block_rows"), HasSubstr("evaluate.plan_floats"));

TEST(DescribeFailure, KeepsTheMessageAndTheCodeOfOwnErrors) {
  const Failure failure = describe_failure(DataError("x.npz: array 'edge_index' is missing"));
  EXPECT_EQ(failure.message, "x.npz: array 'edge_index' is missing");
  EXPECT_EQ(failure.exit_code, 3);
  EXPECT_EQ(describe_failure(ConfigError("x")).exit_code, 2);
}

TEST(DescribeFailure, SaysWhatToLowerWhereMemoryLacks) {
  const Failure plain = describe_failure(std::bad_alloc());
  EXPECT_THAT(plain.message, kSaysWhatToLower);
  EXPECT_EQ(plain.exit_code, 1);
  const Failure gpu =
      describe_failure(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB."));
  EXPECT_THAT(gpu.message, AllOf(kSaysWhatToLower, HasSubstr("2.00 GiB")));
}

TEST(DescribeFailure, LeavesOutTheStackOfLibTorch) {
  const Failure host = describe_failure(std::runtime_error(
      "DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes\n"
      "frame #0: c10::ThrowEnforceNotMet(char const*, int)"));
  EXPECT_THAT(host.message,
              AllOf(kSaysWhatToLower, HasSubstr("99 bytes"), Not(HasSubstr("frame"))));
  EXPECT_EQ(describe_failure(std::runtime_error("shapes differ\nframe #0: f()")).message,
            "shapes differ");
}

int run(const std::function<void(CommandLine&)>& body) {
  CommandLine line("program", "A program");
  return run_command_line(line, [&] { body(line); });
}

TEST(RunCommandLine, GivesTheExitCodeOfWhateverEndsTheProgram) {
  EXPECT_EQ(run([](CommandLine&) {}), 0);
  EXPECT_EQ(run([](CommandLine&) { throw EndWith(85); }), 85);
  EXPECT_EQ(run([](CommandLine&) { throw DataError("damaged"); }), 3);
  EXPECT_EQ(run([](CommandLine&) { throw std::bad_alloc(); }), 1);
  EXPECT_EQ(run([](CommandLine&) { throw std::runtime_error("other"); }), 1);
}

TEST(RunCommandLine, WrongUsageIs2AndHelpIs0) {
  const auto parse = [](std::vector<std::string> words) {
    return run([&](CommandLine& line) { line.parse(words); });
  };
  EXPECT_EQ(parse({"--wrong"}), 2);
  EXPECT_EQ(parse({"--help"}), 0);
}

}  // namespace
}  // namespace tpudist
