#pragma once

#include <cstdlib>

namespace tpudist::test {

// With the argument `--file=tests/core/text_test.cpp`, runs only the tests of that file; a program
// has the tests of a whole folder. Call after GoogleTest is initialised. Returns false, with a line
// on standard error, if the file has no test, or if a header has tests, which belong to no file.
bool hold_to_test_file(int argc, char** argv);

// Gives RapidCheck a fixed seed, so that a test suite that passed passes again. A value of
// RC_PARAMS in the environment wins, e.g. RC_PARAMS="seed=42 max_success=10000".
inline void fix_rapidcheck_seed() {
  setenv("RC_PARAMS", "seed=20240229", /*overwrite=*/0);
}

}  // namespace tpudist::test
