#include "tests/support/test_file.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace tpudist::test {

bool hold_to_test_file(int argc, char** argv) {
  constexpr std::string_view kOption = "--file=";
  std::string file;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kOption)) file = argument.substr(kOption.size());
  }

  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  if (file.empty()) return all.total_test_count() > 0;
  std::string names;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with("_test.cpp")) {
        std::fprintf(stderr, "%s has tests, which no file of this program runs\n", test.file());
        return false;
      }
      if (!std::string_view(test.file()).ends_with("/" + file)) continue;
      names += std::string(names.empty() ? "" : ":") + suite.name() + "." + test.name();
    }
  }
  if (names.empty()) std::fprintf(stderr, "no test of %s is in this program\n", file.c_str());
  GTEST_FLAG_SET(filter, names);
  return !names.empty();
}

}  // namespace tpudist::test
