#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/schema/collection.hpp"
#include "launch/program/command_line.hpp"

// What `tpudist inspect` shows with --folds, of a file, with --ceiling and with --suspects.

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

// Prints the modules in a file of HLO. A module with configurable layouts also has its operations,
// their states and the groups that change together. Default states come from `assigned`, the same
// program after layout assignment (may be empty), else from the default run of a tuning file. With
// the folder of a run (may be empty), prints the parts of a module that lie outside of the run's
// training graphs. Throws IoError, DataError, and ConfigError if `run` holds no run or does not
// record its training graphs.
void inspect_module(const std::filesystem::path& file, const std::filesystem::path& assigned,
                    const std::filesystem::path& run, bool json);

// Prints the noise ceiling of each graph, or the reason for none, and the mean of each split.
void inspect_ceilings(const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

// Arguments of `inspect --suspects`.
struct InspectSuspectArguments {
  bool asked = false;
  std::string order = "auto";  // auto (by the collection's name), random or searched
};

// Adds --suspects and --order; returns --suspects. `arguments` must outlive the command.
Option add_suspect_options(Command command, InspectSuspectArguments& arguments);

// Prints the graphs whose run times look corrupted, with the evidence and the setting that would
// exclude them. Excludes nothing.
void inspect_suspects(const InspectSuspectArguments& arguments,
                      const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

}  // namespace tpudist
