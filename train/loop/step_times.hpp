#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "dist/collectives/communicator.hpp"

namespace tpudist {

// The parts of the time of one step on one rank, in seconds. Waiting, compute, reduction and
// optimizer follow one another. Another thread does reading and planning ahead; they delay a step
// only by data_wait.
struct StepTimes {
  double data_wait = 0;  // until the step's work was prepared
  double reading = 0;    // slates from shards or cache
  double planning = 0;   // plans and inputs of units
  double compute = 0;    // forward and backward passes, with this rank's own additions
  double reduction = 0;  // sum over ranks, including the wait for slower ranks
  double optimizer = 0;  // norms, clip, update and averages
};

struct NamedStepTime {
  const char* name;  // as in metrics.jsonl
  double StepTimes::*value;
};
inline constexpr std::array<NamedStepTime, 6> kStepTimes{{{"data_wait", &StepTimes::data_wait},
                                                          {"reading", &StepTimes::reading},
                                                          {"planning", &StepTimes::planning},
                                                          {"compute", &StepTimes::compute},
                                                          {"reduction", &StepTimes::reduction},
                                                          {"optimizer", &StepTimes::optimizer}}};

// The rank with the longest compute time, the lowest among equals.
struct Straggler {
  std::size_t rank = 0;
  double ratio = 1;  // its compute time / mean of all ranks; 1 if nothing was computed
};

// The times of all ranks, in rank order, on every rank. Collective: one small exchange.
std::vector<StepTimes> gather_times(Communicator& world, const StepTimes& mine);

// `ranks`: at least one.
Straggler straggler(const std::vector<StepTimes>& ranks);

// {"rank_seconds": {"data_wait": [seconds of each rank], ...}, "slowest_rank": 1,
// "straggler_ratio": 1.04}
nlohmann::json times_json(const std::vector<StepTimes>& ranks);

}  // namespace tpudist
