#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/program/command_line.hpp"
#include "schema/collection.hpp"

namespace tpudist {

// Prints the noise ceiling of each graph, or why it has none, and the mean of each split.
void inspect_ceilings(const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

// Arguments of `inspect --suspects`.
struct InspectSuspectArguments {
  bool asked = false;
  std::string order = "auto";  // auto (by the collection's name), random or searched
};

// Adds --suspects, which it returns, and --order. `arguments` must outlive the command.
Option add_suspect_options(Command command, InspectSuspectArguments& arguments);

// Prints the graphs whose run times look corrupted, with the evidence and the setting that would
// exclude them. It excludes nothing itself.
void inspect_suspects(const InspectSuspectArguments& arguments,
                      const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

}  // namespace tpudist
