#pragma once

#include <filesystem>

namespace tpudist {

// Prints the modules in a file of HLO (protos or text). A module with configurable layouts also has
// its operations, their states and the groups that change together. Default states come from
// `assigned`, the same program after layout assignment (may be empty), else from the default run of
// a tuning file. With the folder of a run (may be empty), prints the parts of a module that lie
// outside of the run's training graphs. Throws IoError, DataError, and ConfigError if `run` holds
// no run or does not record its training graphs.
void inspect_module(const std::filesystem::path& file, const std::filesystem::path& assigned,
                    const std::filesystem::path& run, bool json);

}  // namespace tpudist
