#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "train/scoring/inference.hpp"

namespace CLI {
class App;
}

namespace tpudist {

// What all commands that score trained runs take.
struct ScoringArguments {
  std::filesystem::path shards;  // empty: as in training
  std::string device = "auto", checkpoint = "last";
  std::string weights = "averaged";
  int threads = 0;  // of a rank; 0 = the node's cores / ranks on the node

  // The run with the checkpoint and the weights asked for.
  TrainedRun open(const std::filesystem::path& run) const;
  // A warning where the scores of this split are too good because they chose the checkpoint.
  void warn_of_chosen_scores(std::string_view split) const;
};

// Adds --data, --checkpoint (find_checkpoint), --weights, --device and --threads. `arguments` hold
// the defaults and must outlive the command.
void add_scoring_options(CLI::App& command, ScoringArguments& arguments);

}  // namespace tpudist
