#include "core/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {

struct Sample {
  int count = 0;
  double score = 0;
  std::vector<double> losses;
  std::optional<double> best;
};
TPUDIST_JSON_FIELDS(Sample, count, score, losses, best)

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

TEST(JsonFields, AreWrittenAndReadByTheirNames) {
  const Sample given{2, kNone, {0.5, kNone}, std::nullopt};
  const std::string text = json(given).dump();
  EXPECT_EQ(text, R"({"best":null,"count":2,"losses":[0.5,null],"score":null})");
  const auto read = json::parse(text).get<Sample>();
  EXPECT_EQ(read.count, 2);
  EXPECT_TRUE(std::isnan(read.score));
  EXPECT_EQ(read.losses.at(0), 0.5);
  EXPECT_TRUE(std::isnan(read.losses.at(1)));
  EXPECT_FALSE(read.best);
}

TEST(JsonFields, NameTheKeyThatIsMissingOrOfAnotherType) {
  const auto fault = [](const char* key, const json& value) {
    json sample = Sample{};
    sample[key] = value;
    if (value.is_discarded()) sample.erase(key);
    return fault_of([&] { return json(sample.get<Sample>()); });
  };
  EXPECT_EQ(fault("count", json(json::value_t::discarded)), "it has no \"count\"");
  EXPECT_EQ(fault("count", 1.5), "count: is no whole number");
  EXPECT_EQ(fault("count", "2"), "count: type must be number, but is string");
  EXPECT_EQ(fault("score", "2"), "score: type must be number, but is string");
  EXPECT_EQ(fault("losses", {1, "2"}), "losses: type must be number, but is string");
  EXPECT_EQ(fault("best", true), "best: type must be number, but is boolean");
}

TEST(ReadJsonFile, NamesFileFaultAndAdvice) {
  const test::TempDir folder;
  const auto path = folder / "sample.json";
  const auto error_of = [&](const std::string& text) -> std::string {
    write_file_atomically(path, text);
    try {
      Sample sample;
      read_json_file(path, "sample 1", "make it again", [&](const json& j) { j.get_to(sample); });
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  json sample = Sample{};
  EXPECT_EQ(error_of(sample.dump()),
            path.string() + ": damaged: it has no \"format\"; make it again");
  sample["format"] = "sample 2";
  EXPECT_EQ(error_of(sample.dump()),
            path.string() +
                ": damaged: its format is \"sample 2\", and this program reads "
                "\"sample 1\"; make it again");
  sample["format"] = "sample 1";
  EXPECT_EQ(error_of(sample.dump()), "no error");
  sample.erase("score");
  EXPECT_EQ(error_of(sample.dump()),
            path.string() + ": damaged: it has no \"score\"; make it again");
  EXPECT_EQ(error_of("{"),
            path.string() + ": damaged: parse error at line 1, column 2; make it again");
}

}  // namespace
}  // namespace tpudist
