#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/program/command_line.hpp"
#include "launch/program/job.hpp"
#include "results/scores/judgement.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist {

// The options of all commands that score trained runs.
struct ScoringArguments {
  std::filesystem::path shards;  // empty: as in training
  std::string device = "auto", checkpoint = "last";
  std::string weights = "averaged";
  int threads = 0;  // of a rank; 0 = the node's cores / ranks on the node

  // Options of a job that scores these runs. `agreed`: further values that ranks must agree on.
  JobOptions job_options(std::vector<AgreedValue> agreed, std::span<const TrainedRun> runs) const;
  // Opens the run with the requested checkpoint and weights.
  TrainedRun open(const std::filesystem::path& run) const;
  // Warns if the scores of this split are biased because they chose the checkpoint.
  void warn_of_chosen_scores(std::string_view split) const;
  // Warns if --data names shards with other training graphs than those of the run.
  void warn_of_other_graphs(const TrainedRun& run) const;
};

// The options of commands that combine several members into one ranking.
struct JudgementArguments {
  std::string rule = "z_score";
  double temperature = 1;
  bool keep_all = false;
  int least = 0;  // members that must be left; 0: all inputs must be there

  // Throws ConfigError for an unknown rule, and for a temperature that is not above 0 and finite.
  JudgementOptions options() const;
  // All values as one text, which must be equal on all ranks.
  std::string to_text() const;
};

// `arguments` holds the defaults and must outlive the command.

// Adds --checkpoint (find_checkpoint) and --weights.
void add_checkpoint_options(Command command, ScoringArguments& arguments);

// Adds the options of add_checkpoint_options, --device and --threads.
void add_run_options(Command command, ScoringArguments& arguments);

// Adds --data and the options of add_run_options.
void add_scoring_options(Command command, ScoringArguments& arguments);

// Adds --combine, --temperature and --keep-all.
void add_judgement_options(Command command, JudgementArguments& arguments);

}  // namespace tpudist
