// How a training step scales to many ranks, simulated: real assignments and trees of random batches,
// and ranks that are slow now and then. Prints the table of docs/distribution.md.
//   rank_scaling [STEPS]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "core/random.hpp"
#include "train/loop/rank_forecast.hpp"

namespace tpudist {
namespace {

struct Case {
  const char* name;
  int slates, members, folds;
  double nodes;       // of a mean graph
  double seconds;     // of a step on one rank, without planning
  double parameters;  // of a member
  std::vector<int> ranks;
};

constexpr int kGraphs = 200;
constexpr double kPlanned = 0.2;          // planning a unit, in computations of it for one member
constexpr double kSpread = 0.05;          // standard deviation of a rank's time, relative
constexpr double kSlow = 1e-3;            // how often a rank takes twice as long
constexpr LinkSpeed kLinks{2e-6, 1.5e9};  // 100 Gb/s for eight ranks

double slow_down(CounterRng& rng) {
  const double factor = std::exp(kSpread * rng.normal());
  return rng.uniform(0, 1) < kSlow ? 2 * factor : factor;
}

// Steps of one number of ranks: plain, and with slow ranks.
struct Scaling {
  RankForecast plain, slowed;
};

class Simulation {
 public:
  Simulation(const Case& simulated, std::int64_t steps)
      : case_(simulated),
        steps_(steps),
        order_(options(), std::vector<std::int64_t>(kGraphs, 1000), 1) {
    experiment_.batch.slates = case_.slates;
    experiment_.ensemble.members = case_.members;
    experiment_.ensemble.folds = case_.folds;
    experiment_.ensemble.vary_fold = case_.folds > 0;
    CounterRng rng(1);
    for (int graph = 0; graph < kGraphs; ++graph) {
      const double nodes = std::clamp(case_.nodes * std::exp(0.8 * rng.normal() - 0.32),
                                      case_.nodes / 10, case_.nodes * 4);
      costs_.push_back({nodes, nodes});
      if (case_.folds > 0) fold_.push_back(graph % case_.folds);
    }
  }

  Scaling of(int ranks) const {
    const BatchPlanner planner(experiment_, order_, costs_, fold_, ranks);
    CounterRng rng(2);
    RankLoad load{.ranks = ranks};
    double slowed = 0, one = 0;
    const auto count = static_cast<double>(steps_);
    for (std::int64_t step = 0; step < steps_; ++step) {
      const BatchPlan batch = planner.plan(step);
      std::vector<double> work = planner.rank_work(batch, costs_of(batch));
      one += std::accumulate(work.begin(), work.end(), 0.0) / count;
      add_planning(batch, work);
      load.mean += std::accumulate(work.begin(), work.end(), 0.0) / ranks / count;
      load.slowest += std::ranges::max(work) / count;
      for (double& own : work) own *= slow_down(rng);
      slowed += std::ranges::max(work) / count;
      const ExchangeSize size =
          exchange_size(batch.owners, ranks, 4 * case_.parameters, Exchanged::trees);
      load.exchange.bytes += size.bytes / count;
      load.exchange.messages += size.messages / count;
    }
    const RankSpeed speed{case_.seconds / one, 0};
    Scaling scaling{forecast_step(load, speed, kLinks, 0, false), {}};
    load.slowest = slowed;
    scaling.slowed = forecast_step(load, speed, kLinks, 0, false);
    return scaling;
  }

 private:
  OrderOptions options() const { return {1, case_.slates, 10, DrawMode::rows}; }

  std::vector<double> costs_of(const BatchPlan& batch) const {
    std::vector<double> work;
    for (const SlateId& slate : batch.slates) work.push_back(costs_[slate.graph].first);
    return work;
  }

  void add_planning(const BatchPlan& batch, std::vector<double>& work) const {
    for (int unit = 0; unit < batch.units(); ++unit) {
      std::vector<int> owners;
      for (int m = 0; m < case_.members; ++m) owners.push_back(batch.owners.of(m, unit));
      std::ranges::sort(owners);
      const auto repeated = std::ranges::unique(owners);
      owners.erase(repeated.begin(), repeated.end());
      for (const int owner : owners)
        if (owner >= 0) work[owner] += kPlanned * costs_[batch.slates[unit].graph].first;
    }
  }

  const Case& case_;
  const std::int64_t steps_;
  Experiment experiment_;
  const SlateOrder order_;
  std::vector<SlateCost> costs_;
  std::vector<int> fold_;
};

void print_case(const Case& simulated, std::int64_t steps) {
  const Simulation simulation(simulated, steps);
  const Scaling one = simulation.of(1);
  for (const int ranks : simulated.ranks) {
    const Scaling own = simulation.of(ranks);
    const auto efficiency = [&](const RankForecast& row) {
      return one.plain.step / (row.step * ranks);
    };
    fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.0f} % | {:.2f} | {:.2f} |\n", simulated.name,
               ranks, 1e3 * own.plain.step, 1e3 * own.plain.messages, 100 * own.plain.busy,
               efficiency(own.plain), efficiency(own.slowed));
  }
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  using namespace tpudist;
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 500;
  const std::vector<Case> cases{
      {"NLP, 4 slates x 5 members", 4, 5, 5, 5659, 1.0, 2.3e6, {1, 4, 8, 16, 64, 1024}},
      {"XLA, 10 x 5", 10, 5, 5, 14105, 1.0, 265e3, {1, 4, 8, 16, 64, 1024}},
      {"XLA, 64 x 20", 64, 20, 5, 14105, 25.6, 265e3, {1, 8, 64, 256, 1024}}};
  fmt::print(
      "| | ranks | ms a step | of these messages | busy | efficiency | with slow ranks |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const Case& simulated : cases) print_case(simulated, steps);
}
