#include "results/records/run_folder.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::HasSubstr;

template <typename Kind>
std::string error_of_opening(const std::filesystem::path& path) {
  return test::message_of<Kind>([&] { RunFolder::open(path); });
}

TEST(RunFolder, OpensWhatHoldsAConfigurationAndMetrics) {
  const TempDir folder;
  std::ofstream(folder / "config.yaml") << "name: x\n";
  EXPECT_THAT(error_of_opening<ConfigError>(folder.path()),
              HasSubstr("no run here (config.yaml is there, but no checkpoints)"));
  std::ofstream(folder / "metrics.jsonl") << "{}\n";
  EXPECT_EQ(RunFolder::open(folder.path()).path(), folder.path());
}

TEST(RunFolder, TellsAMissingRunFromAFolderThatCannotBeEntered) {
  const TempDir folder;
  EXPECT_THAT(error_of_opening<ConfigError>(folder / "none"),
              HasSubstr("no run here (there are neither config.yaml nor checkpoints)"));
  // A link to itself cannot be entered by anybody, root included.
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(error_of_opening<IoError>(folder / "loop"),
              HasSubstr("loop: cannot look for a run: Too many levels of symbolic links"));
}

}  // namespace
}  // namespace tpudist
