#include "core/escape_glob.hpp"

#include <gtest/gtest.h>

#include "core/text.hpp"

namespace tpudist {
namespace {

TEST(ExactPattern, MatchesItsTextAndNoOther) {
  for (const std::string text : {"resnet50.4x4.fp16", "a*b", "what?", "[a-z]", "a]b", "[", ""}) {
    EXPECT_TRUE(glob_match(escape_glob(text), text)) << text;
    EXPECT_FALSE(glob_match(escape_glob(text), text + "x")) << text;
  }
  EXPECT_FALSE(glob_match(escape_glob("a*b"), "axb"));
  EXPECT_FALSE(glob_match(escape_glob("[a-z]"), "b"));
}

}  // namespace
}  // namespace tpudist
