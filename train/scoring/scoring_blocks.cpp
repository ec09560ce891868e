#include "train/scoring/scoring_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/hash.hpp"
#include "core/random.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

// Names the permutation that draws the rows of a limited evaluation; the same in every run.
constexpr std::uint64_t kSubsetKey = 0x7375627365745f31;

// Configurations of the first sample plan of a graph, and most of the second.
constexpr std::int64_t kFirstSample = 4, kSecondSample = 32;

// The plan of `count` configurations spread evenly over the graph's rows.
UnitEstimate sample_plan(const UnitBuilder& units, const Dataset& dataset,
                         const DistinctRows& graph, std::int64_t count) {
  const auto total = static_cast<std::int64_t>(graph.rows.size());
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(graph.rows[i * total / count]);
  const std::vector<Slate> slates{dataset.slate(graph.graph, rows)};
  return units.estimate(slates);
}

// The number of configurations that have `limit` floats in their states, if `few` configurations
// have few_floats and `many` have many_floats. Extrapolates with the power law through both points:
// the more configurations, the more of their states are equal. Planning a block finds a remaining
// error.
double fitting_configs(std::int64_t few, double few_floats, std::int64_t many, double many_floats,
                       double limit) {
  const double ratio = static_cast<double>(many) / static_cast<double>(few);
  const double power = std::log(many_floats / few_floats) / std::log(ratio);
  constexpr double kLeastPower = 0.2;
  return static_cast<double>(many) *
         std::pow(limit / many_floats, 1 / std::clamp(power, kLeastPower, 1.0));
}

// Distinguishes the permutations of slates from all other keyed permutations.
constexpr std::uint64_t kSlatesKey = 0x736c6174655f3031;

DistinctRows shuffled(const DistinctRows& graph, std::uint64_t key) {
  const KeyedPermutation permutation(graph.rows.size(), key);
  DistinctRows result;
  result.graph = graph.graph;
  for (std::size_t i = 0; i < graph.rows.size(); ++i) {
    const std::uint64_t position = permutation(i);
    result.rows.push_back(graph.rows[position]);
    result.index.push_back(static_cast<std::int64_t>(position));
  }
  return result;
}

}  // namespace

std::int64_t scored_rows(const Dataset& dataset, int graph, std::int64_t most_rows) {
  const std::int64_t all = dataset.rows(graph);
  return most_rows > 0 ? std::min(most_rows, all) : all;
}

std::vector<std::int64_t> choose_rows(const Dataset& dataset, int graph, std::int64_t most_rows) {
  const std::int64_t all = dataset.rows(graph), count = scored_rows(dataset, graph, most_rows);
  std::vector<std::int64_t> rows(count);
  const KeyedPermutation permutation(static_cast<std::uint64_t>(all), kSubsetKey);
  for (std::int64_t i = 0; i < count; ++i) {
    rows[i] =
        count == all ? i : static_cast<std::int64_t>(permutation(static_cast<std::uint64_t>(i)));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

DistinctRows distinct_rows(const Dataset& dataset, int graph, std::span<const std::int64_t> rows) {
  DistinctRows distinct;
  distinct.graph = graph;
  std::unordered_map<std::int32_t, std::int64_t> seen;
  const auto& groups = dataset.run_times(graph).group;
  for (std::int64_t row : rows) {
    const std::int32_t group = groups[dataset.config_of(graph, row)];
    const auto [at, fresh] = seen.emplace(group, static_cast<std::int64_t>(distinct.rows.size()));
    if (fresh) distinct.rows.push_back(row);
    distinct.index.push_back(at->second);
  }
  return distinct;
}

BlockEstimate estimate_scoring(const UnitBuilder& units, const Dataset& dataset,
                               const DistinctRows& graph, const ScoringBlock& block) {
  BlockEstimate scoring;
  const auto total = static_cast<std::int64_t>(graph.rows.size());
  if (total == 0) return scoring;
  const std::int64_t nodes = dataset.seen_nodes(graph.graph);
  scoring.block = std::min(block.size(nodes), total);
  scoring.even = block.slates.wanted();
  std::int64_t count = std::min(kFirstSample, scoring.block);
  UnitEstimate plan = sample_plan(units, dataset, graph, count);
  const auto limit = static_cast<double>(block.plan_floats);
  // States grow at most in proportion to the configurations.
  if (!block.is_fixed() && plan.cost.states * scoring.block / count > limit) {
    double fits = static_cast<double>(count) * limit / plan.cost.states;
    const auto second =
        std::min({static_cast<std::int64_t>(fits / 2), kSecondSample, scoring.block});
    if (second > count) {
      const UnitEstimate larger = sample_plan(units, dataset, graph, second);
      fits = fitting_configs(count, plan.cost.states, second, larger.cost.states, limit);
      plan = larger;
      count = second;
    }
    scoring.block =
        static_cast<std::int64_t>(std::clamp(fits, 1.0, static_cast<double>(scoring.block)));
  }
  scoring.work = plan.forward_work() / static_cast<double>(count);
  scoring.flop = plan.cost.forward / static_cast<double>(count);
  return scoring;
}

std::vector<BlockEstimate> estimate_scoring(const UnitBuilder& units, const Dataset& dataset,
                                            const std::vector<DistinctRows>& graphs,
                                            const ScoringBlock& block, ThreadPool& pool,
                                            Communicator& world) {
  // Every rank fills in its own graphs and zeros elsewhere, so that the sums over ranks are exact.
  constexpr std::size_t kNumbers = 3;
  std::vector<double> numbers(kNumbers * graphs.size(), 0.0);
  run_on_all_ranks(world, [&] {
    const auto count = static_cast<std::int64_t>(graphs.size());
    const std::int64_t mine = (count - world.rank() + world.size() - 1) / world.size();
    pool.parallel_for(mine, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(world.rank() + i * world.size());
      const BlockEstimate scoring = estimate_scoring(units, dataset, graphs[at], block);
      numbers[kNumbers * at] = static_cast<double>(scoring.block);
      numbers[kNumbers * at + 1] = scoring.work;
      numbers[kNumbers * at + 2] = scoring.flop;
    });
  });
  world.all_reduce(std::span(numbers), ReduceOp::sum);
  std::vector<BlockEstimate> scoring;
  for (std::size_t at = 0; at < graphs.size(); ++at) {
    scoring.push_back({static_cast<std::int64_t>(numbers[kNumbers * at]), block.slates.wanted(),
                       numbers[kNumbers * at + 1], numbers[kNumbers * at + 2]});
  }
  return scoring;
}

std::vector<Block> cut_blocks(const std::vector<DistinctRows>& graphs,
                              const std::vector<BlockEstimate>& scoring, int members,
                              std::int64_t wanted) {
  std::vector<Block> blocks;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const auto total = static_cast<std::int64_t>(graphs[g].rows.size());
    const std::int64_t size = scoring[g].block, count = (total + size - 1) / size;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = scoring[g].even ? total * i / count : i * size;
      const std::int64_t last =
          scoring[g].even ? total * (i + 1) / count : std::min(first + size, total);
      blocks.push_back({g, first, last - first, 0, 0});
    }
  }
  const auto count = std::max<std::int64_t>(static_cast<std::int64_t>(blocks.size()), 1);
  const int pieces =
      static_cast<int>(std::clamp<std::int64_t>((wanted + count - 1) / count, 1, members));
  std::vector<Block> cut;
  for (Block block : blocks) {
    for (int piece = 0; piece < pieces; ++piece) {
      block.first_member = members * piece / pieces;
      block.members = members * (piece + 1) / pieces - block.first_member;
      cut.push_back(block);
    }
  }
  return cut;
}

SlatePermutations::SlatePermutations(const Dataset& dataset,
                                     const std::vector<DistinctRows>& graphs,
                                     const ScoringSlates& slates)
    : permuted_(slates.wanted()), count_(permuted_ ? slates.permutations : 1) {
  if (!permuted_) {
    rows_ = graphs;
    return;
  }
  for (const DistinctRows& graph : graphs) {
    const std::uint64_t name = hash64(graph_of_id(dataset.graph(graph.graph).name));
    for (int number = 0; number < count_; ++number) {
      rows_.push_back(shuffled(
          graph, mix_key({kSlatesKey, slates.seed, static_cast<std::uint64_t>(number), name})));
    }
  }
}

std::vector<BlockEstimate> SlatePermutations::repeat(
    const std::vector<BlockEstimate>& graphs) const {
  std::vector<BlockEstimate> places;
  for (const BlockEstimate& graph : graphs)
    places.insert(places.end(), static_cast<std::size_t>(count_), graph);
  return places;
}

void for_fitting_units(const UnitBuilder& units, std::int64_t first, std::int64_t count,
                       const ScoringBlock& block, const UnitMaker& make, const UnitVisitor& visit) {
  {
    const Unit unit = make(first, count);
    if (block.fits(units.state_floats(*unit.input.plan), count)) {
      visit(first, count, unit);
      return;
    }
  }
  const std::int64_t half = count / 2;
  for_fitting_units(units, first, half, block, make, visit);
  for_fitting_units(units, first + half, count - half, block, make, visit);
}

void for_fitting_units(const UnitBuilder& units, const DistinctRows& graph, std::int64_t first,
                       std::int64_t count, const ScoringBlock& block, std::uint64_t draw,
                       const UnitVisitor& visit) {
  const auto make = [&](std::int64_t from, std::int64_t rows) {
    const auto begin = graph.rows.begin() + from;
    const SlateRows slate{graph.graph, {begin, begin + rows}};
    return units.build(std::span(&slate, 1), {.key = draw});
  };
  for_fitting_units(units, first, count, block, make, visit);
}

ScoringCost& ScoringCost::operator+=(const ScoringCost& other) {
  graphs += other.graphs;
  rows += other.rows;
  distinct += other.distinct;
  flop += other.flop;
  work += other.work;
  return *this;
}

ScoringCost scoring_cost(const UnitBuilder& units, const Dataset& dataset, int members,
                         std::int64_t most_rows, const ScoringBlock& block, ThreadPool& pool) {
  std::vector<ScoringCost> parts(dataset.size());
  pool.parallel_for(dataset.size(), [&](std::int64_t i) {
    const auto g = static_cast<int>(i);
    const DistinctRows graph = distinct_rows(dataset, g, choose_rows(dataset, g, most_rows));
    const BlockEstimate scoring = estimate_scoring(units, dataset, graph, block);
    const auto distinct = static_cast<std::int64_t>(graph.rows.size());
    const double scored = static_cast<double>(distinct) * members * block.slates.permutations;
    parts[i] = {1, static_cast<std::int64_t>(graph.index.size()), distinct, scoring.flop * scored,
                scoring.work * scored};
  });
  ScoringCost sum;
  for (const ScoringCost& part : parts) sum += part;
  return sum;
}

}  // namespace tpudist
