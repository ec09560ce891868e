#include "train/loop/step_times.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>

namespace tpudist {

static_assert(std::is_trivially_copyable_v<StepTimes>);
static_assert(sizeof(StepTimes) == kStepTimes.size() * sizeof(double), "each time has a name");

std::vector<StepTimes> gather_times(Communicator& world, const StepTimes& mine) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<StepTimes> all(ranks, mine);
  if (ranks == 1) return all;
  const std::vector<std::int64_t> ones(ranks, 1);
  world.all_gather(std::span(&mine, 1), std::span(all), std::span<const std::int64_t>(ones));
  return all;
}

Straggler straggler(const std::vector<StepTimes>& ranks) {
  std::size_t slowest = 0;
  double sum = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    sum += ranks[r].compute;
    if (ranks[r].compute > ranks[slowest].compute) slowest = r;
  }
  const double mean = sum / static_cast<double>(ranks.size());
  return {slowest, mean > 0 ? ranks[slowest].compute / mean : 1.0};
}

nlohmann::json times_json(const std::vector<StepTimes>& ranks) {
  nlohmann::json seconds = nlohmann::json::object();
  for (const NamedStepTime& time : kStepTimes) {
    nlohmann::json& list = seconds[time.name] = nlohmann::json::array();
    for (const StepTimes& of_rank : ranks) list.push_back(of_rank.*time.value);
  }
  const Straggler slowest = straggler(ranks);
  return {{"rank_seconds", seconds},
          {"slowest_rank", slowest.rank},
          {"straggler_ratio", slowest.ratio}};
}

}  // namespace tpudist
