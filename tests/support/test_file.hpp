#pragma once

namespace tpudist::test {

// Where the arguments hold `--file=tests/core/text_test.cpp`, lets only the tests of that file run; a program
// has those of a whole folder. Call it after GoogleTest is initialised. False, with a line on the standard
// error, where the program has no test of that file, or has tests in a header, which belong to no file.
bool hold_to_test_file(int argc, char** argv);

}  // namespace tpudist::test
