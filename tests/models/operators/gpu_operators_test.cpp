// The operators on a real GPU.

#include "tests/models/operators/operators_suite.hpp"

namespace tpudist::test {

INSTANTIATE_TEST_SUITE_P(OnGpu, Operators, ::testing::ValuesIn(settings({Where::gpu})));

}  // namespace tpudist::test
