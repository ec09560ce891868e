#include <gmock/gmock.h>

#include "tests/support/test_settings.hpp"

int main(int argc, char** argv) {
  tpudist::testing::fix_rapidcheck_seed();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
