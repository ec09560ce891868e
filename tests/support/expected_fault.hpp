#pragma once

#include <gtest/gtest.h>

extern "C" void __sanitizer_set_report_path(const char* path) __attribute__((weak));

namespace tpudist::test {

// From here on, sanitizers of this process report to standard error, not to a file that counts as a
// fault of the test (cmake/TpudistSanitizerReports.cmake).
inline void keep_faults_out_of_reports() {
  if (__sanitizer_set_report_path) __sanitizer_set_report_path("stderr");
}

}  // namespace tpudist::test

// EXPECT_DEATH for a fault that sanitizers see, too, such as an access out of bounds.
#define TPUDIST_EXPECT_FAULT(statement, matcher)       \
  EXPECT_DEATH(                                        \
      {                                                \
        ::tpudist::test::keep_faults_out_of_reports(); \
        statement;                                     \
      },                                               \
      matcher)
