#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/paths.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/temp_dir.hpp"

// scripts/gpu_check.sh without a GPU: its stages pass on the emulated programs, and each fails on a
// fault that is planted in what it looks at.

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

struct Checked {
  int exit_code = -1;
  std::map<std::string, std::string> verdicts;  // by the title of the stage
  std::string report;
};

Checked check(const std::string& stages, const std::string& environment,
              const std::filesystem::path& npz) {
  const TempDir folder;
  const std::filesystem::path report = folder / "report.md";
  const std::string command = "env TPUDIST_CHECK_EMULATED=1 TPUDIST_CHECK_STAGES='" + stages +
                              "' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
                              environment + " " +
                              (test::source_folder() / "scripts/gpu_check.sh").string() + " " +
                              npz.string() + " " + report.string() + " 2>&1";
  Checked checked;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return checked;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe)) {
    const std::string text = line.data();
    const std::size_t end = text.rfind(" (");
    if (text.size() > 6 && end != std::string::npos)
      checked.verdicts[text.substr(6, end - 6)] = text.substr(0, 4);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) checked.exit_code = WEXITSTATUS(status);
  std::ifstream file(report);
  checked.report = {std::istreambuf_iterator<char>(file), {}};
  return checked;
}

const std::string kPrograms = std::string("TPUDIST_BUILD=") + TPUDIST_BINARY_DIR + "/tests";

TEST(GpuCheck, PassesOnTheEmulatedDevice) {
  const auto root = test::real_data_root();
  if (!root) GTEST_SKIP() << "needs real data";
  const Checked checked = check(
      "facts kernels data gradients systems like_the_cpu bits members ranks resume nccl one_card",
      kPrograms + " TPUDIST_CHECK_SYSTEMS='gst harvard' TPUDIST_CARD=one", *root / "npz");
  EXPECT_EQ(checked.exit_code, 0) << checked.report;
  EXPECT_THAT(checked.verdicts, AllOf(SizeIs(12), Each(Pair(testing::_, "PASS"))));
}

TEST(GpuCheck, SkipsWhatNeedsAGpu) {
  const TempDir none;
  const Checked checked = check("tests sanitizer bandwidth", kPrograms, none.path());
  EXPECT_EQ(checked.exit_code, 0) << checked.report;
  EXPECT_THAT(checked.verdicts, AllOf(SizeIs(4), Each(Pair(testing::_, "SKIP"))));
}

// A script in the place of the programs, by name; it sees its arguments and its own call's number.
class Planted : public ::testing::Test {
 protected:
  void program(const std::string& name, const std::string& body) {
    const std::filesystem::path path = folder_ / (name + "_emulated");
    std::ofstream(path) << "#!/usr/bin/env bash\ncalls=" << (folder_ / "calls").string()
                        << "\necho >> $calls; call=$(wc -l < $calls)\n"
                        << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::filesystem::remove(folder_ / "calls");
  }
  // The verdict of one stage over these programs.
  std::string verdict(const std::string& stage, const std::string& environment = "") {
    const Checked checked = check(
        stage, "TPUDIST_BUILD=" + folder_.path().string() + " " + environment, folder_.path());
    report_ = checked.report;
    if (checked.verdicts.size() != 1) return "not one stage";
    const std::string found = checked.verdicts.begin()->second;
    EXPECT_EQ(checked.exit_code, found == "FAIL" ? 1 : 0);
    return found;
  }

  const TempDir folder_;
  std::string report_;
};

TEST_F(Planted, AHashThatDiffersFails) {
  std::ifstream file(test::source_folder() / "tests/gpu_check/kernel_hashes.txt");
  std::string lines{std::istreambuf_iterator<char>(file), {}};
  const std::filesystem::path changed = folder_ / "hashes.txt";
  const std::string environment = kPrograms + " TPUDIST_CHECK_HASHES=" + changed.string();
  const auto verdict_of = [&](const std::string& text) {
    std::ofstream(changed) << text;
    return check("kernels", environment, folder_.path());
  };
  EXPECT_EQ(verdict_of(lines).exit_code, 0);
  // One digit of a hash, a sum by more than its tolerance, and a kernel that is missing.
  std::string other = lines;
  const std::size_t digit = lines.find('\n') - 1;
  other[digit] = other[digit] == '0' ? '1' : '0';
  EXPECT_THAT(verdict_of(other).report, HasSubstr("1 differ"));
  other = lines;
  other[lines.find('~') + 5] = lines[lines.find('~') + 5] == '0' ? '1' : '0';
  EXPECT_THAT(verdict_of(other).verdicts, Contains(Pair("kernels against the emulation", "FAIL")));
  EXPECT_EQ(verdict_of(lines + "new-kernel 1x1x1-float 0123456789abcdef\n").exit_code, 1);
}

TEST_F(Planted, OtherParametersFail) {
  program("tpudist", "echo parameters: 1234");
  EXPECT_EQ(verdict("bits"), "PASS");
  for (const char* call : {"2", "3", "4"}) {
    program("tpudist", std::string("echo parameters: $(( call == ") + call + " ))");
    EXPECT_EQ(verdict("bits"), "FAIL") << call;
  }
  program("tpudist", "true");  // no hash at all
  EXPECT_EQ(verdict("bits"), "FAIL");
  program("tpudist", "echo parameters: 1; exit 3");
  EXPECT_EQ(verdict("bits"), "FAIL");
}

TEST_F(Planted, AResumedRunWithOtherBitsFails) {
  const std::string run =
      "all=$*; while (( $# )); do [[ $1 == --run-dir ]] && dir=$2; shift; done\n"
      "mkdir -p $dir/checkpoints; touch $dir/checkpoints/step-000000002.h5\n";
  program("tpudist", run + "echo parameters: 1");
  EXPECT_EQ(verdict("resume"), "PASS") << report_;
  program("tpudist", run + "[[ $all == *--resume* ]] && echo parameters: 2 || echo parameters: 1");
  EXPECT_EQ(verdict("resume"), "FAIL");
}

TEST_F(Planted, OtherScoresFail) {
  const auto scores = [&](const std::string& on_the_gpu) {
    program("tpudist", "[[ $* == *cuda* ]] && score=" + on_the_gpu +
                           " || score=0.5000\necho '  member 0  '$score");
    return verdict("like_the_cpu");
  };
  EXPECT_EQ(scores("0.5004"), "PASS");
  EXPECT_EQ(scores("0.5010"), "FAIL");
  EXPECT_EQ(scores("''"), "FAIL");
  program("tpudist", "true");
  EXPECT_EQ(verdict("like_the_cpu"), "FAIL");
}

TEST_F(Planted, ABadRecipeFails) {
  program("tpudist", "echo '  members together  0.7600'");
  EXPECT_EQ(verdict("score"), "PASS");
  program("tpudist", "echo '  members together  0.7300'");
  EXPECT_EQ(verdict("score"), "FAIL");
  program("tpudist", "false");
  EXPECT_EQ(verdict("score"), "FAIL");
  EXPECT_EQ(verdict("data"), "FAIL");
  EXPECT_EQ(verdict("facts"), "FAIL");
}

TEST_F(Planted, WhatTheDeviceCheckFindsFails) {
  for (const char* stage : {"members", "ranks", "rows", "gradients"}) {
    program("device_check", "exit 0");
    EXPECT_EQ(verdict(stage), "PASS");
    program("device_check", "exit 1");
    EXPECT_EQ(verdict(stage), "FAIL");
  }
  program("device_check", "[[ $* != *bf16* ]]");  // one that refuses a precision
  EXPECT_EQ(verdict("gradients"), "FAIL");
  EXPECT_EQ(verdict("gradients", "TPUDIST_CHECK_PRECISIONS=fp32"), "PASS");
}

TEST_F(Planted, ASystemThatDiffersFails) {
  program("tpudist", "true");
  const auto gradients = [&](const std::string& of_gst) {
    program("device_check", "parts='1e-6 1e-7 2e-5 4e-2 5e-2'; [[ $* == *gst* ]] && parts='" +
                                of_gst + "'\nfor part in $parts; do echo member 0: $part; done");
    return verdict("systems", "TPUDIST_CHECK_SYSTEMS='harvard gst'");
  };
  EXPECT_EQ(gradients("1e-6 2e-3 1e-6 1e-6 2e-3"), "PASS") << report_;
  EXPECT_EQ(gradients("1e-6 1e-6 2e-3 nan 2e-3"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("gst: 1e-6 1e-6 2e-3 nan 2e-3  TOO FAR"));
  program("device_check", "for i in 1 2 3 4 5; do echo member 0: 1e-7; done; exit 134");
  EXPECT_EQ(verdict("systems", "TPUDIST_CHECK_SYSTEMS=gst"), "FAIL");
  program("device_check", "echo device_check: no such kernel; exit 1");
  EXPECT_EQ(verdict("systems", "TPUDIST_CHECK_SYSTEMS=gst"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("no such kernel"));
}

TEST_F(Planted, AnErrorThatIsSwallowedFails) {
  const std::string right = "echo ncclAllReduce failed: invalid argument; exit 1";
  program("nccl_check", "(( call == 1 )) && exit 0\n" + right);
  EXPECT_EQ(verdict("nccl"), "PASS");
  program("nccl_check", "exit 0");
  EXPECT_EQ(verdict("nccl"), "FAIL");
  program("nccl_check", "(( call == 1 )) && exit 0\nexit 1");  // without its text
  EXPECT_EQ(verdict("nccl"), "FAIL");
  program("nccl_check",
          "(( call == 1 )) && exit 0\necho ncclAllReduce failed: invalid argument; exit 86");
  EXPECT_EQ(verdict("nccl"), "FAIL");
  program("nccl_check", right);  // without a wrong call
  EXPECT_EQ(verdict("nccl"), "FAIL");
}

const std::string kOfRankZero = "(( ${OMPI_COMM_WORLD_RANK:-0} > 0 )) || ";

// Ranks that share a GPU: a script in the place of tpudist's ranks, which ends with `code` when rank
// 1 is stopped.
std::string sharing_rank(const std::string& parameters, const std::string& code) {
  return "all=$*; while (( $# )); do [[ $1 == --run-dir ]] && dir=$2; shift; done\n"
         "if [[ $all == *train.steps=1000000* ]]; then\n"
         "  mkdir -p $dir; echo '{\"step\":2}' > $dir/metrics.jsonl\n"
         "  until grep -qs 'State:.T' /proc/$(cat $work/pid-1)/status; do sleep 0.05; done\n"
         "  exit " +
         code + "\nfi\n" + kOfRankZero + "echo parameters: " + parameters;
}

TEST_F(Planted, RanksThatShareAGpuHaveTheBitsOfOneAndEndTogether) {
  const std::string right =
      "[[ $* == *wrong* ]] && { echo ncclAllReduce failed: invalid argument; exit 1; }\n"
      "[[ ${OMPI_COMM_WORLD_SIZE:-1} == 1 || $NCCL_HOSTID == rank-* && -n "
      "$TPUDIST_TEST_ONLY_SHARE_GPU ]] || "
      "exit 1\n";
  program("nccl_check", right + kOfRankZero + "echo sums: 7");
  program("tpudist", sharing_rank("7", "86"));
  EXPECT_EQ(verdict("one_card"), "PASS") << report_;
  EXPECT_THAT(report_, HasSubstr("rank 1 got SIGKILL: exit code 137"));
  program("tpudist", sharing_rank("7", "3"));  // a rank that does not notice
  EXPECT_EQ(verdict("one_card"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("rank 1 got SIGSTOP: exit code 3"));
  program("tpudist", sharing_rank("${OMPI_COMM_WORLD_SIZE:-1}", "86"));
  EXPECT_EQ(verdict("one_card"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("three: parameters 3"));
  program("nccl_check", right + kOfRankZero + "echo sums: ${OMPI_COMM_WORLD_SIZE:-1}");
  EXPECT_EQ(verdict("one_card"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("sums: 3"));
  program("nccl_check", "echo out of memory; exit 1");
  EXPECT_EQ(verdict("one_card"), "FAIL");
}

TEST_F(Planted, RanksThatCannotShareAGpuAreLeftOut) {
  program("nccl_check", "echo ncclCommInitRankConfig failed: invalid usage; exit 1");
  EXPECT_EQ(verdict("one_card"), "SKIP");
  EXPECT_THAT(report_, HasSubstr("NCCL refuses ranks that share a GPU"));
  const std::filesystem::path programs = folder_ / "programs";
  std::filesystem::create_directory(programs);
  for (const char* name : {"basename", "bash", "cat", "cut", "dirname", "env", "find", "head",
                           "mkdir", "mktemp", "nproc", "realpath", "rm", "tail", "timeout"})
    std::filesystem::create_symlink(std::filesystem::path("/usr/bin") / name, programs / name);
  EXPECT_EQ(verdict("one_card", "PATH=" + programs.string()), "SKIP");
  EXPECT_THAT(report_, HasSubstr("no mpirun"));
}

TEST_F(Planted, GoalsThatAreMissedFail) {
  const std::filesystem::path python = folder_ / "python";
  const auto steps = [&](const std::string& seconds, const std::string& of_peer) {
    program("tpudist",
            "[[ $1 == train ]] || exit 0\n"
            "while (( $# )); do [[ $1 == --run-dir ]] && dir=$2; shift; done\nmkdir -p $dir\n"
            "for i in 1 2 3 4 5 6; do echo '{\"kind\": \"step\", \"wait_seconds\": 0, "
            "\"step_seconds\": " +
                seconds + "}'; done > $dir/metrics.jsonl");
    std::ofstream(python) << "#!/usr/bin/env bash\n[[ $1 == -c ]] && exec " TPUDIST_PYTHON3
                             " \"$@\"\n"
                          << of_peer << "\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    return verdict("times", "TPUDIST_PYTHON=" + python.string());
  };
  const std::string slow = "echo '{\"seconds_median\": 1.0}'";
  EXPECT_EQ(steps("0.0035", slow), "PASS") << report_;
  EXPECT_THAT(report_,
              HasSubstr("| xla | 27 | 3.5 | 6 | 0.0 | 1000.0 | 1000.0 | 1142.9 | goal met |"));
  EXPECT_EQ(steps("0.0035", "exit 1"), "PASS") << report_;  // no PyTorch Geometric
  EXPECT_THAT(report_,
              HasSubstr("| alexnet | 1, its own | 3.5 | 4 | 0.0 | - | - | - | goal met |"));
  EXPECT_EQ(steps("0.2", slow), "FAIL");
  EXPECT_THAT(report_, HasSubstr("goal missed"));
  const std::string compiled =
      "[[ $* == *compile* ]] && echo '{\"seconds_median\": 0.01}' || " + slow;
  EXPECT_EQ(steps("0.0035", compiled), "FAIL");
  EXPECT_THAT(report_, HasSubstr("| 1000.0 | 10.0 | 11.4 | goal missed |"));
  program("tpudist", "exit 1");
  EXPECT_EQ(verdict("times"), "FAIL");
}

TEST_F(Planted, AStageThatHangsIsStopped) {
  program("nccl_check", "sleep 60");
  EXPECT_EQ(verdict("nccl", "TPUDIST_CHECK_LIMIT=1"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("stopped after 1 s"));
}

TEST_F(Planted, AMissingProgramFails) {
  EXPECT_EQ(verdict("ranks"), "FAIL");
  EXPECT_THAT(report_, HasSubstr("no program device_check_emulated"));
}

}  // namespace
}  // namespace tpudist
