#pragma once

namespace tpudist::test {

// With the argument `--file=tests/core/text_test.cpp`, runs only the tests of that file; a program
// has the tests of a whole folder. Call after GoogleTest is initialised. Returns false, with a line
// on standard error, if the file has no test, or if a header has tests, which belong to no file.
bool hold_to_test_file(int argc, char** argv);

}  // namespace tpudist::test
