// The same tests, built with AddressSanitizer and UndefinedBehaviorSanitizer.
#include "tests/cuda_emulation/aggregate_test.cpp"
#include "tests/cuda_emulation/dropped_rows_test.cpp"
#include "tests/cuda_emulation/emulation_test.cpp"
#include "tests/cuda_emulation/gather_rows_test.cpp"
#include "tests/cuda_emulation/group_rows_test.cpp"
#include "tests/cuda_emulation/leaf_sums_test.cpp"
#include "tests/cuda_emulation/pooled_rows_test.cpp"
