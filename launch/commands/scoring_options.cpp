#include "launch/commands/scoring_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/loading/dataset.hpp"

namespace tpudist {

JudgementOptions JudgementArguments::options() const {
  if (!(temperature > 0) || !std::isfinite(temperature))
    throw ConfigError(fmt::format(
        "--temperature {} cannot scale scores; give a number above 0, such as 1", temperature));
  return {.combination = {combination_rule(rule), temperature},
          .keep_all = keep_all,
          .least_columns = least};
}

std::string JudgementArguments::to_text() const {
  return fmt::format("{} {} {}", rule, temperature, keep_all ? "keep" : "reject");
}

void add_judgement_options(Command command, JudgementArguments& arguments) {
  command
      .add_option("--combine", arguments.rule,
                  "How members become one ranking: mean, z_score, min_max, rank_mean, borda, "
                  "reciprocal_rank or softmax")
      .show_default();
  command.add_option("--temperature", arguments.temperature, "Of --combine softmax; above 0")
      .show_default();
  command.add_flag("--keep-all", arguments.keep_all, "Combine members that the rule rejects, too");
}

JobOptions ScoringArguments::job_options(std::vector<AgreedValue> agreed,
                                         std::span<const TrainedRun> runs) const {
  agreed.push_back({"the number of runs", std::to_string(runs.size())});
  for (const TrainedRun& run : runs)
    std::ranges::move(values_to_agree(run), std::back_inserter(agreed));
  const DistConfig& dist = runs.front().experiment.dist;
  const bool bf16 = std::ranges::any_of(runs, [](const TrainedRun& run) {
    return run.experiment.network.precision == Precision::bf16;
  });
  return {device,       threads,          dist.mixed_cpus, bf16 ? Precision::bf16 : Precision::fp32,
          dist.timeout, std::move(agreed)};
}

TrainedRun ScoringArguments::open(const std::filesystem::path& run) const {
  return open_run(run, checkpoint, weights == "raw" ? Weights::raw : Weights::averaged);
}

void ScoringArguments::warn_of_chosen_scores(std::string_view split) const {
  if (checkpoint != "best" || split != "valid") return;
  spdlog::warn(
      "--checkpoint best was chosen by its score on the validation split: the scores there are "
      "optimistic");
}

void ScoringArguments::warn_of_other_graphs(const TrainedRun& run) const {
  if (shards.empty()) return;
  DatasetOptions options = run.experiment.training_data();
  options.shards = shards;
  try {
    if (hash_selection(options, select_graphs(options)) == run.selection_hash) return;
  } catch (const Error&) {  // it has none of them
  }
  spdlog::warn("--data {}: its training graphs are not those that {} was trained on",
               shards.string(), run.path.string());
}

void add_checkpoint_options(Command command, ScoringArguments& arguments) {
  command
      .add_option("--checkpoint", arguments.checkpoint,
                  "last, best (by the validation score of the ensemble) or a step")
      .offers({"last", "best", "STEP"})
      .show_default();
  command
      .add_option("--weights", arguments.weights,
                  "Of runs with train.average: averaged, or raw as the last step left them")
      .one_of({"averaged", "raw"})
      .show_default();
}

void add_run_options(Command command, ScoringArguments& arguments) {
  add_checkpoint_options(command, arguments);
  command.add_option("--device", arguments.device, "auto, cpu or cuda")
      .one_of({"auto", "cpu", "cuda"})
      .show_default();
  command
      .add_option("--threads", arguments.threads,
                  "Threads of a rank (default: cores / ranks on the node)")
      .in_range(1, 1024);
}

void add_scoring_options(Command command, ScoringArguments& arguments) {
  command.add_option("--data", arguments.shards, "Folder of the shards (default: as in training)");
  add_run_options(command, arguments);
}

}  // namespace tpudist
