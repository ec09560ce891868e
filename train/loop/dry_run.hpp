#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "dist/health/job_context.hpp"
#include "experiment/experiment.hpp"
#include "train/loop/evaluation_forecast.hpp"

namespace tpudist {

// The plan of a training, made without training.
struct WorkPlan {
  std::string text;  // data, units, memory, evaluations, and each rank's share in the first steps
  EvaluationCosts evaluations;
  // Work of the planned steps, mean per step, in floating-point operations
  // (UnitEstimate::step_work).
  double work_of_first_rank = 0, work_of_slowest_rank = 0;
};

// Plans for `ranks` ranks. Builds the plans of the first steps. Not collective: runs only on the
// threads of this rank. Throws what opening and planning the data throws.
WorkPlan plan_work(const Experiment& experiment, int ranks, JobContext& context);

// `train --dry-run`: on rank 0 `print`s that plan, and then how long a training by `ranks` such
// ranks takes. To measure it, all ranks of the context take a few steps on the real data. Refuses
// what a training in the folder `run` would refuse, and with `resume` goes on from its checkpoint.
// Writes nothing. Collective.
void dry_run(const Experiment& experiment, const std::filesystem::path& run, bool resume, int ranks,
             JobContext& context, const std::function<void(std::string_view)>& print);

}  // namespace tpudist
