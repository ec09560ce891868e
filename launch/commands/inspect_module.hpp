#pragma once

#include <filesystem>

namespace tpudist {

// Prints what a file of HLO holds (protos or text): each module, and for one whose layouts are
// configured its operations, their states and the groups that change together. Default states come
// from `assigned`, the same program after layout assignment (may be empty), else from the default run
// of a tuning file. With the folder of a run (may be empty): what of a module lies outside of the
// graphs that it was trained on. Throws IoError, DataError, and ConfigError for what is no run or does
// not say what it saw.
void inspect_module(const std::filesystem::path& file, const std::filesystem::path& assigned,
                    const std::filesystem::path& run, bool json);

}  // namespace tpudist
