#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/schema/collection.hpp"
#include "launch/program/command_line.hpp"

namespace tpudist {

// Prints the noise ceiling of each graph, or the reason for none, and the mean of each split.
void inspect_ceilings(const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

// Arguments of `inspect --suspects`.
struct InspectSuspectArguments {
  bool asked = false;
  std::string order = "auto";  // auto (by the collection's name), random or searched
  std::filesystem::path html;  // page of run times with filtered rows marked; empty: none
};

// Adds --suspects, --order and --html; returns --suspects. `arguments` must outlive the command.
Option add_suspect_options(Command command, InspectSuspectArguments& arguments);

// Prints the graphs whose run times look corrupted, with the evidence and the setting that would
// exclude them. Excludes nothing. The page, if requested, shows the layout collections.
void inspect_suspects(const InspectSuspectArguments& arguments,
                      const std::filesystem::path& shard_root,
                      const std::vector<Collection>& collections, bool json);

}  // namespace tpudist
