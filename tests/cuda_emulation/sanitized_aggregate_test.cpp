// The same tests, built with AddressSanitizer and UndefinedBehaviorSanitizer.
#include "tests/cuda_emulation/aggregate_test.cpp"
#include "tests/cuda_emulation/emulation_test.cpp"
