#include "core/text.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/text_table.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;

TEST(EditDistance, CountsInsertionsRemovalsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("cofigs", "configs"), 1u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // a swapped pair is not touched again
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndBounded, (const std::string& a, const std::string& b)) {
  const std::size_t distance = edit_distance(a, b);
  RC_ASSERT(distance == edit_distance(b, a));
  RC_ASSERT(distance <= std::max(a.size(), b.size()));
  RC_ASSERT((distance == 0) == (a == b));
}

TEST(NearestOf, FindsWhatWasMeant) {
  const std::vector<std::string> keys = {"slates", "configs", "order"};
  EXPECT_EQ(nearest_of("cofigs", keys), "configs");
  EXPECT_EQ(nearest_of("ordre", keys), "order");
  EXPECT_EQ(nearest_of("config", keys), "configs");
  EXPECT_EQ(nearest_of("lat", keys), "slates");
  using Names = std::vector<std::string>;
  EXPECT_EQ(near_names("xla", Names({"tile:xla", "layout:xla:random", "layout:nlp:random"})),
            Names({"tile:xla", "layout:xla:random"}));
  EXPECT_EQ(near_names("til:xla", Names({"tile:xla", "layout:xla:random"})), Names({"tile:xla"}));
  EXPECT_EQ(near_names("zzz", Names({"tile:xla"})), Names());
  EXPECT_EQ(nearest_of("optimizer", keys), "");
  EXPECT_EQ(nearest_of("", keys), "");
  EXPECT_EQ(nearest_of("x", std::vector<std::string>{"y"}), "");  // nothing in common
  EXPECT_EQ(nearest_of("lr", std::vector<std::string>{"l", "lrs"}), "l");
}

TEST(GlobMatch, KnowsItsWildcards) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("resnet*", "resnet50.4x4.fp16"));
  EXPECT_FALSE(glob_match("resnet*", "a_resnet50"));
  EXPECT_TRUE(glob_match("*.fp16", "resnet50.4x4.fp16"));
  EXPECT_TRUE(glob_match("*x*.*16", "resnet50.4x4.fp16"));
  EXPECT_FALSE(glob_match("*x*.*32", "resnet50.4x4.fp16"));
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_TRUE(glob_match("**a**", "bab"));
  EXPECT_TRUE(glob_match("a/*", "a/b/c"));
}

TEST(GlobMatch, KnowsItsSets) {
  EXPECT_TRUE(glob_match("v[123]", "v2"));
  EXPECT_FALSE(glob_match("v[123]", "v4"));
  EXPECT_TRUE(glob_match("v[1-3]x", "v2x"));
  EXPECT_FALSE(glob_match("v[!1-3]", "v2"));
  EXPECT_TRUE(glob_match("v[^1-3]", "v4"));
  EXPECT_TRUE(glob_match("[]a]", "]"));
  EXPECT_TRUE(glob_match("[a-]", "-"));
  EXPECT_TRUE(glob_match("*[0-9]", "abc7"));
  EXPECT_TRUE(glob_match("[", "["));
  EXPECT_TRUE(glob_match("a[b", "a[b"));
  EXPECT_FALSE(glob_match("[a", "a"));
}

TEST(GlobMatch, DoesNotBlowUp) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(5000, 'a')));
}

// The definition, as a slow recursion, for patterns without sets.
bool matches_by_definition(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return matches_by_definition(pattern.substr(1), text) ||
           (!text.empty() && matches_by_definition(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         matches_by_definition(pattern.substr(1), text.substr(1));
}

RC_GTEST_PROP(GlobMatch, FollowsItsDefinition, ()) {
  const auto pattern =
      *rc::gen::resize(10, rc::gen::container<std::string>(rc::gen::element('a', 'b', '?', '*')));
  const auto text =
      *rc::gen::resize(14, rc::gen::container<std::string>(rc::gen::element('a', 'b')));
  RC_ASSERT(glob_match(pattern, text) == matches_by_definition(pattern, text));
}

TEST(GlobMatchAny, NeedsOneMatch) {
  const std::vector<std::string> patterns = {"a*", "*b"};
  EXPECT_TRUE(glob_match_any(patterns, "xb"));
  EXPECT_FALSE(glob_match_any(patterns, "x"));
  EXPECT_FALSE(glob_match_any({}, "x"));
}

TEST(Split, KeepsEmptyPieces) {
  EXPECT_THAT(split("a.b.c", '.'), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("", '.'), ElementsAre(""));
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
}

RC_GTEST_PROP(Split, IsUndoneByJoin, (const std::string& text)) {
  RC_ASSERT(join(split(text, 'a'), "a") == text);
}

TEST(Trim, TakesBothEnds) {
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(IsUtf8, RefusesWhatIsNot) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("abc \u00e9 \u20ac \U0001F600 \U0010FFFF"));
  EXPECT_FALSE(is_utf8("\x80"));
  EXPECT_FALSE(is_utf8("\xC3"));              // cut short
  EXPECT_FALSE(is_utf8("\xC3("));             // no continuation
  EXPECT_FALSE(is_utf8("\xC0\x80"));          // overlong
  EXPECT_FALSE(is_utf8("\xE0\x80\x80"));      // overlong
  EXPECT_FALSE(is_utf8("\xF0\x80\x80\x80"));  // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // beyond Unicode
  EXPECT_FALSE(is_utf8("\xFF"));
}

TEST(ExactPattern, MatchesItsTextAndNoOther) {
  for (const std::string text : {"resnet50.4x4.fp16", "a*b", "what?", "[a-z]", "a]b", "[", ""}) {
    EXPECT_TRUE(glob_match(escape_glob(text), text)) << text;
    EXPECT_FALSE(glob_match(escape_glob(text), text + "x")) << text;
  }
  EXPECT_FALSE(glob_match(escape_glob("a*b"), "axb"));
  EXPECT_FALSE(glob_match(escape_glob("[a-z]"), "b"));
}

TEST(FirstOf, SaysThatThereAreMore) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(first_of(names, 3), "a, b, c");
  EXPECT_EQ(first_of(names, 2), "a, b, ...");
}

TEST(Printable, KeepsWhatCanBeShown) {
  const std::string shown = "a ~ \xc3\xa4 \xe2\x80\xa6 \xe6\x97\xa5 \xf0\x9f\x99\x82";
  EXPECT_EQ(printable(shown), shown);
  EXPECT_EQ(printable("a\nb\tc\r", "\n\t"), "a\nb\tc?");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ReplacesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m\a\b\x7f"), "?[31mred?[0m???");
  EXPECT_EQ(printable({"a\0b", 3}), "a?b");
  EXPECT_EQ(printable("a\nb\r\tc"), "a?b??c");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\x85"),
            "?31m?");  // C1
  for (const char* mark :
       {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa",
        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"})
    EXPECT_EQ(printable(mark), "?");
}

TEST(Printable, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m \xff\xfe \xc3"),
            "?31m ?? ?");
  EXPECT_EQ(printable("\xe2\x80"), "??");
  EXPECT_EQ(printable("\xc0\x9b \xed\xa0\x80"), "?? ???");
}

TEST(CsvField, IsQuotedWhereItMust) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"");
}

TEST(CsvField, IsNoFormula) {
  EXPECT_EQ(csv_field("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  EXPECT_EQ(csv_field("@SUM(1,2)"), "\"'@SUM(1,2)\"");
  EXPECT_EQ(csv_field("\t=1"), "'\t=1");
  EXPECT_EQ(csv_field("-1+cmd|' /C calc'!A0"), "'-1+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("+SUM(1)"), "'+SUM(1)");
  for (const char* number : {"-0.25", "+1e-3", "-0.01 to 0.02", "-", ""})
    EXPECT_EQ(csv_field(number), number);
}

TEST(TextTable, TextIsAsWideAsItsWidestCell) {
  TextTable table({"graph", right("configs", 9), right("score"), "state"});
  table.rows = {{"a", 12345, 0.123456, "ready"},
                {"a long name", 1, std::nan(""), ""},
                {"mean", "", TableCell(-2.5, "{:+.1f} %")}};
  EXPECT_EQ(table.to_text(),
            "graph          configs   score  state\n"
            "a                12345  0.1235  ready\n"
            "a long name          1       -\n"
            "mean                    -2.5 %\n");
}

TEST(TextTable, AHeaderNeedsANameAndTheFirstColumnNoGap) {
  const TextTable table{{TableColumn("", 0, 9), right("", 3, 1)},
                        {{"free", 7}, {"locks", TableCell(std::optional<double>())}}};
  EXPECT_EQ(table.to_text(2), "  free    7\n  locks   -\n");
  EXPECT_EQ((TextTable{{"a", right("b", 3)}}).to_text(), "a    b\n");
}

TEST(TextTable, CsvIsExactAndQuoted) {
  const TextTable table{{"name", "a,b"},
                        {{"<b>\"x\"</b>", 0.123456789},
                         {"line\nend", std::nan("")},
                         {"many", TableCell::count(12345)}}};
  EXPECT_EQ(table.to_csv(),
            "name,\"a,b\"\n\"<b>\"\"x\"\"</b>\",0.123456789\n\"line\nend\",\nmany,12345\n");
}

TEST(TextTable, CsvHasNoFormulas) {
  const TextTable table{{"=a"}, {{"=HYPERLINK(1)"}, {-0.5}}};
  EXPECT_EQ(table.to_csv(), "'=a\n'=HYPERLINK(1)\n-0.5\n");
}

}  // namespace
}  // namespace tpudist
