#include "core/mapped_file.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/file_system.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;

  MappedFileTest() { write_file_atomically(path_, std::string(kBytes, 'x')); }

  const test::TempDir folder_;
  const std::filesystem::path path_ = folder_ / "file";
};

TEST_F(MappedFileTest, ShowsTheFile) {
  const MappedFile file(path_);
  EXPECT_EQ(file.bytes().size(), kBytes);
  EXPECT_THAT(file.bytes().last(10), Each('x'));
  file.require_unchanged();
}

TEST_F(MappedFileTest, ReadsZerosWhereTheFileWasCut) {
  const MappedFile file(path_), untouched(path_);
  std::filesystem::resize_file(path_, 5000);
  const auto bytes = file.bytes();
  EXPECT_THAT(bytes.first(5000), Each('x'));
  EXPECT_EQ(std::ranges::count(bytes, '\0'), static_cast<std::ptrdiff_t>(kBytes - 5000));
  EXPECT_THAT(test::message_of<DataError>([&] { file.require_unchanged(); }),
              HasSubstr("file: was written while it was read"));
  EXPECT_THAT(test::message_of<DataError>([&] { untouched.require_unchanged(); }),
              HasSubstr("was written while it was read"));
}

TEST_F(MappedFileTest, NoticesAnotherContentOfTheSameSize) {
  const MappedFile file(path_);
  std::filesystem::last_write_time(
      path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_THROW(file.require_unchanged(), DataError);
}

TEST_F(MappedFileTest, RefusesWhatCannotBeMapped) {
  std::ofstream(folder_ / "empty").flush();
  EXPECT_THAT(test::message_of<DataError>([&] { MappedFile file(folder_ / "empty"); }),
              HasSubstr("empty: is empty or no regular file"));
  EXPECT_THROW(MappedFile file(folder_.path()), DataError);
  EXPECT_THROW(MappedFile file(folder_ / "nowhere"), IoError);
  std::vector<std::unique_ptr<MappedFile>> many;
  EXPECT_THROW(for (int i = 0; i < 3000; ++i) many.push_back(std::make_unique<MappedFile>(path_)),
               IoError);
  many.clear();
  const MappedFile again(path_);
  EXPECT_EQ(again.bytes().size(), kBytes);
}

// The signal still ends the process where it is no matter of a mapped file.
TEST_F(MappedFileTest, LeavesOtherBusErrorsAlone) {
  const auto fault = [&] {
    const MappedFile file(path_);
    std::signal(SIGBUS, SIG_DFL);
    const MappedFile second(path_);  // listens again
    std::filesystem::resize_file(path_, kBytes / 2);
    if (second.bytes().back() != '\0') std::_Exit(1);
    std::raise(SIGBUS);
    std::_Exit(2);
  };
  EXPECT_EXIT(fault(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace tpudist
