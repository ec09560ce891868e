#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/program/command_line.hpp"

namespace tpudist {

// Arguments of `inspect --folds` and `inspect --fold-file`.
struct InspectFoldArguments {
  int folds = 0;               // 0: as many as the fold file has
  std::string over = "train";  // or "train+valid": ensemble.fold_over
  std::uint64_t seed = 1;
  std::filesystem::path file, output;  // a fold file to read, and one to write

  bool asked() const { return folds > 0 || !file.empty(); }
};

// Adds --folds, --over, --seed, --fold-file, --write-folds. `arguments` must outlive the command.
void add_fold_options(Command command, InspectFoldArguments& arguments);

// Prints the folds of the graphs of all collections; collections that are split together share a
// table. Writes the fold file if one is requested. Throws what split_into_folds throws, and
// ConfigError when there is more than one table to write.
void inspect_folds(const InspectFoldArguments& arguments, const std::filesystem::path& shards,
                   const std::vector<std::string>& collections, bool json);

}  // namespace tpudist
