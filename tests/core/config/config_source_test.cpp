#include "core/config/config_source.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The tree as one line, for comparing: {a: 1, b: [x]}; "text" where quoted.
std::string show(const YamlValue& value) {
  std::string text;
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "~";
    case YamlValue::Kind::scalar:
      return value.quoted ? '"' + value.text + '"' : value.text;
    case YamlValue::Kind::list:
      for (const YamlValue& item : value.items) text += (text.empty() ? "" : ", ") + show(item);
      return '[' + text + ']';
    case YamlValue::Kind::map:
      for (const YamlValue& item : value.items)
        text += (text.empty() ? "" : ", ") + item.key + ": " + show(item);
      return '{' + text + '}';
  }
  return text;
}

std::string message_of_finish(ConfigDocument& document) {
  return test::message_of<ConfigError>([&] { document.finish(); });
}

class ConfigSourceTest : public ::testing::Test {
 protected:
  void write(const std::filesystem::path& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }

  // The resolved tree; mistakes, and the message of an exception, go to `mistakes_`.
  std::string load(const std::filesystem::path& name,
                   const std::vector<std::string>& overrides = {}) {
    try {
      YamlMistakes mistakes;
      const std::string tree = show(load_config_tree(folder_ / name, overrides, mistakes));
      mistakes_ = without_folder(mistakes.to_string());
      return tree;
    } catch (const ConfigError& error) {
      mistakes_ = without_folder(error.what());
      return "refused";
    }
  }

  std::string parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
    write("text.yaml", text);
    return load("text.yaml", overrides);
  }

  std::string without_folder(std::string message) const {
    const std::string prefix = folder_.path().string() + "/";
    for (std::size_t at = 0; (at = message.find(prefix)) != std::string::npos;)
      message.erase(at, prefix.size());
    return message;
  }

  test::TempDir folder_;
  std::string mistakes_;
};

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// --- include ---

TEST_F(ConfigSourceTest, TheIncludingFileWinsKeyByKey) {
  write("base.yaml", "a: 1\nb: {c: 2, d: 3}\ne: [1, 2]\n");
  write("main.yaml", "include: base.yaml\nb: {d: 4}\ne: [3]\nf: 5\n");
  EXPECT_EQ(load("main.yaml"), "{a: 1, b: {c: 2, d: 4}, e: [3], f: 5}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, LaterIncludesWinOverEarlierOnes) {
  write("one.yaml", "a: 1\nb: 1\nc: 1\n");
  write("two.yaml", "b: 2\nc: 2\n");
  write("main.yaml", "c: 3\ninclude: [one.yaml, two.yaml]\n");
  EXPECT_EQ(load("main.yaml"), "{a: 1, b: 2, c: 3}");
}

TEST_F(ConfigSourceTest, IncludesAreBesideTheirFile) {
  write("sub/base.yaml", "include: ../other.yaml\na: 1\n");
  write("other.yaml", "b: 2\n");
  write("main.yaml", "include: sub/base.yaml\n");
  EXPECT_EQ(load("main.yaml"), "{b: 2, a: 1}");
}

TEST_F(ConfigSourceTest, IncludeIsAKeyLikeOthersFurtherIn) {
  EXPECT_EQ(parse("data: {include: [x*]}\n"), "{data: {include: [x*]}}");
}

TEST_F(ConfigSourceTest, PlacesNameTheIncludedFile) {
  write("sub/base.yaml", "a: 1\nbad: 2\n");
  write("main.yaml", "include: sub/base.yaml\na: x\n");
  ConfigDocument document = ConfigDocument::load(folder_ / "main.yaml", {"worse=3"});
  document.root().integer("a", 1);
  EXPECT_EQ(without_folder(message_of_finish(document)),
            "main.yaml:2:4: \"a\" must be an integer, but is \"x\"\n"
            "sub/base.yaml:2:1: unknown key \"bad\"; known are a\n"
            "command line: unknown key \"worse\"; known are a");
}

TEST_F(ConfigSourceTest, ALoopOfIncludesIsRefused) {
  write("a.yaml", "include: b.yaml\n");
  write("b.yaml", "x: 1\ninclude: sub/../a.yaml\n");
  EXPECT_EQ(load("a.yaml"), "refused");
  EXPECT_EQ(mistakes_,
            "a.yaml:1:10: cannot include b.yaml: b.yaml:2:10: cannot include sub/../a.yaml: a.yaml "
            "includes itself");
}

TEST_F(ConfigSourceTest, AFileMayBeIncludedTwice) {
  write("base.yaml", "a: 1\n");
  write("left.yaml", "include: base.yaml\n");
  write("right.yaml", "include: base.yaml\n");
  write("main.yaml", "include: [left.yaml, right.yaml]\n");
  EXPECT_EQ(load("main.yaml"), "{a: 1}");
}

TEST_F(ConfigSourceTest, DoublingIncludesEnd) {
  for (int i = 0; i < 30; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    write("f" + std::to_string(i), "include: [" + next + ", " + next + "]\n");
  }
  write("f30", "a: 1\n");
  EXPECT_EQ(load("f0"), "refused");
  EXPECT_THAT(mistakes_, HasSubstr("more than 64 files"));
}

TEST_F(ConfigSourceTest, SaysWhichFileCannotBeRead) {
  EXPECT_EQ(load("absent.yaml"), "refused");
  EXPECT_THAT(mistakes_, AllOf(HasSubstr("absent.yaml"), HasSubstr("No such file or directory")));
  write("main.yaml", "a: 1\ninclude: absent.yaml\n");
  EXPECT_EQ(load("main.yaml"), "refused");
  EXPECT_THAT(mistakes_, HasSubstr("main.yaml:2:10: cannot include absent.yaml: "));
  EXPECT_EQ(load(""), "refused");
  write("broken.yaml", "a: [\n");
  write("main.yaml", "include: broken.yaml\n");
  EXPECT_EQ(load("main.yaml"), "refused");
  EXPECT_THAT(mistakes_, HasSubstr("main.yaml:1:10: cannot include broken.yaml: broken.yaml:2:"));
  write("list.yaml", "include: {a: b}\n");
  EXPECT_EQ(load("list.yaml"), "refused");
  EXPECT_EQ(mistakes_, "list.yaml:1:10: include: needs a file or a list of files");
}

TEST_F(ConfigSourceTest, SuggestsTheNearestFileToInclude) {
  write("sub/base.yaml", "a: 1\n");
  write("main.yaml", "include: sub/bse.yaml\n");
  EXPECT_EQ(load("main.yaml"), "refused");
  EXPECT_THAT(mistakes_, AllOf(HasSubstr("main.yaml:1:10: cannot include sub/bse.yaml: "),
                               HasSubstr("; did you mean sub/base.yaml?")));
}

TEST_F(ConfigSourceTest, HugeFilesAreRefused) {
  write("huge.yaml", "a: " + std::string(2'000'000, 'x'));
  EXPECT_EQ(load("huge.yaml"), "refused");
  EXPECT_THAT(mistakes_, HasSubstr("larger than"));
}

// --- ${env:NAME,default} ---

TEST_F(ConfigSourceTest, VariablesAreReplacedAnywhereInAScalar) {
  const Variable data("TPUDIST_TEST_DATA", "/data"), steps("TPUDIST_TEST_STEPS", "100");
  EXPECT_EQ(parse("a: ${env:TPUDIST_TEST_DATA}\n"
                  "b: x/${env:TPUDIST_TEST_DATA}/${env:TPUDIST_TEST_STEPS}\n"
                  "c: ['${env:TPUDIST_TEST_STEPS}']\n"
                  "d: ${env:TPUDIST_TEST_STEPS,5}\n"),
            "{a: /data, b: x//data/100, c: [\"100\"], d: 100}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, UnsetOrEmptyVariablesTakeTheDefault) {
  const Variable empty("TPUDIST_TEST_EMPTY", "");
  EXPECT_EQ(parse("a: ${env:TPUDIST_TEST_UNSET,x,y z}\nb: ${env:TPUDIST_TEST_EMPTY,5}\nc: "
                  "a${env:TPUDIST_TEST_UNSET,}\n"),
            "{a: x,y z, b: 5, c: a}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, ValuesOfVariablesAreTextAndNotReadAgain) {
  const Variable nested("TPUDIST_TEST_NESTED", "${env:HOME}: [x]");
  EXPECT_EQ(parse("a: ${env:TPUDIST_TEST_NESTED}\n"), "{a: ${env:HOME}: [x]}");
}

TEST_F(ConfigSourceTest, TwoDollarsStandForOne) {
  EXPECT_EQ(parse("a: $${env:HOME}\nb: $$${env:HOME}\nc: $HOME ${HOME}\n"),
            "{a: ${env:HOME}, b: $${env:HOME}, c: $HOME ${HOME}}");
}

TEST_F(ConfigSourceTest, MistakesInVariablesHaveTheirPlace) {
  const Variable binary("TPUDIST_TEST_BINARY", "\xFF");
  parse(
      "a: ${env:TPUDIST_TEST_UNSET}\nb:\n  - ${env:A\n  - ${env:1A}\n  - "
      "${env:TPUDIST_TEST_BINARY}\n");
  EXPECT_EQ(
      mistakes_,
      "text.yaml:1:4: the environment variable TPUDIST_TEST_UNSET is not set; set it, or give a "
      "default: ${env:TPUDIST_TEST_UNSET,default}\n"
      "text.yaml:3:5: ${env: without its }\n"
      "text.yaml:4:5: \"1A\" is not a variable's name\n"
      "text.yaml:5:5: the variable TPUDIST_TEST_BINARY is not UTF-8 text");
}

TEST_F(ConfigSourceTest, AnOverriddenVariableIsNotAskedFor) {
  EXPECT_EQ(parse("a: ${env:TPUDIST_TEST_UNSET}\n", {"a=1"}), "{a: 1}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, AMissingVariableIsOneMistakeOnly) {
  ConfigDocument document = ConfigDocument::parse("a: ${env:TPUDIST_TEST_UNSET}\n", "text");
  EXPECT_EQ(document.root().integer("a", 7), 7);
  EXPECT_THAT(message_of_finish(document), AllOf(HasSubstr("is not set"), Not(HasSubstr("\n"))));
}

TEST_F(ConfigSourceTest, IncludesMayBeNamedByVariables) {
  const Variable name("TPUDIST_TEST_BASE", "base");
  write("base.yaml", "a: 1\n");
  EXPECT_EQ(parse("include: ${env:TPUDIST_TEST_BASE}.yaml\n"), "{a: 1}");
}

// --- key.sub=value ---

TEST_F(ConfigSourceTest, OverridesReplaceAndAdd) {
  EXPECT_EQ(parse("a: 1\nb: {c: 2, d: {e: 3}}\n", {"a=x", "b.c=[1, 2]", "b.d={f: 4}", "g.h.i=5"}),
            "{a: x, b: {c: [1, 2], d: {f: 4}}, g: {h: {i: 5}}}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, TheLastOverrideWins) {
  EXPECT_EQ(parse("", {"a=1", "a=2"}), "{a: 2}");
}

TEST_F(ConfigSourceTest, ValuesOfOverridesAreYaml) {
  EXPECT_EQ(parse("", {"a=layout:nlp:random", "b=\"7\"", "c=x=y", "d=", "e=a b"}),
            "{a: layout:nlp:random, b: \"7\", c: x=y, d: ~, e: a b}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, OverridesReachIntoLists) {
  EXPECT_EQ(parse("a: [{b: 1}, {b: 2}]\n", {"a.1.b=3", "a.0=x"}), "{a: [x, {b: 3}]}");
  EXPECT_EQ(mistakes_, "");
}

TEST_F(ConfigSourceTest, OverridesFillEmptyValues) {
  EXPECT_EQ(parse("a:\n", {"a.b=1"}), "{a: {b: 1}}");
}

TEST_F(ConfigSourceTest, OverridesExpandVariables) {
  const Variable steps("TPUDIST_TEST_STEPS", "100");
  EXPECT_EQ(parse("", {"a=${env:TPUDIST_TEST_STEPS}"}), "{a: 100}");
}

TEST_F(ConfigSourceTest, MistakesInOverridesAreReportedTogether) {
  parse("a: 1\nb: [x]\n",
        {"a", "=1", "a..b=1", "a.b=1", "b.x=1", "b.1=2", "b.99999999999999999999999=2", "c=[1",
         "c=*x", "c={a: 1, a: 2}", "include=x.yaml", "d=1\n---\n2"});
  EXPECT_EQ(mistakes_,
            "command line: \"a\": must be key=value\n"
            "command line: \"=1\": a part of the key is empty\n"
            "command line: \"a..b=1\": a part of the key is empty\n"
            "command line: \"a.b=1\": a is not a map\n"
            "command line: \"b.x=1\": b is a list; give an index\n"
            "command line: \"b.1=2\": b has 1 items, counted from 0\n"
            "command line: \"b.99999999999999999999999=2\": b is a list; give an index\n"
            "command line: \"c=[1\": the value is not YAML; put quotes around a text with special "
            "characters\n"
            "command line: \"c=*x\": the value is not YAML; put quotes around a text with special "
            "characters\n"
            "command line: \"c={a: 1, a: 2}\": a key is given twice\n"
            "command line: \"include=x.yaml\": include works in files only\n"
            "command line: \"d=1\n---\n2\": the value is not YAML; put quotes around a text with "
            "special characters");
}

TEST_F(ConfigSourceTest, OnlyTheOverriddenKeyMovesToTheCommandLine) {
  ConfigDocument document = ConfigDocument::parse("trian: {steps: 1}\n", "text", {"trian.steps=2"});
  document.root().child("train").integer("steps", 0);
  EXPECT_EQ(message_of_finish(document),
            "text:1:1: unknown key \"trian\"; did you mean \"train\"?");
}

}  // namespace
}  // namespace tpudist
