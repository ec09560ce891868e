#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/evaluation_forecast.hpp"

namespace tpudist {

// What is planned without training.
struct WorkPlan {
  std::string
      text;  // data, units, memory, evaluations, and the share of each rank in the first steps
  EvaluationCosts evaluations;
  // Of a mean step, among those planned, in floating-point operations (UnitEstimate::step_work).
  double work_of_first_rank = 0, work_of_slowest_rank = 0;
};

// Plans for `ranks` ranks. Builds the plans of the first steps; not collective: runs on the threads of this
// rank alone. Throws what opening and planning the data throws.
WorkPlan plan_work(const Experiment& experiment, int ranks, JobContext& context);

// `train --dry-run`: on rank 0 `print`s that plan, and then how long `ranks` ranks like these will take, by
// a few steps that all ranks of the context take on the real data. Writes nothing. Collective.
void dry_run(const Experiment& experiment, int ranks, JobContext& context,
             const std::function<void(std::string_view)>& print);

}  // namespace tpudist
