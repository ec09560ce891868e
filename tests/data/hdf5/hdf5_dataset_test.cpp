#include "data/hdf5/hdf5_dataset.hpp"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/random.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<std::int32_t> counted(std::int64_t count) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 3);
  return values;
}

class Hdf5DatasetTest : public ::testing::Test {
 protected:
  void write(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values,
             std::size_t chunk_bytes = kArrayChunkBytes) {
    Hdf5Id file = create_hdf5(path_);
    Hdf5Dataset::create(file, "x", ElementType::i32, std::move(shape), "file", chunk_bytes)
        .write_all(std::as_bytes(std::span(values)), pool_);
    ASSERT_TRUE(file.close());
  }

  // Changes one byte in the middle of what the file holds for a chunk.
  void damage_chunk(std::int64_t first_row) const {
    haddr_t address = 0;
    hsize_t bytes = 0;
    {
      const Hdf5Id file = open_hdf5(path_);
      const Hdf5Lock lock;
      const Hdf5Id dataset(H5Dopen2(file.get(), "x", H5P_DEFAULT), H5Dclose);
      const hsize_t offset[] = {static_cast<hsize_t>(first_row), 0};
      unsigned filters = 0;
      ASSERT_GE(H5Dget_chunk_info_by_coord(dataset.get(), offset, &filters, &address, &bytes), 0);
    }
    const auto at = static_cast<std::streamoff>(address + bytes / 2);
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const auto changed = static_cast<char>(file.get() ^ 0x10);
    file.seekp(at);
    file.put(changed);
    ASSERT_TRUE(file.flush());
  }

  // Rows first .. first + count - 1 of 7 values.
  static std::vector<std::int32_t> read(const Hdf5Dataset& dataset, std::int64_t first,
                                        std::int64_t count) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(count) * 7);
    dataset.read_rows(first, count, std::as_writable_bytes(std::span(rows)));
    return rows;
  }

  TempDir folder_;
  const std::filesystem::path path_ = folder_ / "x.h5";
  ThreadPool pool_{2};
};

TEST_F(Hdf5DatasetTest, ChunkedAndCompactRoundTrip) {
  for (const std::int64_t rows : {0, 1, 50, 10000, 65536, 100001}) {
    const auto values = counted(rows * 7);
    write({rows, 7}, values);
    const Hdf5Id file = open_hdf5(path_);
    EXPECT_EQ(read_array<std::int32_t>(file, "x", {rows, 7}, "file"), values) << rows;
    EXPECT_EQ(read_array<std::int32_t>(file, "x", {-1, 7}, "file"), values) << rows;
  }
}

TEST_F(Hdf5DatasetTest, HdfsOwnFilterReadsTheChunks) {
  const auto values = counted(100001 * 7);
  write({100001, 7}, values);
  const Hdf5Id file = open_hdf5(path_);
  const Hdf5Lock lock;
  const Hdf5Id dataset(H5Dopen2(file.get(), "x", H5P_DEFAULT), H5Dclose);
  std::vector<std::int32_t> read(values.size());
  ASSERT_GE(H5Dread(dataset.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()),
            0);
  EXPECT_EQ(read, values);
}

TEST_F(Hdf5DatasetTest, ReadsAnyRows) {
  const auto values = counted(100000 * 7);
  write({100000, 7}, values);
  const Hdf5Id file = open_hdf5(path_);
  const Hdf5Dataset dataset = Hdf5Dataset::open(file, "x", "file");
  EXPECT_GE(dataset.chunk_rows() * 28, 64 << 10);
  EXPECT_LE(dataset.chunk_rows() * 28, 1 << 20);
  for (const std::int64_t first :
       {std::int64_t{0}, dataset.chunk_rows() - 1, std::int64_t{99990}}) {
    std::vector<std::int32_t> rows(10 * 7);
    dataset.read_rows(first, 10, std::as_writable_bytes(std::span(rows)));
    EXPECT_EQ(rows.front(), values[static_cast<std::size_t>(first) * 7]);
    EXPECT_EQ(rows.back(), values[static_cast<std::size_t>(first + 10) * 7 - 1]);
  }
  std::vector<std::byte> none;
  EXPECT_THROW(dataset.read_rows(100000, 1, none), std::out_of_range);
  EXPECT_THROW(dataset.read_rows(-1, 1, none), std::out_of_range);
}

TEST_F(Hdf5DatasetTest, ManyThreadsReadAtOnce) {
  const auto values = counted(300000);
  write({300000}, values);
  const Hdf5Id file = open_hdf5(path_);
  const Hdf5Dataset dataset = Hdf5Dataset::open(file, "x", "file");
  std::vector<std::thread> threads;
  std::vector<std::vector<std::int32_t>> read(4, std::vector<std::int32_t>(values.size()));
  for (auto& mine : read) {
    threads.emplace_back(
        [&] { dataset.read_rows(0, 300000, std::as_writable_bytes(std::span(mine))); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& mine : read) EXPECT_EQ(mine, values);
}

TEST_F(Hdf5DatasetTest, ChunksMayHaveAnySize) {
  const std::map<std::size_t, std::int64_t> chunk_rows = {
      {1, 1}, {28, 1}, {1000, 35}, {8 << 10, 292}, {64 << 10, 2340}, {1 << 30, 3001}};
  const auto values = counted(3001 * 7);
  for (const auto& [chunk_bytes, expected] : chunk_rows) {
    write({3001, 7}, values, chunk_bytes);
    const Hdf5Id file = open_hdf5(path_);
    const Hdf5Dataset dataset = Hdf5Dataset::open(file, "x", "file");
    EXPECT_EQ(dataset.chunk_rows(), expected);
    EXPECT_EQ(read(dataset, 0, 3001), values);
    CounterRng random(chunk_bytes);
    for (int repeat = 0; repeat < 50; ++repeat) {
      const auto first = static_cast<std::int64_t>(random.below(3001));
      const auto most = static_cast<std::uint64_t>(std::min<std::int64_t>(3001 - first, 50));
      const auto count = static_cast<std::int64_t>(random.below(most) + 1);
      const std::vector<std::int32_t> rows(values.begin() + first * 7,
                                           values.begin() + (first + count) * 7);
      ASSERT_EQ(read(dataset, first, count), rows) << chunk_bytes << ": " << first << ", " << count;
    }
  }
}

TEST_F(Hdf5DatasetTest, ADamagedChunkIsAnErrorThatSaysWhich) {
  const auto values = counted(3001 * 7);
  write({3001, 7}, values, 8 << 10);  // 292 rows
  damage_chunk(2 * 292);
  damage_chunk(10 * 292);  // the last one, which is not full
  const Hdf5Id file = open_hdf5(path_);
  const Hdf5Dataset dataset = Hdf5Dataset::open(file, "x", path_.string() + ":/g");
  for (const auto& [row, what] :
       {std::pair{600, "chunk 2 (rows 584 to 875) "}, {3000, "chunk 10 (rows 2920 to 3000) "}}) {
    EXPECT_THAT(message_of<DataError>([&] { read(dataset, row, 1); }),
                ::testing::AllOf(HasSubstr(path_.string() + ":/g/x: " + what),
                                 HasSubstr("the file is damaged; convert again")));
  }
  // The others are as good as ever, also for the thread that met the damage.
  EXPECT_EQ(read(dataset, 0, 584), std::vector(values.begin(), values.begin() + 584 * 7));
  EXPECT_EQ(read(dataset, 876, 1), std::vector(values.begin() + 876 * 7, values.begin() + 877 * 7));
}

TEST_F(Hdf5DatasetTest, ThreadsReadRowsOfSmallChunks) {
  const auto values = counted(5000 * 7);
  write({5000, 7}, values, 1000);
  const Hdf5Id file = open_hdf5(path_);
  const Hdf5Dataset dataset = Hdf5Dataset::open(file, "x", "file");
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      CounterRng random(thread);
      for (int i = 0; i < 500; ++i) {
        const auto row = static_cast<std::int64_t>(random.below(5000));
        const auto got = read(dataset, row, 1);
        wrong += !std::equal(got.begin(), got.end(), values.begin() + row * 7);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Hdf5DatasetTest, AWrongTypeOrShapeIsABadFile) {
  write({5, 2}, counted(10));
  const Hdf5Id file = open_hdf5(path_);
  EXPECT_THROW(read_array<float>(file, "x", {5, 2}, "file"), DataError);
  EXPECT_THROW(read_array<std::int32_t>(file, "x", {5, 3}, "file"), DataError);
  EXPECT_THROW(read_array<std::int32_t>(file, "y", {5, 2}, "file"), DataError);
}

TEST_F(Hdf5DatasetTest, ElementsThatLieElsewhereAreNotRead) {
  const auto other = path_.parent_path() / "other";
  std::ofstream(other) << std::string(8000, 'x');
  write({2}, {1, 2});
  {
    const Hdf5Lock lock;
    const Hdf5Id file(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const hsize_t size[] = {2};
    const Hdf5Id space(H5Screate_simple(1, size, nullptr), H5Sclose);
    const auto create = [&](const char* name, const Hdf5Id& properties) {
      const Hdf5Id made(H5Dcreate2(file.get(), name, H5T_NATIVE_INT32, space.get(), H5P_DEFAULT,
                                   properties.get(), H5P_DEFAULT),
                        H5Dclose);
      ASSERT_GE(made.get(), 0) << name;
    };
    const Hdf5Id external(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_external(external.get(), other.c_str(), 0, H5F_UNLIMITED);
    create("external", external);
    const Hdf5Id mapped(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_virtual(mapped.get(), space.get(), path_.c_str(), "x", space.get());
    create("virtual", mapped);
    H5Lcreate_soft("/x", file.get(), "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/x", file.get(), "link", H5P_DEFAULT, H5P_DEFAULT);
  }
  const Hdf5Id file = open_hdf5(path_);
  const auto error = [&](const char* name) {
    return message_of<DataError>([&] { Hdf5Dataset::open(file, name, "file"); });
  };
  EXPECT_EQ(error("x"), "");
  EXPECT_THAT(error("external"), HasSubstr("file/external: its elements lie in other files"));
  EXPECT_THAT(error("virtual"), HasSubstr("file/virtual: its elements lie in other files"));
  EXPECT_THAT(error("soft"), HasSubstr("file/soft: soft is a link to another place"));
  EXPECT_THAT(error("link"), HasSubstr("file/link: link is a link to another place"));
}

TEST_F(Hdf5DatasetTest, FilesThatAreNotThereOrNotHdf5) {
  EXPECT_THROW(open_hdf5(folder_ / "none.h5"), IoError);
  write_file_atomically(path_, "no HDF5");
  EXPECT_THROW(open_hdf5(path_), DataError);
  EXPECT_THROW(create_hdf5(folder_ / "no" / "folder.h5"), IoError);
  std::filesystem::create_symlink("loop.h5", folder_ / "loop.h5");
  EXPECT_THAT(message_of<IoError>([&] { open_hdf5(folder_ / "loop.h5"); }),
              HasSubstr("symbolic links"));
}

TEST_F(Hdf5DatasetTest, AttributesRoundTrip) {
  {
    const Hdf5Id file = create_hdf5(path_);
    write_attribute(file, "number", std::int64_t{-5});
    write_attribute(file, "text", "grüße");
    write_attribute(file, "empty", "");
    const Hdf5Id numbers = create_group(file, "numbers", "f");
    write_number_attribute(numbers, "rate", 0.25);
    write_number_attribute(numbers, "scale", -3);
  }
  const Hdf5Id file = open_hdf5(path_);
  EXPECT_EQ(read_integer_attribute(file, "number", "f"), -5);
  EXPECT_EQ(read_text_attribute(file, "text", "f"), "grüße");
  EXPECT_EQ(read_text_attribute(file, "empty", "f"), "");
  EXPECT_THROW(read_text_attribute(file, "number", "f"), DataError);
  EXPECT_THROW(read_integer_attribute(file, "text", "f"), DataError);
  EXPECT_THROW(read_integer_attribute(file, "none", "f"), DataError);
  EXPECT_TRUE(has_attribute(file, "text", "f"));
  EXPECT_FALSE(has_attribute(file, "none", "f"));
  EXPECT_THAT(read_number_attributes(open_group(file, "numbers", "f"), "f"),
              ElementsAre(Pair("rate", 0.25), Pair("scale", -3)));
  EXPECT_THAT(message_of<DataError>([&] { read_number_attributes(file, "f"); }),
              HasSubstr("attribute empty is of another type"));
}

class PlainDataset : public ::testing::Test {
 protected:
  const TempDir folder_;
  const Hdf5Id file_ = create_hdf5(folder_ / "a.h5");
};

TEST_F(PlainDataset, IsWrittenAndReadByRows) {
  Hdf5Dataset written =
      Hdf5Dataset::create(file_, "matrix", ElementType::f32, {3, 2}, "a.h5:", kPlain);
  written.write<float>(1, std::vector<float>{3, 4, 5, 6});
  written.write<float>(0, std::vector<float>{1, 2});
  const Hdf5Dataset read = Hdf5Dataset::open(file_, "matrix", ElementType::f32, {-1, 2}, "a.h5:");
  EXPECT_EQ(read.rows(), 3);
  EXPECT_THAT(read.read<float>(0, 2), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read.read<float>(2, 1), ElementsAre(5, 6));
  EXPECT_THAT(read.read<float>(3, 0), ElementsAre());
  EXPECT_THROW(read.read<float>(2, 2), std::out_of_range);
  EXPECT_THROW(read.read<double>(0, 1), std::out_of_range);
  EXPECT_THROW(written.write<float>(0, std::vector<float>{1}), std::out_of_range);
}

TEST_F(PlainDataset, MayBeEmpty) {
  write_plain<std::int64_t>(file_, "none", {}, {0}, "a.h5:");
  EXPECT_THAT(read_array<std::int64_t>(file_, "none", {0}, "a.h5:"), ElementsAre());
  write_texts(file_, "no_texts", {}, "a.h5:");
  EXPECT_THAT(read_texts(file_, "no_texts", 0, "a.h5:"), ElementsAre());
}

TEST_F(PlainDataset, SaysWhatIsWrong) {
  write_plain<std::int32_t>(file_, "numbers", std::vector<std::int32_t>{1, 2}, {2}, "a.h5:");
  const auto message = [&](ElementType type, std::vector<std::int64_t> shape, const char* name) {
    return message_of<DataError>([&] { Hdf5Dataset::open(file_, name, type, shape, "a.h5:"); });
  };
  EXPECT_EQ(message(ElementType::i32, {2}, "other"), "a.h5:/other: the dataset is missing");
  EXPECT_EQ(message(ElementType::i64, {2}, "numbers"),
            "a.h5:/numbers: is i32 [2] but must be i64 [2]; the file is damaged");
  EXPECT_EQ(message(ElementType::i32, {3}, "numbers"),
            "a.h5:/numbers: is i32 [2] but must be i32 [3]; the file is damaged");
  EXPECT_THROW(read_texts(file_, "numbers", 2, "a.h5:"), DataError);
  EXPECT_THAT(
      message_of<IoError>([&] { write_plain<std::int32_t>(file_, "numbers", {}, {0}, "a.h5:"); }),
      HasSubstr("name already exists"));
}

TEST_F(PlainDataset, KeepsTextsOfDifferentLengths) {
  const std::vector<std::string> texts{"resnet50", "", "b\xc3\xa9rt"};
  write_texts(file_, "names", texts, "a.h5:");
  EXPECT_EQ(read_texts(file_, "names", 3, "a.h5:"), texts);
  EXPECT_THROW(read_texts(file_, "names", 2, "a.h5:"), DataError);
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

TEST(ChunkCodec, RefusesDamagedChunks) {
  const std::vector<std::byte> raw(10000, std::byte{7});
  auto stored = deflate_chunk(raw);
  EXPECT_LT(stored.size(), 200u);
  std::vector<std::byte> back(raw.size()), shorter(9999), longer(10001);
  EXPECT_TRUE(inflate_chunk(stored, back));
  EXPECT_EQ(back, raw);
  EXPECT_FALSE(inflate_chunk(stored, shorter));
  EXPECT_FALSE(inflate_chunk(stored, longer));
  stored.back() ^= std::byte{1};  // the checksum
  EXPECT_FALSE(inflate_chunk(stored, back));
}

}  // namespace
}  // namespace tpudist::test
