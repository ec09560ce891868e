#include "data/hdf5/plain_dataset.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "core/error.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

TEST(PlainDataset, IsWrittenAndReadByRows) {
  const TempDir folder;
  const Hdf5Id file = create_hdf5(folder / "a.h5");
  PlainDataset written = PlainDataset::create(file, "matrix", ElementType::f32, {3, 2}, "a.h5:");
  written.write<float>(1, std::vector<float>{3, 4, 5, 6});
  written.write<float>(0, std::vector<float>{1, 2});
  const PlainDataset read = PlainDataset::open(file, "matrix", ElementType::f32, {-1, 2}, "a.h5:");
  EXPECT_EQ(read.rows(), 3);
  EXPECT_THAT(read.read<float>(0, 2), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read.read<float>(2, 1), ElementsAre(5, 6));
  EXPECT_THAT(read.read<float>(3, 0), IsEmpty());
  EXPECT_THROW(read.read<float>(2, 2), std::out_of_range);
  EXPECT_THROW(read.read<double>(0, 1), std::out_of_range);
  EXPECT_THROW(written.write<float>(0, std::vector<float>{1}), std::out_of_range);
}

TEST(PlainDataset, MayBeEmpty) {
  const TempDir folder;
  const Hdf5Id file = create_hdf5(folder / "a.h5");
  write_plain<std::int64_t>(file, "none", {}, {0}, "a.h5:");
  EXPECT_THAT(read_plain<std::int64_t>(file, "none", {0}, "a.h5:"), IsEmpty());
  write_texts(file, "no_texts", {}, "a.h5:");
  EXPECT_THAT(read_texts(file, "no_texts", 0, "a.h5:"), IsEmpty());
}

TEST(PlainDataset, SaysWhatIsWrong) {
  const TempDir folder;
  const Hdf5Id file = create_hdf5(folder / "a.h5");
  write_plain<std::int32_t>(file, "numbers", std::vector<std::int32_t>{1, 2}, {2}, "a.h5:");
  const auto message = [&](ElementType type, std::vector<std::int64_t> shape, const char* name) {
    try {
      PlainDataset::open(file, name, type, shape, "a.h5:");
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message(ElementType::i32, {2}, "other"), "a.h5:/other is missing");
  EXPECT_EQ(message(ElementType::i64, {2}, "numbers"), "a.h5:/numbers is not of type i64");
  EXPECT_EQ(message(ElementType::i32, {3}, "numbers"), "a.h5:/numbers has the shape [2], not [3]");
  EXPECT_THROW(read_texts(file, "numbers", 2, "a.h5:"), DataError);
}

TEST(PlainDataset, KeepsTextsOfDifferentLengths) {
  const TempDir folder;
  const Hdf5Id file = create_hdf5(folder / "a.h5");
  const std::vector<std::string> texts{"resnet50", "", "b\xc3\xa9rt"};
  write_texts(file, "names", texts, "a.h5:");
  EXPECT_EQ(read_texts(file, "names", 3, "a.h5:"), texts);
  EXPECT_THROW(read_texts(file, "names", 2, "a.h5:"), DataError);
}

TEST(SealFile, SealsWhatHdf5Wrote) {
  const TempDir folder;
  const auto path = folder / "a.h5";
  {
    const Hdf5Id file = create_hdf5(path, kSealBytes);
    write_attribute(file, "number", std::int64_t{7});
  }
  EXPECT_THROW(check_sealed_file(path), DataError);
  seal_file(path);
  EXPECT_NO_THROW(check_sealed_file(path));
  EXPECT_EQ(read_integer_attribute(open_hdf5(path), "number", "a.h5"), 7);
}

}  // namespace
}  // namespace tpudist
