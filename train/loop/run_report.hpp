#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dist/health/job_context.hpp"
#include "results/records/learning_curves.hpp"
#include "results/records/run_folder.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The output of a run while it trains: lines on the terminal, metrics.jsonl and scores.json. Only
// rank 0 writes. Lines that cannot be written (full disk, moved folder) are kept, with a warning,
// and written with a later line. Borrows all arguments.
class RunReport {
 public:
  RunReport(const Experiment& experiment, const RunFolder& run, JobContext& context);

  // Records that this process begins or continues after `step`, with command, version, machine and
  // settings. Warns if another program or kind of processor took the steps before.
  void start(std::int64_t step);
  // Reports a step that took `seconds`, with its parts on this rank; advances the progress.
  // Collective if the step is logged.
  void step(const StepResult& result, const TrainingState& state, double seconds,
            const StepTimes& times);
  void evaluation(const Evaluation& evaluation, const TrainingState& state);
  // Writes scores.json, if there are scores. `out_of_fold`: null if nothing was predicted;
  // `parameters`: parameter_hash of the weights used for scoring; `init`: hash of the weights at
  // train.init_from. Collective.
  void scores(const std::optional<Evaluation>& evaluation, const std::vector<EarlyStopped>& stopped,
              const nlohmann::json& out_of_fold, std::uint64_t parameters,
              std::optional<std::uint64_t> init) const;

  // Writes the lines of metrics.jsonl that could not be written before, or warns of their loss.
  void finish();

 private:
  bool root() const { return context_.world.rank() == 0; }
  void warn_of_other_program(const RunStart& now) const;
  void append(nlohmann::json record);
  void write_lines();

  const Experiment& experiment_;
  const RunFolder& run_;
  JobContext& context_;
  std::deque<nlohmann::json> lines_;  // still to be written
};

// A table of the network's layers, one line each: the parameters in one member, and the state after
// the layer as rows x channels in the plan chosen for a unit. The encoder and layers with plan
// layers also have the sharing, e.g. "rows 9 % -> 48 %": rows of the refined plan before and after
// the layer, relative to the dense plan.
std::vector<std::string> layer_lines(const TrainingSetup& setup, const PlanComparison& plans);

}  // namespace tpudist
