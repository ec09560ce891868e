#pragma once

#include <filesystem>

namespace tpudist {

// Prints what a file of HLO holds (protos or text): each module, and for one whose layouts are
// configured its operations, their states and the groups that change together. Default states come
// from `assigned`, the same program after layout assignment (may be empty), else from the default run
// of a tuning file. Throws IoError and DataError.
void inspect_module(const std::filesystem::path& file, const std::filesystem::path& assigned,
                    bool json);

}  // namespace tpudist
