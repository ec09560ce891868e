#include "launch/program/exit_code.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "launch/program/command_line.hpp"
#include "launch/program/cores.hpp"
#include "launch/program/job.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

using ::testing::EndsWith;

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

RankError own(int rank, const std::string& message) {
  return {.rank = rank, .exit_code = 2, .heard = false, .message = message};
}

RankError heard(int rank, const std::string& message) {
  return {.rank = rank, .exit_code = 2, .heard = true, .message = message};
}

TEST(ErrorLines, TellAnErrorOfAllRanksOnceAndWithoutRanks) {
  const std::vector<RankError> errors{own(0, "no data"), own(1, "no data")};
  EXPECT_EQ(error_lines(errors, 2), "tpudist: error: no data\n");
  EXPECT_EQ(error_lines(errors, 3), "tpudist: error (ranks 0, 1): no data\n");
}

TEST(ErrorLines, TellDifferentErrorsWithTheirRanks) {
  const std::vector<RankError> errors{own(0, "no data"), own(2, "disk full"), own(3, "no data")};
  EXPECT_EQ(error_lines(errors, 4),
            "tpudist: error (ranks 0, 3): no data\ntpudist: error (rank 2): disk full\n");
}

TEST(ErrorLines, LeaveOutWhatRanksOnlyHeardOf) {
  const std::vector<RankError> errors{heard(0, "rank 1: disk full"), own(1, "disk full"),
                                      heard(2, "rank 1: disk full")};
  EXPECT_EQ(error_lines(errors, 3), "tpudist: error (rank 1): disk full\n");
  // Unless the rank that failed has not told of it in time.
  const std::vector<RankError> only_heard{heard(2, "rank 1: disk full")};
  EXPECT_EQ(error_lines(only_heard, 3), "tpudist: error (rank 2): rank 1: disk full\n");
}

TEST(Cores, RanksWithoutBindingShareAll) {
  EXPECT_EQ(share_of_cores({"11111111"}, 0), 8);
  EXPECT_EQ(share_of_cores({"11111111", "11111111"}, 1), 4);
  EXPECT_EQ(share_of_cores({"111111", "111111", "111111"}, 2), 2);
}

TEST(Cores, BoundRanksHaveTheirOwn) {
  EXPECT_EQ(share_of_cores({"1100", "0011"}, 1), 2);
  EXPECT_EQ(share_of_cores({"1", "01"}, 0), 1);
}

TEST(Cores, RanksBoundToTwoSocketsShareTheirSocket) {
  EXPECT_EQ(share_of_cores({"11110000", "00001111", "11110000", "00001111"}, 2), 2);
}

TEST(Cores, AtLeastOne) {
  EXPECT_EQ(share_of_cores({"1", "1", "1"}, 1), 1);
}

TEST(Cores, AQuotaCountsForAllRanks) {
  EXPECT_EQ(share_of_cores({"11111111"}, 0, 3.5), 3);
  EXPECT_EQ(share_of_cores({"11111111", "11111111"}, 1, 4), 2);
  EXPECT_EQ(share_of_cores({"11"}, 0, 0.5), 1);
  EXPECT_EQ(share_of_cores({"11"}, 0, 16), 2);
}

TEST(CoreWarning, TellsOfAQuota) {
  EXPECT_EQ(core_warning({"11"}, 0, 2, 0, 2), "");
  EXPECT_THAT(core_warning({"11"}, 0, 1, 0, 0.5),
              AllOf(HasSubstr("1 rank with 1 thread each on a CPU quota of 0.5 (control group): "),
                    EndsWith(": raise it (docker --cpus, cpu.max)")));
  EXPECT_THAT(core_warning({"1111", "1111"}, 0, 2, 0, 3),
              AllOf(HasSubstr("quota of 3 "), HasSubstr(", or start fewer (dist.threads)")));
}

TEST(CoreWarning, NamesWhatSlowsRanksDown) {
  EXPECT_EQ(core_warning({"11", "11"}, 0, 1, 0), "");
  EXPECT_EQ(core_warning({"1", "01"}, 0, 1, 2), "");
  EXPECT_THAT(core_warning({"1"}, 0, 4, 8),
              HasSubstr("4 threads on 1 core: start with mpirun --bind-to"));
  EXPECT_THAT(core_warning({"11"}, 0, 4, 0), HasSubstr("4 threads on 2 cores: ask for fewer"));
  EXPECT_THAT(core_warning({"1", "01"}, 1, 1, 64), HasSubstr("bound 2 ranks to 2 cores of 64: "));
  EXPECT_THAT(crowd_note({"11", "11", "11"}), HasSubstr("3 ranks share 2 cores "));
  EXPECT_EQ(crowd_note({"11", "11"}), "");
}

}  // namespace
}  // namespace tpudist::test
