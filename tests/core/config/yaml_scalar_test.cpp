#include "core/config/yaml_scalar.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/config/yaml_tree.hpp"

namespace tpudist {
namespace {

constexpr double kHuge = std::numeric_limits<double>::infinity();

TEST(ParseInteger, ReadsWhatIsExactlyIntegral) {
  const auto value = [](std::string_view text) {
    const auto parsed = parse_integer(text);
    EXPECT_FALSE(parsed.error) << text;
    return parsed.value;
  };
  EXPECT_EQ(value("0"), 0);
  EXPECT_EQ(value("-0"), 0);
  EXPECT_EQ(value("400000"), 400000);
  EXPECT_EQ(value("+7"), 7);
  EXPECT_EQ(value("-12"), -12);
  EXPECT_EQ(value("4e5"), 400000);
  EXPECT_EQ(value("2.50E+1"), 25);
  EXPECT_EQ(value("1200e-2"), 12);
  EXPECT_EQ(value("3.0"), 3);
  EXPECT_EQ(value("007"), 7);
  EXPECT_EQ(value("0e99999999999"), 0);
  EXPECT_EQ(value("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(value("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  // Beyond what a double holds exactly.
  EXPECT_EQ(value("9007199254740993e0"), 9007199254740993);
}

TEST(ParseInteger, RefusesTheRest) {
  for (const char* text : {"",      "-",
                           "+",     ".",
                           "e5",    "1.5",
                           "1e-1",  "ten",
                           "0x10",  "1_000",
                           "1,000", " 1",
                           "1 ",    "1e",
                           "1e+",   "1e+-5",
                           "--1",   "+-1",
                           "1.2.3", "inf",
                           "nan",   "1e-99999999999"}) {
    EXPECT_EQ(parse_integer(text).error, std::errc::invalid_argument) << text;
  }
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "1e19", "1e99999999999",
                           "123456789012345678901234567890"}) {
    EXPECT_EQ(parse_integer(text).error, std::errc::result_out_of_range) << text;
  }
}

TEST(ParseNumber, ReadsDecimals) {
  const auto value = [](std::string_view text) {
    const auto parsed = parse_number(text);
    EXPECT_FALSE(parsed.error) << text;
    return parsed.value;
  };
  EXPECT_EQ(value("1"), 1);
  EXPECT_EQ(value("1e-3"), 1e-3);
  EXPECT_EQ(value(".5"), .5);
  EXPECT_EQ(value("5."), 5);
  EXPECT_EQ(value("+2.5E+2"), 250);
  EXPECT_EQ(value("0.316228"), 0.316228);
  EXPECT_EQ(value("5e-324"), 5e-324);
  EXPECT_TRUE(std::signbit(value("-0.0")));
  for (const char* text : {"inf", "+inf", ".inf", "+.inf"}) EXPECT_EQ(value(text), kHuge);
  for (const char* text : {"-inf", "-.inf"}) EXPECT_EQ(value(text), -kHuge);
}

TEST(ParseNumber, RefusesTheRest) {
  for (const char* text :
       {"", ".", "-", "nan", ".nan", "infinity", "0x1p3", "1e", "1f", "1 ", "+-1", "1,5", "Inf"}) {
    EXPECT_EQ(parse_number(text).error, std::errc::invalid_argument) << text;
  }
  EXPECT_EQ(parse_number("1e400").error, std::errc::result_out_of_range);
  EXPECT_EQ(parse_number("-1e400").error, std::errc::result_out_of_range);
  EXPECT_EQ(parse_number("1e-400").error, std::errc::result_out_of_range);
}

TEST(ParseBytes, ReadsUnits) {
  const auto value = [](std::string_view text) {
    const auto parsed = parse_bytes(text);
    EXPECT_FALSE(parsed.error) << text;
    return parsed.value;
  };
  EXPECT_EQ(value("4096"), 4096);
  EXPECT_EQ(value("4e9"), 4'000'000'000);
  EXPECT_EQ(value("3KiB"), 3072);
  EXPECT_EQ(value("4GB"), 4'000'000'000);
  EXPECT_EQ(value("1.5 kB"), 1500);
  EXPECT_EQ(value("512MiB"), 512 << 20);
  EXPECT_EQ(value("2TiB"), std::int64_t{2} << 40);
  for (const char* text :
       {"", "B", "GB", "4G", "4GiB/s", "4gb", "12B", "4kiB", "4 GB ", "x4GB", "4  GB"})
    EXPECT_EQ(parse_bytes(text).error, std::errc::invalid_argument) << text;
  EXPECT_EQ(parse_bytes("9e30TB").error, std::errc::result_out_of_range);
}

// PyYAML takes 1e-08 and inf for texts.
TEST(PortableNumbers, AreNumbersInYaml11AndIn12) {
  EXPECT_EQ(portable_numbers("1e-08"), "1.0e-08");
  EXPECT_EQ(portable_numbers("2.5e-07"), "2.5e-07");
  EXPECT_EQ(portable_numbers("-inf"), "-.inf");
  EXPECT_EQ(portable_numbers("[0.9, 1e-08, inf]"), "[0.9, 1.0e-08, .inf]");
  for (const char* text : {"12", "-0", "0.1", "[]"}) EXPECT_EQ(portable_numbers(text), text);
}

// PyYAML takes these for numbers and dates.
TEST(PortableText, IsTextInYaml11AndIn12) {
  for (const std::string text : {"1_000", "0x1F", "2024-01-01", "1:30:00"}) {
    EXPECT_EQ(format_yaml_text(text), text);  // as entries, and their hashes, have it
    EXPECT_EQ(portable_text(text), "\"" + text + "\"");
  }
  for (const char* text : {"nlp", "4x4.fp16", "\"1e3\"", "\"\"", "2nd", "[1_000]"})
    EXPECT_EQ(portable_text(text), text);
}

RC_GTEST_PROP(PortableNumbers, AreTheSameNumbers, (std::uint64_t bits)) {
  const auto value = std::bit_cast<double>(bits);
  RC_PRE(!std::isnan(value));
  const std::string portable = portable_numbers(format_number(value));
  RC_ASSERT(portable.find_first_of("ei") == std::string::npos ||
            portable.find('.') != std::string::npos);
  RC_ASSERT(parse_number(portable).value == value);
}

RC_GTEST_PROP(ParseInteger, UndoesPrinting, (std::int64_t value)) {
  const auto parsed = parse_integer(std::to_string(value));
  RC_ASSERT(!parsed.error);
  RC_ASSERT(parsed.value == value);
}

RC_GTEST_PROP(FormatNumber, IsReadBackBitForBit, (std::uint64_t bits)) {
  const auto value = std::bit_cast<double>(bits);
  RC_PRE(!std::isnan(value));
  const auto parsed = parse_number(format_number(value));
  RC_ASSERT(!parsed.error);
  RC_ASSERT(std::bit_cast<std::uint64_t>(parsed.value) == bits);
}

TEST(FormatNumber, IsShort) {
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(1), "1");
  EXPECT_EQ(format_number(400000), "400000");
  EXPECT_EQ(format_number(1e-6), "1e-06");
  EXPECT_EQ(format_number(1e300), "1e+300");
  EXPECT_EQ(format_number(-0.0), "-0");
  EXPECT_EQ(format_number(kHuge), "inf");
  EXPECT_EQ(format_number(-kHuge), "-inf");
}

TEST(FormatYamlText, IsPlainWhereThatIsSafe) {
  for (const char* text :
       {"nlp", "layout:nlp:random", "/data/x.y", "resnet50.4x4.fp16", "_a", "auto"}) {
    EXPECT_EQ(format_yaml_text(text), text);
  }
  EXPECT_EQ(format_yaml_text(""), "\"\"");
  EXPECT_EQ(format_yaml_text("true"), "\"true\"");
  EXPECT_EQ(format_yaml_text("1e3"), "\"1e3\"");
  EXPECT_EQ(format_yaml_text("null"), "\"null\"");
  EXPECT_EQ(format_yaml_text("*.fp16"), "\"*.fp16\"");
  EXPECT_EQ(format_yaml_text("a: b"), "\"a: b\"");
  EXPECT_EQ(format_yaml_text("a:"), "\"a:\"");
  EXPECT_EQ(format_yaml_text("say \"\\\"\n\t\x01"), "\"say \\\"\\\\\\\"\\n\\t\\x01\"");
  EXPECT_EQ(format_yaml_text("${env:X}"), "\"$${env:X}\"");
}

// Texts of everything that has a meaning somewhere in YAML, and of what does not.
rc::Gen<std::string> awkward_text() {
  using namespace std::string_literals;
  const auto piece = rc::gen::weightedOneOf<std::string>(
      {{3, rc::gen::map(rc::gen::inRange(0, 128),
                        [](int c) { return std::string(1, static_cast<char>(c)); })},
       {1, rc::gen::elementOf(std::vector<std::string>{
               ": ",     " #",     "- ",     "? ",         "---",    "...",     "{",      "}",
               "[",      "]",      ",",      "&a",         "*a",     "!",       "|",      ">",
               "'",      "\"",     "%",      "@",          "`",      "\\",      "\r\n",   "~",
               "null",   "true",   "<<",     "1e3",        "${env:", "$${env:", "\u0085", "\u00a0",
               "\u2028", "\ufeff", "\u00e9", "\U0001F600", "\0"s,    " ",       "\n",     "a"})}});
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& one : pieces) text += one;
                        return text;
                      });
}

std::string without_escaped_variables(std::string text) {
  for (std::size_t at = 0; (at = text.find("$${env:", at)) != std::string::npos; at += 6) {
    text.erase(at, 1);
  }
  return text;
}

RC_GTEST_PROP(FormatYamlText, IsReadBackAnywhere, ()) {
  const std::string text = *awkward_text();
  const std::string yaml = format_yaml_text(text);
  YamlMistakes mistakes;
  const auto source = std::make_shared<YamlLocation::Source>(YamlLocation::Source{"test"});
  const YamlValue root = parse_yaml(
      "a: " + yaml + "\nb: [" + yaml + ", " + yaml + "]\n" + yaml + ":\n  - x: " + yaml + "\n",
      source, mistakes);
  const auto expect_text = [&](const YamlValue& value) {
    RC_ASSERT(value.kind == YamlValue::Kind::scalar);
    RC_ASSERT(without_escaped_variables(value.text) == text);
  };
  RC_PRE(text != "a" && text != "b");
  expect_text(root.items.at(0));
  expect_text(root.items.at(1).items.at(0));
  expect_text(root.items.at(1).items.at(1));
  RC_ASSERT(without_escaped_variables(root.items.at(2).key) == text);
  expect_text(root.items.at(2).items.at(0).items.at(0));
}

}  // namespace
}  // namespace tpudist
