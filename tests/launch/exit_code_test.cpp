#include "launch/program/exit_code.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "launch/program/command_line.hpp"

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

int run_body(const std::function<void(CommandLine&)>& body) {
  CommandLine line("program", "A program");
  return run_command_line(line, [&] { body(line); });
}

TEST(RunCommandLine, GivesTheExitCodeOfWhateverEndsTheProgram) {
  EXPECT_EQ(run_body([](CommandLine&) {}), 0);
  EXPECT_EQ(run_body([](CommandLine&) { throw EndWith(85); }), 85);
  EXPECT_EQ(run_body([](CommandLine&) { throw DataError("damaged"); }), 3);
  EXPECT_EQ(run_body([](CommandLine&) { throw std::bad_alloc(); }), 1);
  EXPECT_EQ(run_body([](CommandLine&) { throw std::runtime_error("other"); }), 1);
}

TEST(RunCommandLine, WrongUsageIs2AndHelpIs0) {
  const auto parse = [](std::vector<std::string> words) {
    return run_body([&](CommandLine& line) { line.parse(words); });
  };
  EXPECT_EQ(parse({"--wrong"}), 2);
  EXPECT_EQ(parse({"--help"}), 0);
}

// What a user reads of a wrong line: of `words` after the program's name.
std::string complaint(const std::vector<std::string>& words) {
  CommandLine line("program", "A program");
  const Command command = line.program().add_command("rank", "Ranks");
  double temperature = 0;
  int top = 0, jobs = 0;
  std::string kind;
  std::vector<std::filesystem::path> inputs;
  command.add_option("inputs", inputs, "Inputs").required().existing_path();
  command.add_option("--top", top, "Top").not_negative();
  command.add_option("--jobs", jobs, "Jobs").in_range(1, 1024);
  command.add_option("--temperature", temperature, "Temperature").positive();
  command.add_option("--kind", kind, "Kind").one_of({"a", "b"});
  line.program().require_command();
  std::string told;
  const int code = run_command_line(
      line, [&] { line.parse(words); },
      [&](const Failure& failure) {
        told = failure.message;
        return failure.exit_code;
      });
  EXPECT_EQ(code, 2);
  return told;
}

TEST(RunCommandLine, AWrongLineIsToldInOneLineOfPlainWords) {
  const std::string help = "; see `program rank --help`";
  EXPECT_EQ(complaint({"rank", "nowhere"}), "there is no file or folder \"nowhere\"" + help);
  EXPECT_EQ(complaint({"rank", ".", "--top", "-1"}),
            "--top: \"-1\" is no number that is 0 or more" + help);
  for (const char* value : {"inf", "nan", "0", "1e999", "x"}) {
    EXPECT_EQ(complaint({"rank", ".", "--temperature", value}),
              fmt::format("--temperature: \"{}\" is no number above 0{}", value, help));
  }
  EXPECT_EQ(complaint({"rank", ".", "--jobs", "99999999999999999999"}),
            "--jobs: \"99999999999999999999\" is no whole number from 1 to 1024" + help);
  EXPECT_EQ(complaint({"rank", ".", "--kind", "c"}), "--kind: \"c\" is none of a, b" + help);
  EXPECT_EQ(complaint({"rank", ".", "--kind"}), "--kind needs a value" + help);
  EXPECT_EQ(complaint({"rank", ".", "--top", "1.5"}), "cannot read --top = 1.5" + help);
  EXPECT_EQ(complaint({"rank"}), "inputs is required" + help);
  EXPECT_EQ(complaint({"rank", ".", "--wrong\nline"}),
            "program rank has no option --wrong line; `program rank --help` lists them");
  EXPECT_EQ(complaint({}), "a command is required; see `program --help`");
}

struct ThrowsWhenDestroyed {
  ~ThrowsWhenDestroyed() noexcept(false) {
    throw std::runtime_error("CUDA error: unspecified launch failure\nstack");
  }
};

TEST(PrintUncaughtErrorsDeathTest, TellsTheErrorOfADestructor) {
  const auto end = [] {
    print_uncaught_errors();
    const ThrowsWhenDestroyed fails;
    throw DataError("while this one is on its way");
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(1),
              "tpudist: error: CUDA error: unspecified launch failure\n$");
}

}  // namespace
}  // namespace tpudist
