#include "train/loop/rank_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/numbers.hpp"
#include "core/text_table.hpp"
#include "dist/doctor/doctor.hpp"

namespace tpudist {
namespace {

constexpr double kEfficient = 0.8;
constexpr double kClearGain = 1.1;  // of groups in a sweep
constexpr int kAgreements = 3;      // small exchanges of a step: prepared, same owners, same bits

double rounds_of(int ranks) {
  return std::ceil(std::log2(ranks));
}

}  // namespace

RankLoad rank_load(const BatchPlanner& planner, int ranks, std::span<const UnitCosts> steps,
                   double row_bytes, Exchanged what) {
  const BatchPlanner own = planner.for_ranks(ranks);
  const auto count = static_cast<double>(steps.size());
  RankLoad load{.ranks = ranks, .work = std::vector<double>(static_cast<std::size_t>(ranks))};
  for (const UnitCosts& step : steps) {
    const BatchPlan batch = own.plan(step.step);
    const std::vector<double> work = own.rank_work(batch, step.work);
    for (std::size_t rank = 0; rank < work.size(); ++rank) load.work[rank] += work[rank] / count;
    load.mean += std::accumulate(work.begin(), work.end(), 0.0) / ranks / count;
    load.slowest += std::ranges::max(work) / count;
    const ExchangeSize size = exchange_size(batch.owners, ranks, row_bytes, what);
    load.exchange.bytes += size.bytes / count;
    load.exchange.messages += size.messages / count;
  }
  return load;
}

LinkSpeed measure_links(Communicator& communicator, double bytes) {
  const std::vector<JobFacts::AllReduceSpeed> speeds = time_all_reduce(communicator);
  const auto far = [&](const JobFacts::AllReduceSpeed& speed) {
    return std::abs(std::log(static_cast<double>(speed.bytes) / bytes));
  };
  const auto ranks = static_cast<std::size_t>(communicator.size());
  return {.latency = speeds.front().seconds / rounds_of(communicator.size()),
          .bandwidth = bus_bandwidth(*std::ranges::min_element(speeds, {}, far), ranks)};
}

RankForecast forecast_step(const RankLoad& load, const RankSpeed& speed, const LinkSpeed& links,
                           double update, bool hides_planning) {
  const double compute = speed.compute * load.slowest, planning = speed.planning * load.slowest,
               own = hides_planning ? std::max(compute, planning) : compute + planning;
  const double messages = load.exchange.messages + kAgreements * rounds_of(load.ranks);
  RankForecast forecast{.ranks = load.ranks};
  forecast.messages = load.exchange.bytes / links.bandwidth + messages * links.latency;
  forecast.step = own + update + forecast.messages;
  const double mean = load.slowest > 0 ? own * load.mean / load.slowest : 0;
  forecast.busy = forecast.step > 0 ? (mean + update) / forecast.step : 0;
  return forecast;
}

std::string rank_table(std::span<const RankForecast> rows, int node_ranks) {
  TextTable table({right("ranks"), right("s/step"), right("messages"), right("efficiency"),
                   right("busy"), right("training"), right("node hours")});
  for (const RankForecast& row : rows) {
    const int nodes = (row.ranks + node_ranks - 1) / node_ranks;
    table.rows.push_back({row.ranks, TableCell(row.step, "{:.4g}"),
                          TableCell(row.messages, "{:.2g}"), TableCell(row.efficiency, "{:.2f}"),
                          TableCell(100 * row.busy, "{:.0f} %"), format_seconds(row.training),
                          TableCell(nodes * row.training / 3600, "{:.3g}")});
  }
  return table.to_text(2);
}

std::string rank_advice(std::span<const RankForecast> rows) {
  const RankForecast *pays = nullptr, *group = nullptr;
  const RankForecast& most = rows.back();
  // Runs of a sweep that a number of ranks ends a second, as groups of the row's size.
  const auto rate = [](const RankForecast& row) { return 1 / (row.ranks * row.training); };
  for (const RankForecast& row : rows) {
    if (row.efficiency >= kEfficient) pays = &row;
    if (most.ranks % row.ranks == 0 && (!group || rate(row) >= rate(*group))) group = &row;
  }
  std::string text = pays
                         ? fmt::format("  {}: the most of these with an efficiency of {} or more\n",
                                       counted(pays->ranks, "rank"), kEfficient)
                         : fmt::format("  none of these has an efficiency of {}\n", kEfficient);
  const double gain = group && most.training > 0 ? rate(*group) / rate(most) : 1;
  if (gain < kClearGain) return text;
  return text + fmt::format(
                    "  a sweep on {} ranks: --groups {} trains {} side by side, and {:.2g} times "
                    "as many an hour as one at a time\n",
                    most.ranks, group->ranks, counted(most.ranks / group->ranks, "run"), gain);
}

}  // namespace tpudist
