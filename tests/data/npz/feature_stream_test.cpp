#include "data/npz/feature_stream.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/npz/npz_writer.hpp"
#include "data/schema/feature_schema.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

class FeatureStreamTest : public ::testing::Test {
 protected:
  void write(std::int64_t rows, std::int64_t bad_row = -1) {
    NpzWriter npz(path_, {.deflate_level = 1});
    npz.add_streamed<float>(
        "a", {rows, 10, kLayoutConfigFeatures}, [=](std::int64_t first, std::span<float> out) {
          for (std::size_t i = 0; i < out.size(); ++i) {
            const auto row = first + static_cast<std::int64_t>(i / 180);
            out[i] = row == bad_row && i % 180 == 19 ? NAN : static_cast<float>(row);
          }
        });
    npz.finish();
  }

  TempDir folder_;
  const std::filesystem::path path_ = folder_ / "x.npz";
};

TEST_F(FeatureStreamTest, GivesAllRowsInOrder) {
  for (const std::int64_t rows : {0, 1, 100, 1456, 1457, 20000}) {
    write(rows);
    const NpzReader npz(path_);
    FeatureStream stream(npz.open("a"));
    std::int64_t next = 0;
    while (const auto* block = stream.next()) {
      ASSERT_EQ(block->first_row, next);
      ASSERT_EQ(block->values.size(), static_cast<std::size_t>(block->rows) * 180);
      for (std::size_t i = 0; i < block->values.size(); i += 180) {
        ASSERT_EQ(block->values[i], static_cast<float>(next + static_cast<std::int64_t>(i / 180)));
      }
      next += block->rows;
    }
    EXPECT_EQ(next, rows);
    EXPECT_EQ(stream.next(), nullptr);
  }
}

TEST_F(FeatureStreamTest, MayBeLeftHalfRead) {
  write(20000);
  const NpzReader npz(path_);
  for (int blocks = 0; blocks < 6; ++blocks) {
    FeatureStream stream(npz.open("a"));
    for (int i = 0; i < blocks; ++i) ASSERT_NE(stream.next(), nullptr);
  }
}

TEST_F(FeatureStreamTest, NamesAValueThatIsNotFinite) {
  write(20000, 17001);
  const NpzReader npz(path_);
  FeatureStream stream(npz.open("a"));
  const std::string message = message_of<DataError>([&] {
    while (const auto* block = stream.next()) stream.check_finite(*block);
  });
  EXPECT_THAT(message, HasSubstr("x.npz: a[17001, 1, 1] is nan"));
}

TEST_F(FeatureStreamTest, PassesOnErrorsOfItsThread) {
  write(20000);
  std::string bytes = read_text_file(path_);
  bytes[bytes.size() / 2] ^= 0x55;
  std::ofstream(path_, std::ios::binary) << bytes;
  const NpzReader npz(path_);
  FeatureStream stream(npz.open("a"));
  EXPECT_THROW(while (stream.next()){}, DataError);
}

}  // namespace
}  // namespace tpudist::test
