#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/safetensors/safetensors_file.hpp"
#include "core/text.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/stored_numbers.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

// The files are those of tests/golden/safetensors_files.py, written by the safetensors package.

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tpudist::test::stored_numbers;
using tpudist::test::TempDir;

std::filesystem::path golden(const std::string& name) {
  return test::source_folder() / "tests/core/safetensors/files" / name;
}

TEST(Safetensors, ReadsEveryTypeThatThePackageWrites) {
  SafetensorsFile file(golden("all_types.safetensors"));
  EXPECT_TRUE(file.metadata().empty());
  const double largest[] = {std::numeric_limits<double>::max(), std::numeric_limits<float>::max(),
                            65504, std::ldexp(255.0, 120)};
  const char* const names[] = {"f64", "f32", "f16", "bf16"};
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(file.tensor(names[t]).shape, (std::vector<std::int64_t>{3, 4}));
    const std::vector<float> values = file.floats(names[t]);
    ASSERT_EQ(values.size(), 12u);
    for (int i = 0; i < 11; ++i)
      EXPECT_EQ(values[i], static_cast<float>((i - 3) * 0.375)) << names[t];
    EXPECT_EQ(values[11], static_cast<float>(largest[t])) << names[t];
  }
  const auto counts_up = [&]<typename T>(const char* name, T) {
    EXPECT_THAT(stored_numbers<T>(file, name), ElementsAre(0, 1, 2, 3, 4, 5)) << name;
  };
  counts_up("i64", std::int64_t{});
  counts_up("i32", std::int32_t{});
  counts_up("i16", std::int16_t{});
  counts_up("i8", std::int8_t{});
  counts_up("u64", std::uint64_t{});
  counts_up("u32", std::uint32_t{});
  counts_up("u16", std::uint16_t{});
  counts_up("u8", std::uint8_t{});
  EXPECT_THAT(stored_numbers<std::uint8_t>(file, "boolean"), ElementsAre(1, 0, 1));
  EXPECT_THAT(stored_numbers<std::int64_t>(file, "i64.ends"),
              ElementsAre(std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()));
}

TEST(Safetensors, ReadsTheEndsOfHalfPrecision) {
  SafetensorsFile file(golden("all_types.safetensors"));
  const std::vector<float> small = file.floats("f16.small");
  EXPECT_EQ(std::bit_cast<std::uint32_t>(small[0]), 0u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(small[1]), 0x80000000u);
  EXPECT_EQ(small[2], std::ldexp(1.0f, -24));
  EXPECT_EQ(small[3], -3 * std::ldexp(1.0f, -24));
  EXPECT_EQ(small[4], std::ldexp(1.0f, -14));
  EXPECT_EQ(small[5], INFINITY);
  EXPECT_EQ(small[6], -INFINITY);
  EXPECT_TRUE(std::isnan(small[7]));
}

TEST(Safetensors, WritesTheBytesOfThePackage) {
  SafetensorsWriter writer;
  std::vector<float> weight;
  for (int i = 0; i < 6; ++i) weight.push_back(static_cast<float>(i) / 8 - 0.25f);
  writer.add("blocks.0.weight", {2, 3}, weight);
  writer.add("blocks.0.bias", {3}, std::vector<float>{1.5f, -2.0f, 1e-40f});
  writer.add("scalar", {}, std::vector<float>{0.1f});
  writer.add("empty", {0, 4}, std::vector<float>{});
  const std::vector<std::int64_t> counts{3, -1, std::int64_t{1} << 40};
  writer.add("counts", TensorType::i64, {3}, std::as_bytes(std::span(counts)));
  const std::vector<double> mean{0.1, 1e300};
  writer.add("mean", TensorType::f64, {2}, std::as_bytes(std::span(mean)));
  writer.add("a \"quoted\" n\xc3\xa4me", {1}, std::vector<float>{7});
  writer.add_metadata("format", "pt");
  EXPECT_EQ(writer.bytes(), read_text_file(golden("written_here.safetensors")));
}

TEST(Safetensors, RefusesTensorsThatDoNotFitTheirShape) {
  SafetensorsWriter writer;
  EXPECT_THROW(writer.add("a", {2, 3}, std::vector<float>(5)), Error);
  writer.add("a", {5}, std::vector<float>(5));
  EXPECT_THROW(writer.add("a", {5}, std::vector<float>(5)), Error);
}

TEST(Safetensors, NamesWhatIsNotThere) {
  SafetensorsFile file(golden("written_here.safetensors"));
  EXPECT_EQ(file.find("blocks.0.weights"), nullptr);
  EXPECT_THAT(test::message_of<DataError>([&] { file.floats("blocks.0.weights"); }),
              HasSubstr("written_here.safetensors: holds no tensor \"blocks.0.weights\" (there is "
                        "\"blocks.0.weight\")"));
  EXPECT_THROW(file.floats("counts"), DataError);
  EXPECT_THROW(SafetensorsFile(golden("missing.safetensors")), IoError);
  EXPECT_THROW(SafetensorsFile(golden("")), IoError);
}

// All tensors of random names, shapes and bits come back.
TEST(Safetensors, ReadsWhatItWrote) {
  const TempDir folder;
  const auto holds = [&](const std::map<std::string, std::vector<float>>& floats,
                         const std::map<std::string, std::vector<double>>& doubles) {
    SafetensorsWriter writer;
    for (const auto& [name, values] : floats)
      writer.add("f" + name, {1, static_cast<std::int64_t>(values.size())}, values);
    for (const auto& [name, values] : doubles)
      writer.add("d" + name, TensorType::f64, {static_cast<std::int64_t>(values.size()), 1, 1},
                 std::as_bytes(std::span(values)));
    const auto path = folder / "random.safetensors";
    writer.write(path);
    SafetensorsFile file(path);
    RC_ASSERT(file.tensors().size() == floats.size() + doubles.size());
    const auto same = [](const auto& a, const auto& b) {
      return a.size() == b.size() &&
             (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
    };
    for (const auto& [name, values] : floats) RC_ASSERT(same(file.floats("f" + name), values));
    for (const auto& [name, values] : doubles)
      RC_ASSERT(same(stored_numbers<double>(file, "d" + name), values));
  };
  EXPECT_TRUE(rc::check("what was written is read", [&] {
    const auto printable = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    holds(*rc::gen::container<std::map<std::string, std::vector<float>>>(
              printable, rc::gen::arbitrary<std::vector<float>>()),
          *rc::gen::container<std::map<std::string, std::vector<double>>>(
              printable, rc::gen::arbitrary<std::vector<double>>()));
  }));
}

std::string file_of(const std::string& header, std::size_t data, std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data, '\0');
}

// What is said of a file of these bytes; empty where it can be opened.
std::string said_of(const std::string& bytes) {
  const TempDir folder;
  std::ofstream(folder / "w.safetensors", std::ios::binary) << bytes;
  return test::message_of<DataError>([&] { SafetensorsFile file(folder / "w.safetensors"); });
}

std::string said_of_header(const std::string& header, std::size_t data) {
  return said_of(file_of(header, data, header.size()));
}

std::string one_tensor(const std::string& name, const std::string& type, const std::string& shape,
                       const std::string& place) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + place + "}";
}

TEST(SafetensorsDamage, TellsWhatIsWrongInOneLine) {
  struct Case {
    std::string header;
    std::size_t data;
    std::string says;
  };
  const std::string whole = one_tensor("a", "F32", "[2]", "[0,8]");
  const Case cases[] = {
      {"[" + whole + "]", 8, "does not begin with {"},
      {"{" + whole, 8, "is not JSON"},
      {"{" + whole + "," + whole + "}", 8, "the key \"a\" twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "twice"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8, "dtype, shape and data_offsets"},
      {R"({"a":[0]})", 8, "tensor \"a\": is not an object"},
      {"{" + one_tensor("a", "F4", "[2]", "[0,8]") + "}", 8, "dtype \"F4\" is none of BOOL, U8"},
      {"{" + one_tensor("a", "F32", "[-2]", "[0,8]") + "}", 8, "-2 where a size must be"},
      {"{" + one_tensor("a", "F32", "[2.0]", "[0,8]") + "}", 8, "2.0 where a size must be"},
      {"{" + one_tensor("a", "F32", "[18446744073709551615]", "[0,8]") + "}", 8, "a size must be"},
      {"{" + one_tensor("a", "F32", "[4294967296,4294967296]", "[0,8]") + "}", 8, "too large"},
      {"{" + one_tensor("a", "F64", "[2305843009213693952]", "[0,0]") + "}", 0, "takes more"},
      {"{" + one_tensor("a", "F32", "[3]", "[0,8]") + "}", 8, "hold 8 bytes, but shape [3]"},
      {"{" + one_tensor("a", "F32", "[2]", "[0]") + "}", 8, "two whole numbers"},
      {"{" + one_tensor("a", "F32", "[2]", "[8,0]") + "}", 8, "is the file complete?"},
      {"{" + whole + "}", 7, "is the file complete?"},
      {"{" + whole + "}", 9, "the tensors end at byte 8 after the header, but there are 9"},
      {"{" + whole + "," + one_tensor("b", "F32", "[1]", "[4,8]") + "}", 8, "an overlap"},
      {"{" + whole + "," + one_tensor("b", "F32", "[1]", "[12,16]") + "}", 16, "a hole"},
      {R"({"__metadata__":{"format":1}})", 0, "\"format\" is not a text"},
      {R"({"__metadata__":["pt"]})", 0, "not an object of texts"},
      {"{\"a\":" + std::string(5000, '['), 0, "nested deeper"},
      {"{\"a\n\":1}", 0, "is not JSON"},
      {"{\"\\u000a\":1}", 0, "tensor \"?\""},
      {"{\"\xff\":1}", 0, "is not JSON"},
  };
  for (const Case& item : cases) {
    const std::string said = said_of_header(item.header, item.data);
    EXPECT_THAT(said, HasSubstr(item.says)) << item.header.substr(0, 100);
    EXPECT_THAT(said, HasSubstr("w.safetensors: ")) << item.header.substr(0, 100);
    EXPECT_THAT(said, Not(HasSubstr("\n")));
  }
  std::string letters;
  for (int i = 0; i < 500; ++i) letters += "\xc3\xa4";
  const std::string cut = said_of_header("{\"" + letters + "\":1}", 0);
  EXPECT_TRUE(is_utf8(cut)) << cut;
  EXPECT_THAT(cut, HasSubstr("tensor \"" + letters.substr(0, 300)));
  EXPECT_EQ(said_of_header("{" + whole + "}", 8), "");
  EXPECT_EQ(said_of_header("{" + whole + "}   ", 8), "");
  EXPECT_EQ(said_of_header("{}", 0), "");
}

// The length is checked before anything is allocated.
TEST(SafetensorsDamage, RefusesAHeaderThatTheFileCannotHold) {
  EXPECT_THAT(said_of(""), HasSubstr("fewer than 8 bytes"));
  EXPECT_THAT(said_of("PK\3\4"), HasSubstr("fewer than 8 bytes"));
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    EXPECT_THAT(said_of(file_of("{}", 0, length)), HasSubstr("no whole safetensors file"))
        << length;
  }
  EXPECT_THAT(said_of(file_of("", 0, 0)), HasSubstr("does not begin with {"));
}

}  // namespace
}  // namespace tpudist
