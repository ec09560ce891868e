// `tpudist inspect FILE` as a user calls it.

#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

Outcome inspect_file(const std::filesystem::path& file, const std::string& arguments = "") {
  return test::run_program("inspect " + file.string() + " " + arguments);
}

TEST(InspectModule, ShowsOperationsGroupsAndStates) {
  const auto modules = test::jax_modules();
  EXPECT_THAT(output_of(inspect_file(modules / "layouts_before.txt",
                                     "--default " + (modules / "layouts_after.txt").string())),
              AllOf(HasSubstr("layouts_before.txt: HLO text\n"),
                    HasSubstr("jit_f: 21 nodes in 1 computation, 26 edges\n"),
                    HasSubstr("6 configurable operations (2 convolution, 2 dot, 2 reshape) in 4 "
                              "groups: 288 configurations\n"),
                    ContainsRegex(" 2 +8 +convolution +out \\{3,0\\} in \\{3,0\\} kernel "
                                  "\\{3,2\\} +conv_general_dilated.2\n")));
}

TEST(InspectModule, SaysInJsonWhatProtoAndTextSay) {
  const auto read = [](const char* name) {
    return nlohmann::json::parse(
        output_of(inspect_file(test::jax_modules() / name, "--json 2> /dev/null")));
  };
  const auto proto = read("layouts_before.pb"), text = read("layouts_before.txt");
  EXPECT_EQ(proto["kind"], "HloProto");
  EXPECT_EQ(text["kind"], "HLO text");
  const auto& module = proto["modules"].at(0);
  EXPECT_EQ(module["configurations"], 288);
  EXPECT_EQ(module["opcodes"]["convolution"], 2);
  EXPECT_EQ(module["warnings"].size(), 1u);
  ASSERT_EQ(module["groups"].size(), 4u);
  std::size_t operations = 0;
  for (const auto& group : module["groups"]) operations += group["operations"].size();
  EXPECT_EQ(operations, 6u);
  for (const char* key : {"nodes", "edges", "opcodes", "configurations"})
    EXPECT_EQ(module[key], text["modules"].at(0)[key]) << key;
}

TEST(InspectModule, WarnsOfTheWrongStage) {
  EXPECT_THAT(output_of(inspect_file(test::jax_modules() / "layouts_after.txt", "2>&1")),
              HasSubstr("it was dumped too late to choose layouts"));
  EXPECT_THAT(output_of(inspect_file(test::jax_modules() / "sort.txt", "2>&1")),
              AllOf(HasSubstr("no convolution, dot or reshape"),
                    HasSubstr("--xla_dump_hlo_pass_re=.*layout-assignment.*")));
}

TEST(InspectModule, TakesDefaultsFromTuningFiles) {
  const auto root = test::real_data_root();
  if (!root) GTEST_SKIP() << "the real data set is not on this machine (TPUDIST_REAL_DATA)";
  EXPECT_THAT(inspect_file(*root / "pb/module_tuning_data_layout.pb", "2>&1").output,
              AllOf(HasSubstr("3,163 nodes in 143 computations, 5,112 edges, 112 measured"),
                    HasSubstr("(53 convolution, 0 dot, 9 reshape) in 8 groups: 3,145,728 "),
                    Not(HasSubstr("warning"))));
  EXPECT_THAT(inspect_file(*root / "pb/op_tuning_data.pb", "2>&1").output,
              AllOf(HasSubstr(": TuningData\n"),
                    HasSubstr("fusion.191: 31 nodes in 5 computations, 32 edges, 579 "
                              "measured configurations\n"),
                    Not(HasSubstr("configurable"))));
}

TEST(InspectModule, PrintsNamesThatATerminalDoesNotObey) {
  const test::TempDir folder;
  const std::string odd = "a\x1b[31mb\x7f";
  write_file_atomically(
      folder / (odd + ".pb"),
      test::module("m\x1b[2J",
                   {test::computation("c", 1, 1, {{"x\ny", "after-all", 1, {}, {}, {}, {}}})}));
  std::filesystem::copy(test::jax_modules() / "layouts_before.txt", folder / (odd + ".txt"));
  for (const char* end : {".pb' 2>&1", ".pb' --json 2>&1", ".txt' 2>&1", ".none' 2>&1"}) {
    const Outcome outcome = test::run_program("inspect '" + (folder / odd).string() + end);
    EXPECT_THAT(outcome.output, Not(HasSubstr("\x1b"))) << end;
    EXPECT_THAT(outcome.output, ContainsRegex("31mb")) << end;
  }
}

TEST(InspectModule, RefusesWhatItCannotShow) {
  const auto modules = test::jax_modules();
  const test::TempDir folder;
  write_file_atomically(folder / "text.pb", "neither of them");
  EXPECT_THAT(output_of(inspect_file(folder / "text.pb", "2>&1"), 3),
              HasSubstr("text.pb: is damaged, or none of HloProto"));
  write_file_atomically(folder / "mark.txt", "\xef\xbb\xbfHloModule m");
  EXPECT_THAT(inspect_file(folder / "mark.txt", "2>&1").output, HasSubstr("a byte order mark"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);  // that nobody writes
  EXPECT_THAT(inspect_file(folder / "pipe", "2>&1").output, HasSubstr("pipe: is empty or no reg"));
  EXPECT_THAT(output_of(inspect_file(modules / "layouts_before.txt",
                                     "--default " + (modules / "sort.txt").string() + " 2>&1"),
                        3),
              HasSubstr("sort.txt: names none of the configurable operations"));
  EXPECT_THAT(output_of(inspect_file(modules / "sort.txt", "--ceiling 2>&1"), 2),
              HasSubstr("A file holds modules"));
  EXPECT_THAT(
      output_of(inspect_file(modules, "--default " + (modules / "sort.txt").string() + " 2>&1"), 2),
      HasSubstr("Needs a file, not shards"));
}

}  // namespace
}  // namespace tpudist::test
