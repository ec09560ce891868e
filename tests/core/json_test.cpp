#include "core/json.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace tpudist {
namespace {

using nlohmann::json;

std::string fault_of(const std::function<json()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return json_fault(error.what());
  }
  return "no error";
}

TEST(JsonFault, TellsThePlaceOfASyntaxErrorAndNotTheBytesThere) {
  EXPECT_EQ(fault_of([] { return json::parse("{\n  \"a\": \x01\xff }"); }),
            "parse error at line 2, column 8");
  EXPECT_EQ(fault_of([] { return json::parse(""); }), "parse error at line 1, column 1");
}

TEST(JsonFault, KeepsWhatIsMissingOrOfTheWrongType) {
  EXPECT_EQ(fault_of([] { return json::parse("{}").at("runs"); }), "key 'runs' not found");
  EXPECT_EQ(fault_of([] { return json::parse("3").get<std::string>(); }),
            "type must be string, but is number");
}

TEST(JsonFault, IsOneShortLine) {
  const std::string fault = json_fault("it has the format \"a\nb\" " + std::string(1000, 'x'));
  EXPECT_EQ(fault.find('\n'), std::string::npos);
  EXPECT_LT(fault.size(), 130u);
}

TEST(JsonDepth, CountsBracketsOutsideOfStrings) {
  EXPECT_EQ(json_depth("3"), 0u);
  EXPECT_EQ(json_depth(R"({"a": [1, {"b": 2}], "c": [[4]]})"), 3u);
  EXPECT_EQ(json_depth(R"(["[[[[", "\"[[", "\\", [1]])"), 2u);
  EXPECT_EQ(json_depth("]]}{"), 1u);
  EXPECT_EQ(json_depth(std::string(100'000, '[')), 100'000u);
}

}  // namespace
}  // namespace tpudist
