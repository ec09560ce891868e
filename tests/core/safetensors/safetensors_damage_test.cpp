#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "core/safetensors/safetensors_file.hpp"
#include "core/text.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tpudist::test::TempDir;

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
