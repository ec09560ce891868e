#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/reduction_tree.hpp"
#include "train/units/batch_plan.hpp"

namespace tpudist {

// A planned step, and what each of its units costs a member.
struct UnitCosts {
  std::int64_t step = 0;
  std::vector<double> work;  // [units]
};

// What a step asks of `ranks` ranks, mean per step.
struct RankLoad {
  int ranks = 1;
  std::vector<double> work = {};  // [ranks]
  double mean = 0, slowest = 0;   // work of all ranks, of each step's slowest one
  ExchangeSize exchange = {};
};

// `steps`: at least one. `row_bytes`, `what`: as of exchange_size.
RankLoad rank_load(const BatchPlanner& planner, int ranks, std::span<const UnitCosts> steps,
                   double row_bytes, Exchanged what);

// Seconds that a rank takes for one unit of work (BatchPlanner::rank_work): to compute it, and to
// read and plan it.
struct RankSpeed {
  double compute = 0, planning = 0;
};

// What a message of a rank costs while all ranks send.
struct LinkSpeed {
  double latency = 30e-6;    // seconds for each
  double bandwidth = 1.2e9;  // bytes a second
};

// From an all_reduce of 8 bytes, which takes log2 R messages, and from the all_reduce whose size is
// nearest to `bytes`. Takes a second or two. Collective, for at least two ranks.
LinkSpeed measure_links(Communicator& communicator, double bytes);

// What `train --dry-run --ranks` asks for.
struct RankRequest {
  std::vector<int> ranks;  // ascending, from 1 on; empty: no forecast
  std::optional<LinkSpeed>
      links;  // nothing: measured between several started ranks, else LinkSpeed{}
};

// Times in seconds.
struct RankForecast {
  int ranks = 1;
  double step = 0, messages = 0;  // of a step; the part in which ranks exchange gradients
  double busy = 0;                // share of a step in which the mean rank computes or plans
  double efficiency = 1;  // time of one rank / (ranks x time of these); not of forecast_step
  double training = 0;    // the whole; not of forecast_step
};

// `update`: seconds of the optimizer, which every rank spends. `hides_planning`: a GPU computes while
// the host plans; without one a rank is taken to have as many cores as threads.
RankForecast forecast_step(const RankLoad& load, const RankSpeed& speed, const LinkSpeed& links,
                           double update, bool hides_planning);

// Which number of ranks to take: the largest of an efficiency of 0.8, and the groups in which a sweep
// trains most runs an hour. `rows`: by ascending ranks.
std::string rank_advice(std::span<const RankForecast> rows);

// The forecasts as a table, with the hours of whole nodes of `node_ranks` ranks.
std::string rank_table(std::span<const RankForecast> rows, int node_ranks);

}  // namespace tpudist
