#include "core/config/yaml_tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = YamlValue::Kind;

YamlValue parse_tree(const std::string& text, YamlMistakes& mistakes) {
  return parse_yaml(text, std::make_shared<YamlLocation::Source>(YamlLocation::Source{"file"}),
                    mistakes);
}

// The tree of a text without mistakes.
YamlValue parse_tree(const std::string& text) {
  YamlMistakes mistakes;
  YamlValue value = parse_tree(text, mistakes);
  EXPECT_EQ(mistakes.to_string(), "");
  return value;
}

// The message of a text that is refused.
std::string refusal(const std::string& text) {
  return test::message_of<ConfigError>([&] {
    YamlMistakes mistakes;
    parse_tree(text, mistakes);
  });
}

TEST(ParseYaml, BuildsATreeWithPlaces) {
  const YamlValue root = parse_tree("a: 1\nb:\n  c: [x, 'y']\n  d:\n");
  ASSERT_EQ(root.kind, Kind::map);
  const YamlValue* a = root.find("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->text, "1");
  EXPECT_FALSE(a->quoted);
  EXPECT_EQ(a->key_place.to_string(), "file:1:1");
  EXPECT_EQ(a->place.to_string(), "file:1:4");
  const YamlValue& list = *root.find("b")->find("c");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].place.to_string(), "file:3:10");
  const YamlValue* d = root.find("b")->find("d");
  EXPECT_EQ(d->kind, Kind::null);
  EXPECT_EQ(d->place.to_string(), "file:4:3");
  EXPECT_EQ(root.find("absent"), nullptr);
}

TEST(ParseYaml, KnowsQuotesAndBlocks) {
  const YamlValue root = parse_tree("a: \"1\"\nb: '1'\nc: |\n  1\nd: ~\ne: \"~\"\nf: ''\n");
  for (const char* key : {"a", "b", "c", "e", "f"}) {
    EXPECT_TRUE(root.find(key)->quoted) << key;
    EXPECT_EQ(root.find(key)->kind, Kind::scalar) << key;
  }
  EXPECT_EQ(root.find("d")->kind, Kind::null);
}

TEST(ParseYaml, AnEmptyTextIsNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"})
    EXPECT_EQ(parse_tree(text).kind, Kind::null);
}

TEST(ParseYaml, ReportsDuplicateKeysAndGoesOn) {
  YamlMistakes mistakes;
  const YamlValue root = parse_tree("a: 1\nb: {c: 1, c: 2}\na: {x: 1}\nd: 4\n", mistakes);
  EXPECT_EQ(mistakes.to_string(),
            "file:2:11: key \"c\" is given twice, first in line 2\n"
            "file:3:1: key \"a\" is given twice, first in line 1");
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("d")->text, "4");
}

TEST(ParseYaml, ExpandsAliases) {
  const YamlValue root = parse_tree("a: &x {k: 1}\nb: *x\nc: [&y text, *y]\n");
  EXPECT_EQ(root.find("b")->find("k")->text, "1");
  EXPECT_EQ(root.find("c")->items[1].text, "text");
}

TEST(ParseYaml, RefusesWithThePlace) {
  EXPECT_THAT(refusal("a: [1\nb: 2"), HasSubstr("file:2:"));
  EXPECT_THAT(refusal("a: {b: 1"), HasSubstr("file:"));
  EXPECT_THAT(refusal("a: b: c"), HasSubstr("file:1:5: "));
  EXPECT_THAT(refusal("a: \"x"), HasSubstr("file:"));
  EXPECT_THAT(refusal("\ta: 1"), HasSubstr("file:"));
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"),
            "file:2:1: a second document; one file holds one configuration");
  EXPECT_EQ(refusal("a: &x {b: 1}\nc:\n  <<: *x\n"),
            "file:3:3: merge keys (<<) are not supported; use include");
  EXPECT_EQ(refusal("a: !!int 1"), "file:1:4: tags are not supported: tag:yaml.org,2002:int");
  EXPECT_EQ(refusal("a: !mine {}"), "file:1:4: tags are not supported: !mine");
  EXPECT_EQ(refusal("? [a, b]\n: 1"), "file:1:3: a key must be a word");
  EXPECT_THAT(refusal("~: 1"), HasSubstr("a key must be a word"));
  EXPECT_THAT(refusal("a: &x [*x]"), HasSubstr("an alias inside of its own anchor"));
  EXPECT_THAT(refusal("a: *unknown"), HasSubstr("file:1:4: "));
}

TEST(ParseYaml, NamesTheTabThatIndents) {
  EXPECT_THAT(refusal("train:\n\tsteps: 20\n"),
              HasSubstr("file:2:1: a tab; indent YAML by blanks alone ("));
  EXPECT_THAT(refusal("a:\n  b: 1\n \tc: 2\n"), HasSubstr("file:3:2: a tab; indent "));
  EXPECT_THAT(refusal("a: [1,\n\t2]\nb: 1\nc: 2\nd: [\n"), Not(HasSubstr("tab")));
  EXPECT_EQ(parse_tree("a:\t1\nb: 2\n").find("b")->text, "2");  // where YAML has it
}

TEST(ParseYaml, RefusesWhatIsNotText) {
  EXPECT_EQ(refusal(std::string("a: 1\nb: \0", 9)),
            "file:2:4: the control character 0x00; is this a YAML file?");
  EXPECT_THAT(refusal("a: \x04"), HasSubstr("0x04"));
  EXPECT_EQ(refusal("a: \xFF"), "file: not UTF-8 text");
}

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ParseYaml, LimitsTheDepth) {
  EXPECT_EQ(parse_tree(repeat("[", 64) + repeat("]", 64)).kind, Kind::list);
  EXPECT_EQ(refusal(repeat("[", 65) + repeat("]", 65)), "file:1:65: nested deeper than 64");
  EXPECT_THAT(refusal(repeat("[", 100'000)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(refusal(repeat("{a: ", 100'000)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(refusal(repeat("- ", 100'000)), HasSubstr("nested deeper than 64"));
}

TEST(ParseYaml, LimitsTheSizeAfterAliases) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = fmt::format("*a{}", i - 1);
    bomb += fmt::format("a{0}: &a{0} [{1}{2}]\n", i, last, repeat(fmt::format(", {}", last), 9));
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("more than 100000 values"));
  EXPECT_THAT(
      refusal("a: &a " + std::string(1'000'000, 'x') + "\nb: [*a" + repeat(", *a", 20) + "]"),
      HasSubstr("bytes of text"));
  EXPECT_THAT(refusal(fmt::format("[{}]", repeat("x,", 100'001))),
              HasSubstr("more than 100000 values"));
  // What anchors within anchors name is kept once for each.
  std::string anchors;
  for (int i = 0; i < 60; ++i) anchors += fmt::format("&a{} [", i);
  EXPECT_THAT(refusal(anchors + repeat("x,", 50'000) + repeat("]", 60)),
              HasSubstr("more than 100000 values"));
}

TEST(ParseYaml, ManyKeysAreFast) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("k{}: 1\n", i);
  EXPECT_EQ(parse_tree(text).items.size(), 50'000u);
}

RC_GTEST_PROP(ParseYaml, AnswersAnythingWithATreeOrAMessage, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{4, rc::gen::elementOf(std::string("[]{}:,-?&*!|>'\"%@`#\n ~<\\ab1"))},
       {1, rc::gen::arbitrary<char>()}}));
  YamlMistakes mistakes;
  try {
    parse_tree(text, mistakes);
  } catch (const ConfigError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("file"));
  }
}

TEST(MergeYaml, LaysMapsOverEachOther) {
  const YamlValue merged = merge_yaml(parse_tree("a: 1\nb: {c: 2, d: 3}\ne: [1, 2]\n"),
                                      parse_tree("f: 5\nb: {d: 4}\ne: [9]\n"));
  ASSERT_EQ(merged.items.size(), 4u);
  EXPECT_EQ(merged.items[1].key, "b");
  EXPECT_EQ(merged.find("a")->text, "1");
  EXPECT_EQ(merged.find("b")->find("c")->text, "2");
  EXPECT_EQ(merged.find("b")->find("d")->text, "4");
  EXPECT_EQ(merged.find("e")->items.size(), 1u);
  EXPECT_EQ(merged.find("f")->text, "5");
}

TEST(MergeYaml, ReplacesWhatIsNotAMapOnBothSides) {
  EXPECT_EQ(merge_yaml(parse_tree("a: {b: 1}"), parse_tree("a: 2")).find("a")->text, "2");
  EXPECT_TRUE(merge_yaml(parse_tree("a: 2"), parse_tree("a: {b: 1}")).find("a")->is_map());
}

TEST(YamlMistakes, AreSortedAndCutShort) {
  YamlMistakes mistakes;
  const auto first = std::make_shared<YamlLocation::Source>(YamlLocation::Source{"first", 0});
  const auto second = std::make_shared<YamlLocation::Source>(YamlLocation::Source{"second", 1});
  mistakes.add({second}, "whole");
  mistakes.add({first, 9, 1}, "later");
  mistakes.add({first, 2, 5}, "earlier");
  mistakes.add({first, 9, 1}, "later");
  EXPECT_EQ(mistakes.to_string(), "first:2:5: earlier\nfirst:9:1: later\nsecond: whole");
  for (int i = 0; i < 100; ++i) mistakes.add({first, 20 + i, 1}, "more");
  EXPECT_THAT(mistakes.to_string(), ::testing::EndsWith("\n... and 53 more"));
}

}  // namespace
}  // namespace tpudist
