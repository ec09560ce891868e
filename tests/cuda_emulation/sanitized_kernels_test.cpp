// The same tests, built with AddressSanitizer and UndefinedBehaviorSanitizer.
#include "tests/cuda_emulation/aggregate_test.cpp"
#include "tests/cuda_emulation/dropped_rows_test.cpp"
#include "tests/cuda_emulation/emulation_test.cpp"
#include "tests/cuda_emulation/kernel_memory_test.cpp"
#include "tests/cuda_emulation/leaf_sums_test.cpp"
