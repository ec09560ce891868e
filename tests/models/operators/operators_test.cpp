// The operators on the CPU, and on the emulated device of tests/cuda_emulation, where the kernels
// and ATen's operations run on the CPU.

#include "tests/models/operators/operators_suite.hpp"

namespace tpudist::test {

INSTANTIATE_TEST_SUITE_P(Cpu, Operators, ::testing::ValuesIn(settings({Where::cpu})));
INSTANTIATE_TEST_SUITE_P(Emulated, Operators, ::testing::ValuesIn(settings({Where::emulated})));

}  // namespace tpudist::test
