#include "data/npz/npz_writer.hpp"

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <numeric>
#include <stdexcept>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

// Content of one member, read by libzip with its CRC check.
std::string member_of(const std::filesystem::path& path, const std::string& name,
                      zip_stat_t* stat = nullptr) {
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, nullptr);
  EXPECT_NE(zip, nullptr) << path;
  if (!zip) return {};
  zip_stat_t local;
  zip_stat_t& found = stat ? *stat : local;
  EXPECT_EQ(zip_stat(zip, name.c_str(), 0, &found), 0) << name;
  std::string bytes(found.size, '\0');
  zip_file_t* file = zip_fopen(zip, name.c_str(), 0);
  EXPECT_NE(file, nullptr);
  EXPECT_EQ(zip_fread(file, bytes.data(), bytes.size()), static_cast<zip_int64_t>(bytes.size()));
  EXPECT_EQ(zip_fclose(file), 0);
  zip_discard(zip);
  return bytes;
}

template <typename T>
std::vector<T> values_of(const std::string& npy) {
  const std::size_t start =
      10 + static_cast<unsigned char>(npy[8]) + 256 * static_cast<unsigned char>(npy[9]);
  std::vector<T> values((npy.size() - start) / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), npy.data() + start, values.size() * sizeof(T));
  return values;
}

TEST(NpzWriter, headerIsThatOfNumPy) {
  // numpy.lib.format.write_array_header_1_0 for a (2, 3) float32 array, a vector and a scalar.
  const std::int64_t shape[] = {2, 3};
  const std::string header = npy_header("<f4", shape);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(header.substr(10, 58), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), ");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(npy_header("|u1", std::span(shape, 1)).find("'shape': (2,), }"), std::string::npos);
  EXPECT_NE(npy_header("<i8", {}).find("'shape': (), }"), std::string::npos);
}

TEST(NpzWriter, typesHaveNumPysNames) {
  EXPECT_EQ(npy_descr<float>(), "<f4");
  EXPECT_EQ(npy_descr<double>(), "<f8");
  EXPECT_EQ(npy_descr<std::int8_t>(), "|i1");
  EXPECT_EQ(npy_descr<std::uint8_t>(), "|u1");
  EXPECT_EQ(npy_descr<std::int16_t>(), "<i2");
  EXPECT_EQ(npy_descr<std::uint32_t>(), "<u4");
  EXPECT_EQ(npy_descr<std::int64_t>(), "<i8");
}

TEST(NpzWriter, arraysComeBack) {
  const TempDir folder;
  for (const int level : {0, 1, 9}) {
    const auto path = folder / ("a" + std::to_string(level) + ".npz");
    NpzWriter writer(path, {.deflate_level = level});
    const std::vector<float> features{1, -2, 3.5f, 4, 5, 6};
    const std::vector<std::uint8_t> opcodes{7, 255};
    writer.add("features", {2, 3}, features);
    writer.add("opcodes", {2}, opcodes);
    writer.add("nothing", {0, 18}, std::vector<std::int64_t>{});
    writer.finish();
    EXPECT_EQ(values_of<float>(member_of(path, "features.npy")), features);
    EXPECT_EQ(values_of<std::uint8_t>(member_of(path, "opcodes.npy")), opcodes);
    EXPECT_TRUE(values_of<std::int64_t>(member_of(path, "nothing.npy")).empty());
  }
}

TEST(NpzWriter, streamedRowsAreAskedOnceInOrder) {
  const TempDir folder;
  const auto path = folder / "a.npz";
  constexpr std::int64_t kRows = 3000, kWidth = 7 * 18;
  std::int64_t asked = 0;
  NpzWriter writer(path);
  writer.add_streamed<float>("x", {kRows, 7, 18}, [&](std::int64_t first, std::span<float> rows) {
    EXPECT_EQ(first, asked);
    EXPECT_EQ(rows.size() % kWidth, 0u);
    asked += static_cast<std::int64_t>(rows.size()) / kWidth;
    std::iota(rows.begin(), rows.end(), static_cast<float>(first * kWidth));
  });
  EXPECT_EQ(asked, 0);
  writer.finish();
  EXPECT_EQ(asked, kRows);
  std::vector<float> expected(kRows * kWidth);
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_EQ(values_of<float>(member_of(path, "x.npy")), expected);
}

TEST(NpzWriter, equalArraysGiveEqualFilesWithAFixedDate) {
  const TempDir folder;
  for (const char* name : {"a.npz", "b.npz"}) {
    NpzWriter writer(folder / name);
    writer.add("x", {3}, std::vector<std::int32_t>{1, 2, 3});
    writer.finish();
  }
  EXPECT_EQ(read_text_file(folder / "a.npz"), read_text_file(folder / "b.npz"));
}

TEST(NpzWriter, withoutFinishThereIsNoFile) {
  const TempDir folder;
  {
    NpzWriter writer(folder / "a.npz");
    writer.add("x", {1}, std::vector<float>{1});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(NpzWriter, whatAFillFunctionThrowsComesOutAndLeavesNoFile) {
  const TempDir folder;
  {
    NpzWriter writer(folder / "a.npz");
    writer.add_streamed<float>(
        "x", {10}, [](std::int64_t, std::span<float>) { throw DataError("no more rows"); });
    EXPECT_THROW(writer.finish(), DataError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(NpzWriter, wrongCallsAreRefused) {
  const TempDir folder;
  NpzWriter writer(folder / "a.npz");
  const std::vector<float> two{1, 2};
  EXPECT_THROW(writer.add("x", {3}, two), std::invalid_argument);
  EXPECT_THROW(writer.add("x", {-1}, two), std::invalid_argument);
  EXPECT_THROW(writer.add_streamed<float>("x", {1LL << 40, 1LL << 40}, {}), std::invalid_argument);
  writer.add("x", {2}, two);
  EXPECT_THROW(writer.add("x", {2}, two), std::invalid_argument);
  EXPECT_THROW(NpzWriter(folder / "missing" / "a.npz").finish(), IoError);
}

}  // namespace
}  // namespace tpudist::test
