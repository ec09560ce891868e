#include <gmock/gmock.h>

#include "tests/support/test_file.hpp"

int main(int argc, char** argv) {
  tpudist::test::fix_rapidcheck_seed();
  ::testing::InitGoogleMock(&argc, argv);
  return tpudist::test::hold_to_test_file(argc, argv) ? RUN_ALL_TESTS() : 1;
}
