#pragma once

#include <filesystem>

namespace tpudist::test {

// The root of the sources that the tests were built from.
std::filesystem::path source_folder();

// The program `tpudist` of the same build; exists in builds with LibTorch.
std::filesystem::path program();

}  // namespace tpudist::test
