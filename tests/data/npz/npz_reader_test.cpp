#include "data/npz/npz_reader.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "data/npz/npy_header.hpp"
#include "data/npz/npz_writer.hpp"
#include "tests/data/npz/read_integers.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpzReaderTest : public ::testing::Test {
 protected:
  template <typename T>
  void write(const std::vector<T>& values, int level = 6) {
    NpzWriter npz(path_, {.deflate_level = level});
    npz.add("a", {std::ssize(values)}, values);
    npz.finish();
  }

  // What comes back of an array that the writer wrote.
  template <typename T>
  std::vector<std::int64_t> integers(const std::vector<T>& values) {
    write(values);
    return read_integers(NpzReader(path_).open("a"));
  }
  template <typename T>
  std::vector<float> floats(const std::vector<T>& values) {
    write(values);
    return NpzReader(path_).open("a").read_floats();
  }
  template <typename T>
  std::string float_error(const std::vector<T>& values) {
    return message_of<DataError>([&] { floats(values); });
  }

  void write_member(const std::string& bytes, int level = 6) {
    NpzWriter npz(path_, {.deflate_level = level});
    npz.add_raw("a.npy", bytes);
    npz.finish();
  }

  std::string error_of_reading() {
    return message_of<DataError>([&] {
      const NpzReader npz(path_);
      NpzArray array = npz.open("a");
      if (array.header().kind == 'f')
        array.read_floats();
      else
        read_integers(std::move(array));
    });
  }

  void change(const std::function<void(std::string&)>& edit) {
    std::string bytes = read_text_file(path_);
    edit(bytes);
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  TempDir folder_;
  const std::filesystem::path path_ = folder_ / "x.npz";
};

TEST_F(NpzReaderTest, ReadsEveryIntegerWidth) {
  EXPECT_THAT(integers<std::int8_t>({-128, 127}), ElementsAre(-128, 127));
  EXPECT_THAT(integers<std::uint8_t>({0, 255}), ElementsAre(0, 255));
  EXPECT_THAT(integers<std::int16_t>({-32768, 32767}), ElementsAre(-32768, 32767));
  EXPECT_THAT(integers<std::uint16_t>({65535}), ElementsAre(65535));
  EXPECT_THAT(integers<std::int32_t>({-5, 7}), ElementsAre(-5, 7));
  EXPECT_THAT(integers<std::uint32_t>({4294967295u}), ElementsAre(4294967295));
  EXPECT_THAT(integers<std::int64_t>({std::numeric_limits<std::int64_t>::min()}),
              ElementsAre(std::numeric_limits<std::int64_t>::min()));
  EXPECT_THAT(integers<std::uint64_t>({1, 2}), ElementsAre(1, 2));
}

TEST_F(NpzReaderTest, RefusesUnsignedBeyondInt64) {
  NpzWriter npz(path_);
  npz.add("a", {2, 2}, std::vector<std::uint64_t>{1, 2, 3, 1ull << 63});
  npz.finish();
  EXPECT_THAT(error_of_reading(),
              HasSubstr("x.npz: a[1, 1] = 9223372036854775808 is beyond the range of int64"));
}

TEST_F(NpzReaderTest, ReadsFloatsBitByBit) {
  NpzWriter npz(path_);
  npz.add("f", {3}, std::vector<float>{1.5f, -0.0f, 3e38f});
  npz.add("d", {4}, std::vector<double>{0.25, -0.0, 0x1p-149, 3.4028234663852886e38});
  npz.finish();
  const NpzReader reader(path_);
  const auto floats = reader.open("f").read_floats(), doubles = reader.open("d").read_floats();
  EXPECT_THAT(floats, ElementsAre(1.5f, -0.0f, 3e38f));
  EXPECT_TRUE(std::signbit(floats[1]));
  EXPECT_THAT(doubles, ElementsAre(0.25f, -0.0f, 0x1p-149f, std::numeric_limits<float>::max()));
  EXPECT_TRUE(std::signbit(doubles[1]));
}

TEST_F(NpzReaderTest, ReadsIntegersOfAnyWidthAsFloats) {
  EXPECT_THAT(floats<std::int8_t>({-128, 127}), ElementsAre(-128, 127));
  EXPECT_THAT(floats<std::uint8_t>({0, 255}), ElementsAre(0, 255));
  EXPECT_THAT(floats<std::int16_t>({-32768, 32767}), ElementsAre(-32768, 32767));
  EXPECT_THAT(floats<std::uint16_t>({1, 65535}), ElementsAre(1, 65535));
  EXPECT_THAT(floats<std::int32_t>({-2147483647 - 1, 16777216, 33554430}),
              ElementsAre(-0x1p31f, 0x1p24f, 33554430.0f));
  EXPECT_THAT(floats<std::uint32_t>({4294967040u}), ElementsAre(4294967040.0f));
  EXPECT_THAT(
      floats<std::int64_t>({std::numeric_limits<std::int64_t>::min(), -16777215, 1ll << 62}),
      ElementsAre(-0x1p63f, -16777215.0f, 0x1p62f));
  EXPECT_THAT(floats<std::uint64_t>({1ull << 63}), ElementsAre(0x1p63f));
}

TEST_F(NpzReaderTest, ReadsEveryHalf) {
  std::vector<std::uint16_t> halves(1 << 16);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::string bytes = npy_header("<f2", std::vector<std::int64_t>{1 << 16});
  bytes.append(reinterpret_cast<const char*>(halves.data()), 2 * halves.size());
  write_member(bytes);
  const auto values = NpzReader(path_).open("a").read_floats();
  for (const std::uint16_t half : halves) {
    _Float16 expected;  // the compiler's own conversion
    std::memcpy(&expected, &half, sizeof half);
    const auto want = static_cast<float>(expected);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(values[half])) << half;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[half]), std::bit_cast<std::uint32_t>(want))
          << half;
    }
  }
}

TEST_F(NpzReaderTest, RefusesNumbersThatFloat32DoesNotHold) {
  EXPECT_THAT(float_error<std::int32_t>({1, 16777217}),
              HasSubstr("x.npz: a[1] = 16777217 is not exact in float32"));
  EXPECT_THAT(float_error<std::int32_t>({2147483647}), HasSubstr("a[0] = 2147483647 is not exact"));
  EXPECT_THAT(float_error<std::uint32_t>({4294967295u}), HasSubstr("= 4294967295 is not exact"));
  EXPECT_THAT(float_error<std::int64_t>({0, -9007199254740993}),
              HasSubstr("a[1] = -9007199254740993"));
  EXPECT_THAT(float_error<std::uint64_t>({~0ull}), HasSubstr("a[0] = 18446744073709551615"));
  EXPECT_THAT(float_error<double>({-2, 0.1}), HasSubstr("a[1] = 0.1 is not exact in float32"));
  EXPECT_THAT(float_error<double>({1e39}), HasSubstr("a[0] = 1e+39 is not exact in float32"));
  EXPECT_THAT(float_error<double>({1e-60}), HasSubstr("a[0] = 1e-60 is not exact in float32"));
}

TEST_F(NpzReaderTest, StreamsInPieces) {
  std::vector<std::int32_t> values(100000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7);
  NpzWriter npz(path_);
  npz.add("a", {100, 1000}, values);
  npz.finish();
  const NpzReader reader(path_);
  NpzArray array = reader.open("a");
  EXPECT_THAT(array.shape(), ElementsAre(100, 1000));
  std::vector<std::int64_t> piece(999);
  std::size_t at = 0;
  while (array.remaining() > 0) {
    const auto part =
        std::span(piece).first(std::min<std::uint64_t>(array.remaining(), piece.size()));
    array.read(part);
    for (const std::int64_t value : part) ASSERT_EQ(value, values[at++]);
  }
  EXPECT_EQ(at, values.size());
  EXPECT_THROW(array.read(std::span(piece).first(1)), DataError);
  EXPECT_THAT(array.where(1001), HasSubstr("a[1, 1]"));
}

TEST_F(NpzReaderTest, NamesWhatIsThere) {
  integers<std::int8_t>({1});
  const NpzReader npz(path_);
  EXPECT_TRUE(npz.contains("a"));
  EXPECT_FALSE(npz.contains("b"));
  EXPECT_THAT(npz.names(), ElementsAre("a"));
  EXPECT_THROW(npz.open("b"), DataError);
}

TEST_F(NpzReaderTest, AFileThatIsNotThereIsAnIoError) {
  EXPECT_THROW(NpzReader(folder_ / "none.npz"), IoError);
}

TEST_F(NpzReaderTest, RefusesWhatIsNotAZipFile) {
  for (const std::string bytes : {"", "x", "PK\3\4 and nothing else"}) {
    std::ofstream(path_, std::ios::binary) << bytes;
    EXPECT_THAT(error_of_reading(), HasSubstr("not a sound zip file")) << bytes.size();
  }
}

// bsdtar writes CRC and packed size behind the member, and 0 before it.
TEST_F(NpzReaderTest, ReadsWhatAStreamingPackerWrote) {
  write<std::int64_t>({11, 22, 33, 44}, 0);
  change([](std::string& bytes) {
    const std::size_t local = bytes.find(std::string("PK\3\4", 4)),
                      directory = bytes.find(std::string("PK\1\2", 4));
    const std::string crc_and_sizes = bytes.substr(local + 14, 12);
    bytes[local + 6] |= 8;
    bytes[directory + 8] |= 8;
    bytes.replace(local + 14, 8, 8, '\0');
    const std::string descriptor = std::string("PK\7\10", 4) + crc_and_sizes;
    bytes.insert(directory, descriptor);
    const std::size_t end = bytes.find(std::string("PK\5\6", 4));
    bytes[end + 16] = static_cast<char>(bytes[end + 16] + 16);  // where the directory begins
  });
  EXPECT_THAT(read_integers(NpzReader(path_).open("a")), ElementsAre(11, 22, 33, 44));
}

TEST_F(NpzReaderTest, FindsAWrongCrc) {
  write<std::int64_t>({11, 22, 33, 44}, 0);
  change([](std::string& bytes) { ++bytes[bytes.find(std::string("\x16\0\0\0\0\0\0\0", 8))]; });
  EXPECT_THAT(error_of_reading(), HasSubstr("wrong CRC"));
}

TEST_F(NpzReaderTest, FindsATruncatedFile) {
  integers<std::int64_t>(std::vector<std::int64_t>(1000, 5));
  change([](std::string& bytes) { bytes.resize(bytes.size() - 30); });
  EXPECT_THAT(error_of_reading(), HasSubstr("not a sound zip file"));
}

TEST_F(NpzReaderTest, FindsAHeaderThatLies) {
  const std::int64_t four[] = {4}, huge[] = {1LL << 50}, none[] = {0};
  write_member(npy_header("<i8", four) + std::string(24, 'x'));
  EXPECT_THAT(error_of_reading(), HasSubstr("says in its header that it has 32 bytes"));
  write_member(npy_header("<i8", four) + std::string(40, 'x'));
  EXPECT_THAT(error_of_reading(), HasSubstr("but the zip member has 40"));
  write_member(npy_header("<i8", huge) + std::string(40, 'x'));  // nothing is allocated for it
  EXPECT_THAT(error_of_reading(), HasSubstr("but the zip member has 40"));
  write_member(npy_header("<i8", none) + "x");
  EXPECT_THAT(error_of_reading(), HasSubstr("but the zip member has 1"));
  write_member(npy_header("<i8", four).substr(0, 20));
  EXPECT_THAT(error_of_reading(), HasSubstr("header"));
}

TEST_F(NpzReaderTest, FindsAZipDirectoryThatLies) {
  // The directory and the local header both claim a larger member of a larger array than there is.
  const std::int64_t four[] = {4}, five[] = {5};
  const std::string head = npy_header("<i8", four);
  write_member(head + std::string(32, 'x'), 0);
  const std::string real(1, static_cast<char>(head.size() + 32));
  const std::string claimed(1, static_cast<char>(head.size() + 40));
  change([&](std::string& bytes) {
    bytes.replace(bytes.find(head), head.size(), npy_header("<i8", five));
    for (std::size_t at = 0;
         (at = bytes.find(real + std::string(3, '\0') + real, at)) != bytes.npos; ++at) {
      bytes.replace(at + 4, 1, claimed);
    }
  });
  EXPECT_NE(error_of_reading(), "");
}

TEST_F(NpzReaderTest, RefusesTwoMembersOfOneName) {
  // The writer refuses that; so give two members names of one length and make them equal in the
  // file.
  NpzWriter npz(path_);
  npz.add("a", {1}, std::vector<int>{1});
  npz.add("b", {1}, std::vector<int>{1});
  npz.finish();
  change([](std::string& bytes) {
    for (std::size_t at = 0; (at = bytes.find("b.npy", at)) != bytes.npos; ++at) bytes[at] = 'a';
  });
  EXPECT_THAT(error_of_reading(), HasSubstr("two members are called a.npy"));
}

std::string prefix(const std::string& text, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0'};
  for (int shift = 0; shift < (version == 1 ? 16 : 32); shift += 8) {
    bytes += static_cast<char>(text.size() >> shift & 0xff);
  }
  return bytes + text;
}

NpyHeader parse(const std::string& bytes) {
  const auto span = std::as_bytes(std::span(bytes));
  const std::size_t size =
      npy_prefix_bytes(span.first(std::min<std::size_t>(span.size(), 12)), "x");
  return parse_npy_prefix(span.first(std::min(size, span.size())), "x");
}

std::string error_of(const std::string& bytes) {
  return message_of<DataError>([&] { parse(bytes); });
}

std::string header(const std::string& descr, const std::string& shape,
                   const std::string& fortran = "False") {
  return prefix("{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape +
                ", }   \n");
}

TEST(NpyHeader, ReadsWhatNumPyWrites) {
  for (const int version : {1, 2, 3}) {
    const NpyHeader h = parse(prefix(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (372, 140), }          \n", version));
    EXPECT_EQ(h.kind, 'f');
    EXPECT_EQ(h.item_bytes, 4);
    EXPECT_THAT(h.shape, ElementsAre(372, 140));
    EXPECT_EQ(h.elements, 372u * 140u);
    EXPECT_EQ(h.data_bytes, 4u * 372u * 140u);
  }
  EXPECT_THAT(parse(header("|u1", "(7,)")).shape, ElementsAre(7));
  EXPECT_EQ(parse(header("<i8", "()")).elements, 1u);
  EXPECT_EQ(parse(header("<i8", "(0, 5)")).elements, 0u);
}

TEST(NpyHeader, FortranOrderMattersFromTwoAxesOn) {
  EXPECT_EQ(parse(header("<i8", "(3,)", "True")).elements, 3u);
  EXPECT_THAT(error_of(header("<i8", "(3, 2)", "True")), HasSubstr("Fortran order"));
}

TEST(NpyHeader, RefusesOtherTypes) {
  EXPECT_THAT(error_of(header("|O", "(3,)")), HasSubstr("object"));
  EXPECT_THAT(error_of(header(">i8", "(3,)")), HasSubstr("big-endian"));
  for (const char* descr : {"|b1", "|f2", "<f16", "<c8", "<U5", "|S3", "<M8[ns]", "<i3", "|i8", "",
                            "f4", "<u0", "<f1"}) {
    EXPECT_THAT(error_of(header(descr, "(3,)")), HasSubstr("x: ")) << descr;
  }
  EXPECT_THAT(
      error_of(prefix("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,), }")),
      HasSubstr("structured"));
}

TEST(NpyHeader, RefusesImpossibleShapes) {
  EXPECT_THAT(error_of(header("<i8", "(-1, 2)")), HasSubstr("negative dimension"));
  EXPECT_THAT(error_of(header("<i8", "(99999999999999999999,)")), HasSubstr("too large"));
  EXPECT_THAT(error_of(header("<i8", "(4294967296, 4294967296)")), HasSubstr("too large"));
  EXPECT_THAT(error_of(header("<i8", "(5)")), HasSubstr("malformed"));
  EXPECT_THAT(error_of(header("<i8", "(5 6)")), HasSubstr("malformed"));
}

TEST(NpyHeader, RefusesMalformedText) {
  EXPECT_THAT(error_of("PK"), HasSubstr("not a .npy"));
  EXPECT_THAT(error_of(prefix("{}          ")), HasSubstr("lacks"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x")),
              HasSubstr("malformed"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'descr': '<i4', 'shape': (3,)}")),
              HasSubstr("twice"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'other': False}")), HasSubstr("unknown key"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'fortran_order': false, 'shape': (3,)}")),
              HasSubstr("malformed"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)", 1)),
              HasSubstr("malformed"));
  EXPECT_THAT(error_of(prefix(header("<i8", "(3,)"), 4)), HasSubstr("version"));
}

RC_GTEST_PROP(NpyHeader, ReadsBackWhatTheWriterWrites, ()) {
  const auto shape = *rc::gen::resize(
      5, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 1000)));
  const auto descr =
      *rc::gen::element<std::string>("<f2", "<f4", "<f8", "|u1", "|i1", "<u2", "<i4", "<u8");
  const NpyHeader h = parse(npy_header(descr, shape));
  RC_ASSERT(h.shape == shape);
  RC_ASSERT(h.descr == descr);
}

RC_GTEST_PROP(NpyHeader, AnyBytesParseOrThrowDataError, ()) {
  std::string bytes = header("<f4", "(3, 4)");
  const auto changes = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, bytes.size()), rc::gen::arbitrary<char>()));
  for (const auto& [at, value] : changes) bytes[at] = value;
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
  error_of(bytes);  // anything but DataError fails the test
}

}  // namespace
}  // namespace tpudist::test
