#include "core/config/config.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ConfigDocument parse(std::string_view text) {
  return ConfigDocument::parse(text, "nlp.yaml");
}

// The message of `finish` after `read`; empty when there is none.
std::string mistakes(std::string_view text, const std::function<void(ConfigNode&)>& read) {
  ConfigDocument document = parse(text);
  ConfigNode root = document.root();
  read(root);
  return test::message_of<ConfigError>([&] { document.finish(); });
}

TEST(Config, ReadsValuesOfEveryType) {
  ConfigDocument document = parse(R"(
integer: 4e5
number: 1e-3
boolean: true
text: layout:nlp:random
quoted: "12"
digits: 12
choice: min
threads: auto
workers: 8
integers: [1, 2e1]
numbers: [.5, inf]
texts: [a, "b c", 7]
others: {a: [1, x]}
)");
  ConfigNode root = document.root();
  EXPECT_EQ(root.integer("integer", 0), 400000);
  EXPECT_EQ(root.number("number", 0), 1e-3);
  EXPECT_EQ(root.boolean("boolean", false), true);
  EXPECT_EQ(root.text("text", ""), "layout:nlp:random");
  EXPECT_EQ(root.text("quoted", ""), "12");
  EXPECT_EQ(root.text("digits", ""), "12");
  EXPECT_EQ(root.choice("choice", "keep", {"keep", "min"}), "min");
  EXPECT_EQ(root.integer_or_auto("threads", -1, {1, 64}), -1);
  EXPECT_EQ(root.integer_or_auto("workers", -1, {1, 64}), 8);
  EXPECT_THAT(root.integers("integers", {}), ElementsAre(1, 20));
  EXPECT_THAT(root.numbers("numbers", {}), ElementsAre(.5, kInfinity));
  EXPECT_THAT(root.texts("texts", {}), ElementsAre("a", "b c", "7"));
  EXPECT_EQ(root.yaml("others"), "{a: [1, x]}");
  document.finish();
}

TEST(Config, FallsBackWhereNothingIsGiven) {
  ConfigDocument document = parse("");
  ConfigNode root = document.root();
  EXPECT_EQ(root.integer("integer", -3, {0, 10}), -3);  // a fallback need not be within the limits
  EXPECT_EQ(root.number("number", 0.25), 0.25);
  EXPECT_EQ(root.boolean("boolean", true), true);
  EXPECT_EQ(root.text("text", "x"), "x");
  EXPECT_EQ(root.choice("choice", "keep", {"keep", "min"}), "keep");
  EXPECT_EQ(root.integer_or_auto("threads", -1), -1);
  EXPECT_THAT(root.integers("integers", {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(root.numbers("numbers", {}), IsEmpty());
  EXPECT_THAT(root.texts("texts", {"a"}), ElementsAre("a"));
  EXPECT_EQ(root.yaml("others"), "");
  EXPECT_EQ(root.child("child").child("of").integer("it", 5), 5);
  EXPECT_THAT(root.items("items"), IsEmpty());
  document.finish();
}

TEST(Config, TheOrderOfASetOfTextsIsNotRecorded) {
  const auto resolved = [](const char* text) {
    ConfigDocument document = parse(text);
    document.root().text_set("set", "b");
    document.finish();
    return document.resolved_yaml();
  };
  EXPECT_EQ(resolved("set: [c, a, b]"), "set: [a, b, c]\n");
  EXPECT_EQ(resolved("set: [a]"), "set: a\n");
  EXPECT_EQ(resolved("set: a"), "set: a\n");
  EXPECT_EQ(resolved(""), "set: b\n");
  EXPECT_EQ(resolved("set: []"), "set: []\n");
  EXPECT_THAT(test::message_of<ConfigError>([&] { resolved("set: [a, {x: 1}]"); }),
              HasSubstr("\"set.1\" must be a text"));
}

TEST(Config, WalksMapsAndLists) {
  ConfigDocument document =
      parse("blocks: [{kind: gat, width: 64}, {}]\nloss: {list_mle: {weight: 2}, mse: {}}\n");
  ConfigNode root = document.root();
  std::vector<ConfigNode> blocks = root.items("blocks");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].text("kind", "sage"), "gat");
  EXPECT_EQ(blocks[0].integer("width", 32), 64);
  EXPECT_EQ(blocks[1].text("kind", "sage"), "sage");
  ConfigNode loss = root.child("loss");
  EXPECT_THAT(loss.keys(), ElementsAre("list_mle", "mse"));
  for (const std::string& name : loss.keys()) loss.child(name).number("weight", 1);
  EXPECT_EQ(loss.child("list_mle").number("weight", 1), 2);
  document.finish();
}

TEST(Config, TellsWhatIsGiven) {
  ConfigDocument document = parse("a: 1\nb: [1]\nc: {}\nd:\n");
  ConfigNode root = document.root();
  EXPECT_EQ(root.kind("a"), "scalar");
  EXPECT_EQ(root.kind("b"), "list");
  EXPECT_EQ(root.kind("c"), "map");
  EXPECT_EQ(root.kind("d"), "scalar");
  EXPECT_EQ(root.kind("e"), "absent");
  EXPECT_TRUE(root.has("a"));
  EXPECT_TRUE(root.has("d"));
  EXPECT_FALSE(root.has("e"));
  EXPECT_FALSE(root.child("c").has("a"));
  EXPECT_THAT(root.keys(), ElementsAre("a", "b", "c", "d"));
  document.finish();                               // keys that were only looked at are known
  EXPECT_EQ(document.resolved_yaml(), "c: {}\n");  // but not resolved
}

TEST(Config, NamesUnknownKeysAndTheNearestKnownOne) {
  const auto read = [](ConfigNode& root) {
    root.child("batch").integer("configs", 10);
    root.child("train").integer("steps", 10);
    for (ConfigNode& block : root.items("blocks")) block.integer("width", 1);
    root.child("empty");
  };
  EXPECT_EQ(mistakes("batch:\n  slates: 4\n  cofigs: 10\n", read),
            "nlp.yaml:2:3: unknown key \"slates\" in \"batch\"; known are configs\n"
            "nlp.yaml:3:3: unknown key \"cofigs\" in \"batch\"; did you mean \"configs\"?");
  EXPECT_EQ(mistakes("bacth: {x: {y: 1}}", read),
            "nlp.yaml:1:1: unknown key \"bacth\"; did you mean \"batch\"?");
  EXPECT_EQ(mistakes("steps: 5", read),
            "nlp.yaml:1:1: unknown key \"steps\"; did you mean \"train.steps\"?");
  EXPECT_EQ(mistakes("batch: {train: 5}", read),
            "nlp.yaml:1:9: unknown key \"train\" in \"batch\"; it stands at the top level");
  EXPECT_EQ(mistakes("blocks: [{width: 1}, {with: 2}]", read),
            "nlp.yaml:1:23: unknown key \"with\" in \"blocks.1\"; did you mean \"width\"?");
  EXPECT_EQ(mistakes("empty: {zzz: 1}", read),
            "nlp.yaml:1:9: unknown key \"zzz\" in \"empty\"; it takes no keys");
}

TEST(Config, RefusesWrongTypes) {
  const auto integer = [](ConfigNode& root) { EXPECT_EQ(root.integer("a", 7), 7); };
  EXPECT_EQ(mistakes("a: ten", integer), "nlp.yaml:1:4: \"a\" must be an integer, but is \"ten\"");
  EXPECT_EQ(mistakes("a: 1.5", integer), "nlp.yaml:1:4: \"a\" must be an integer, but is \"1.5\"");
  EXPECT_EQ(mistakes("a: \"10\"", integer),
            "nlp.yaml:1:4: \"a\" must be an integer, but is the quoted text \"10\"");
  EXPECT_EQ(mistakes("a: [1]", integer), "nlp.yaml:1:4: \"a\" must be an integer, but is a list");
  EXPECT_EQ(mistakes("a: {b: 1}", integer), "nlp.yaml:1:4: \"a\" must be an integer, but is a map");
  EXPECT_EQ(mistakes("a:", integer), "nlp.yaml:1:1: \"a\" has no value");
  EXPECT_EQ(mistakes("a: ~", integer), "nlp.yaml:1:1: \"a\" has no value");
  EXPECT_EQ(mistakes("a: 1e30", integer), "nlp.yaml:1:4: \"a\" is \"1e30\", which is out of range");
}

TEST(Config, RefusesWrongTypesOfTheOtherGetters) {
  EXPECT_EQ(mistakes("a: nan", [](ConfigNode& root) { root.number("a", 1); }),
            "nlp.yaml:1:4: \"a\" must be a number, but is \"nan\"");
  EXPECT_EQ(mistakes("a: \"0.5\"", [](ConfigNode& root) { root.number("a", 1); }),
            "nlp.yaml:1:4: \"a\" must be a number, but is the quoted text \"0.5\"");
  EXPECT_EQ(mistakes("a: 1e999", [](ConfigNode& root) { root.number("a", 1); }),
            "nlp.yaml:1:4: \"a\" is \"1e999\", which is out of range");
  for (const char* word : {"yes", "True", "on", "1", "\"true\""}) {
    EXPECT_NE(
        mistakes(std::string("a: ") + word, [](ConfigNode& root) { root.boolean("a", true); }), "");
  }
  EXPECT_EQ(mistakes("a: [x]", [](ConfigNode& root) { root.text("a", ""); }),
            "nlp.yaml:1:4: \"a\" must be a text, but is a list");
  EXPECT_EQ(mistakes("a: many", [](ConfigNode& root) { root.integer_or_auto("a", -1); }),
            "nlp.yaml:1:4: \"a\" must be an integer or auto, but is \"many\"");
  EXPECT_EQ(mistakes("a: 1", [](ConfigNode& root) { root.integers("a", {}); }),
            "nlp.yaml:1:4: \"a\" must be a list, e.g. [a, b], but is \"1\"");
  EXPECT_EQ(mistakes("a: [1, x, ~, [2]]", [](ConfigNode& root) { root.numbers("a", {}); }),
            "nlp.yaml:1:8: \"a.1\" must be a number, but is \"x\"\n"
            "nlp.yaml:1:11: \"a.2\" has no value\n"
            "nlp.yaml:1:14: \"a.3\" must be a number, but is a list");
  EXPECT_EQ(mistakes("a: 1", [](ConfigNode& root) { root.child("a").integer("b", 1); }),
            "nlp.yaml:1:4: \"a\" must be a map of keys, but is \"1\"");
  EXPECT_EQ(mistakes("a:", [](ConfigNode& root) { root.child("a").integer("b", 1); }),
            "nlp.yaml:1:1: \"a\" has no value");
  EXPECT_EQ(mistakes("a: [{b: 1}, c]",
                     [](ConfigNode& root) {
                       for (ConfigNode& item : root.items("a")) item.integer("b", 1);
                     }),
            "nlp.yaml:1:13: \"a.1\" must be a map of keys, but is \"c\"");
  EXPECT_EQ(mistakes("a: {}", [](ConfigNode& root) { root.items("a"); }),
            "nlp.yaml:1:4: \"a\" must be a list, e.g. [a, b], but is a map");
}

TEST(Config, NamesTheRange) {
  const auto read = [](Limits<std::int64_t> limits) {
    return [=](ConfigNode& root) { EXPECT_EQ(root.integer("a", 7, limits), 7); };
  };
  EXPECT_EQ(mistakes("a: 0", read({1, 64})),
            "nlp.yaml:1:4: \"a\" must be between 1 and 64, but is \"0\"");
  EXPECT_EQ(mistakes("a: 0", read({.min = 1})),
            "nlp.yaml:1:4: \"a\" must be at least 1, but is \"0\"");
  EXPECT_EQ(mistakes("a: 9", read({.max = 8})),
            "nlp.yaml:1:4: \"a\" must be at most 8, but is \"9\"");
  EXPECT_EQ(mistakes("a: 1e30", read({.min = 1})),
            "nlp.yaml:1:4: \"a\" must be at least 1, but is \"1e30\"");
}

TEST(Config, SizesTakeUnitsOfBytes) {
  constexpr Limits<std::int64_t> kSize{1 << 20, std::int64_t{1} << 40};
  ConfigDocument document = parse("a: 4GB\nb: 512 MiB\nc: 1048576\n");
  ConfigNode root = document.root();
  EXPECT_EQ(root.bytes("a", 1 << 20, kSize), 4'000'000'000);
  EXPECT_EQ(root.bytes("b", 1 << 20, kSize), 512 << 20);
  EXPECT_EQ(root.bytes("c", 1 << 21, kSize), 1 << 20);
  EXPECT_EQ(document.resolved_yaml(), "a: 4000000000\nb: 536870912\nc: 1048576\n");
  EXPECT_EQ(mistakes("a: 4G\nb: 4kB\nc: 2MB",
                     [&](ConfigNode& node) {
                       node.bytes("a", 1 << 20, kSize);
                       node.bytes("b", 1 << 20, kSize);
                       node.integer("c", 1 << 20, kSize);  // large, but no bytes
                     }),
            "nlp.yaml:1:4: \"a\" must be a number of bytes, e.g. 4GB or 512MiB, but is \"4G\"\n"
            "nlp.yaml:2:4: \"b\" must be between 1048576 and 1099511627776, but is \"4kB\"\n"
            "nlp.yaml:3:4: \"c\" must be an integer, but is \"2MB\"");
}

TEST(Config, LimitsNumbers) {
  const auto read = [](Limits<double> limits) {
    return [=](ConfigNode& root) { root.number("a", 0.5, limits); };
  };
  EXPECT_EQ(mistakes("a: 1.5", read({0, 1})),
            "nlp.yaml:1:4: \"a\" must be between 0 and 1, but is \"1.5\"");
  EXPECT_EQ(mistakes("a: 1", read({0, 1})), "");
  EXPECT_EQ(mistakes("a: inf", read({.min = 0})), "");
  EXPECT_EQ(mistakes("a: inf", read({0, 1e9})),
            "nlp.yaml:1:4: \"a\" must be between 0 and 1000000000, but is \"inf\"");
}

TEST(Config, NamesTheChoices) {
  const auto read = [](ConfigNode& root) {
    EXPECT_EQ(root.choice("reduce", "tree", {"tree", "nccl"}), "tree");
  };
  EXPECT_EQ(
      mistakes("reduce: tre", read),
      "nlp.yaml:1:9: \"reduce\" must be one of tree, nccl, but is \"tre\"; did you mean \"tree\"?");
  EXPECT_EQ(mistakes("reduce: ring", read),
            "nlp.yaml:1:9: \"reduce\" must be one of tree, nccl, but is \"ring\"");
  EXPECT_EQ(mistakes("reduce: [tree]", read),
            "nlp.yaml:1:9: \"reduce\" must be one of tree, nccl, but is a list");
}

TEST(Config, CallsAGpuCuda) {
  EXPECT_EQ(mistakes("device: gpu",
                     [](ConfigNode& root) {
                       root.choice("device", "auto", {"auto", "cpu", "cuda"});
                     }),
            "nlp.yaml:1:9: \"device\" must be one of auto, cpu, cuda, but is \"gpu\"; did you mean "
            "\"cuda\"?");
}

TEST(Config, RequiresKeys) {
  const auto read = [](ConfigNode& root) {
    ConfigNode data = root.child("data");
    data.require("shards");
    data.text("shards", "");
    root.child("absent").child("map").require("key");
  };
  EXPECT_EQ(mistakes("name: x\ndata:\n  collection: y\n",
                     [&](ConfigNode& root) {
                       read(root);
                       root.text("name", "");
                       root.child("data").text("collection", "");
                     }),
            "nlp.yaml:1:1: the key \"key\" is missing in \"absent.map\"\n"
            "nlp.yaml:3:3: the key \"shards\" is missing in \"data\"");
  EXPECT_EQ(mistakes("data: {shards: x}\nabsent: {map: {key: 1}}", read), "");
}

TEST(Config, TakesTheReadersMistakes) {
  EXPECT_EQ(mistakes("a:\n  b: 1\n",
                     [](ConfigNode& root) {
                       ConfigNode a = root.child("a");
                       a.integer("b", 0);
                       a.mistake("b", "does not go with c");
                       a.mistake("c", "is needed as well");
                     }),
            "nlp.yaml:2:3: \"a.b\" does not go with c\n"
            "nlp.yaml:2:3: \"a.c\" is needed as well");
}

TEST(Config, ReportsEverythingAtOnce) {
  EXPECT_EQ(mistakes("b: x\na: y\nz: 1\na: 2\n",
                     [](ConfigNode& root) {
                       root.integer("a", 0);
                       root.number("b", 0);
                     }),
            "nlp.yaml:1:4: \"b\" must be a number, but is \"x\"\n"
            "nlp.yaml:2:4: \"a\" must be an integer, but is \"y\"\n"
            "nlp.yaml:3:1: unknown key \"z\"; known are a, b\n"
            "nlp.yaml:4:1: key \"a\" is given twice, first in line 2");
}

TEST(Config, FinishRepeatsItself) {
  ConfigDocument document = parse("a: 1");
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(test::message_of<ConfigError>([&] { document.finish(); }),
              "nlp.yaml:1:1: unknown key \"a\"; it takes no keys");
}

TEST(Config, RefusesWhatIsNoMap) {
  EXPECT_THROW(parse("[1, 2]"), ConfigError);
  EXPECT_THROW(parse("text"), ConfigError);
}

TEST(Config, ShowsLongValuesShortened) {
  const std::string text = "a: " + std::string(100'000, 'x');
  EXPECT_LT(mistakes(text, [](ConfigNode& root) { root.integer("a", 0); }).size(), 200u);
}

// Reads the configuration that the tests below print.
void read_example(ConfigDocument& document) {
  ConfigNode root = document.root();
  root.text("name", "run");
  ConfigNode data = root.child("data");
  data.text("collection", "layout:nlp:random");
  data.texts("exclude", {});
  ConfigNode schedule = root.child("schedule");
  schedule.numbers("at", {0.5, 0.75});
  schedule.number("factor", 0.1);
  root.integer_or_auto("threads", -1);
  root.boolean("resume", false);
  for (ConfigNode& block : root.items("blocks")) block.integer("width", 64);
  ConfigNode loss = root.child("loss");
  for (const std::string& name : loss.keys()) loss.child(name);
  root.child("nothing");
  document.finish();
}

TEST(Config, PrintsItselfAsYaml) {
  ConfigDocument document =
      parse("loss: {mse: {}}\nblocks: [{width: 32}, {}]\nname: 'x: y'\nschedule: {at: [1e-1]}\n");
  read_example(document);
  EXPECT_EQ(document.resolved_yaml(), R"(name: "x: y"
data:
  collection: layout:nlp:random
  exclude: []
schedule:
  at: [0.1]
  factor: 0.1
threads: auto
resume: false
blocks:
  - width: 32
  - width: 64
loss:
  mse: {}
)");
  EXPECT_EQ(document.hash(), hash64(document.resolved_yaml()));
}

TEST(Config, PrintsNumbersThatEveryReaderOfYamlTakesForNumbers) {
  ConfigDocument document = parse("eps: 1e-8\nabove: inf\nat: [1e-9, 2]\n");
  ConfigNode root = document.root();
  root.number("eps", 1);
  root.number("above", 1);
  root.numbers("at", {});
  EXPECT_EQ(document.resolved_yaml(), "eps: 1.0e-08\nabove: .inf\nat: [1.0e-09, 2]\n");
  EXPECT_EQ(document.entries()[0].value, "1e-08");  // as hashes of earlier versions have it
}

TEST(Config, PrintsItselfAsATable) {
  ConfigDocument document = parse(
      "loss: {mse: {}}\nblocks: [{width: 32}, {}]\nschedule: {at: [1e-1], factor: 0.1}\nthreads: "
      "2\n");
  read_example(document);
  EXPECT_EQ(format_entries(document.entries()), R"(name              run
data.collection   layout:nlp:random
data.exclude      []
schedule.at       [0.1] *
schedule.factor   0.1
threads           2 *
resume            false
blocks.0.width    32 *
blocks.1.width    64
loss.mse          {} *
)");
}

TEST(Config, AnEmptyOneIsAMap) {
  ConfigDocument document = parse("");
  document.finish();
  EXPECT_EQ(document.resolved_yaml(), "{}\n");
  EXPECT_EQ(format_entries(document.entries()), "");
}

TEST(Config, TheFirstReadingOfAKeyIsKept) {
  ConfigDocument document = parse("");
  ConfigNode root = document.root();
  root.integer("a", 1);
  root.integer("b", 2);
  root.integer("a", 3);
  EXPECT_EQ(document.resolved_yaml(), "a: 1\nb: 2\n");
}

TEST(Config, NodesSurviveAMoveOfTheDocument) {
  ConfigDocument document = parse("a: {b: 1}");
  ConfigNode a = document.root().child("a");
  const ConfigDocument moved = std::move(document);
  EXPECT_EQ(a.integer("b", 0), 1);
  EXPECT_EQ(moved.resolved_yaml(), "a:\n  b: 1\n");
}

}  // namespace
}  // namespace tpudist
