#pragma once

#include <deque>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/step_times.hpp"
#include "train/loop/train_outcome.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/training_step.hpp"
#include "train/state/run_folder.hpp"

namespace tpudist {

// What a run tells while it trains: lines on the terminal, metrics.jsonl and scores.json. Only rank 0
// writes. Lines that a full disk does not take are kept and tried again with the next one,
// after a warning. Borrows all that it is made of.
class RunReport {
 public:
  RunReport(const Experiment& experiment, const RunFolder& run, JobContext& context);

  // That this process begins, or goes on, after `step`: command, version, machine and settings.
  void start(std::int64_t step);
  // Of a step that took `seconds`, where they went on this rank; advances the progress. Collective
  // where the step is logged.
  void step(const StepResult& result, const TrainingState& state, double seconds,
            const StepTimes& times);
  void evaluation(const Evaluation& evaluation, const TrainingState& state);
  // Writes scores.json, if there is anything to write. `out_of_fold`: null where nothing was predicted;
  // `parameters`: parameter_hash of the weights that scored. Collective.
  void scores(const std::optional<Evaluation>& evaluation, const std::vector<EarlyStopped>& stopped,
              const nlohmann::json& out_of_fold, std::uint64_t parameters) const;

  // Throws DiskFullError, on all ranks, when lines of metrics.jsonl still could not be written. Collective.
  void finish();

 private:
  bool root() const { return context_.world.rank() == 0; }
  void append(nlohmann::json record);
  void write_lines();

  const Experiment& experiment_;
  const RunFolder& run_;
  JobContext& context_;
  std::deque<nlohmann::json> lines_;  // that are still to be written
};

}  // namespace tpudist
