#include "train/scoring/scoring.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/random.hpp"
#include "dist/assignment.hpp"

namespace tpudist {
namespace {

// Which rows a limited evaluation takes; the same in every run.
constexpr std::uint64_t kSubsetKey = 0x7375627365745f31;

std::int64_t chosen_count(const Dataset& dataset, int graph, std::int64_t most) {
  const std::int64_t all = dataset.rows(graph);
  return most > 0 ? std::min(most, all) : all;
}

std::vector<std::int64_t> chosen_rows(const Dataset& dataset, int graph, std::int64_t most) {
  const std::int64_t all = dataset.rows(graph), count = chosen_count(dataset, graph, most);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  const KeyedPermutation permutation(static_cast<std::uint64_t>(all), kSubsetKey);
  for (std::int64_t i = 0; i < count; ++i) {
    rows[static_cast<std::size_t>(i)] =
        count == all ? i : static_cast<std::int64_t>(permutation(static_cast<std::uint64_t>(i)));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// The distinct configurations among some rows: one row for each, and where each row's score is to
// be found.
struct Distinct {
  int graph = 0;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> index;  // [rows asked for] into `rows`
};

Distinct distinct_rows(const Dataset& dataset, int graph, std::span<const std::int64_t> rows) {
  Distinct distinct;
  distinct.graph = graph;
  std::unordered_map<std::int32_t, std::int64_t> seen;
  const auto& groups = dataset.run_times(graph).group;
  for (std::int64_t row : rows) {
    const std::int32_t group = groups[static_cast<std::size_t>(dataset.config_of(graph, row))];
    const auto [at, fresh] = seen.emplace(group, static_cast<std::int64_t>(distinct.rows.size()));
    if (fresh) distinct.rows.push_back(row);
    distinct.index.push_back(at->second);
  }
  return distinct;
}

// A block of distinct configurations of one graph, for a run of members.
struct Block {
  std::size_t place;  // of the graph among those that are scored
  std::int64_t first, count;
  int first_member, members;
};

std::vector<Block> cut_blocks(const Dataset& dataset, const std::vector<Distinct>& graphs,
                              const ScoringBlock& block) {
  std::vector<Block> blocks;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const auto total = static_cast<std::int64_t>(graphs[g].rows.size());
    const std::int64_t size = block.size(dataset.graph(graphs[g].graph).nodes);
    for (std::int64_t first = 0; first < total; first += size) {
      blocks.push_back({g, first, std::min(size, total - first), 0, 0});
    }
  }
  return blocks;
}

// Cuts the members of each block into runs, so that there are at least `wanted` pieces of work
// where members allow: a small graph is one block. The scores do not depend on it.
std::vector<Block> cut_members(std::span<const Block> blocks, int members, std::int64_t wanted) {
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

// Scores of this rank's blocks, block by block: [members of block][count of block].
std::vector<double> score_blocks(const Network& network, std::span<const float> flat,
                                 const std::vector<Distinct>& graphs, const UnitBuilder& units,
                                 std::span<const Block> blocks, JobContext& context) {
  std::vector<std::size_t> offset{0};
  for (const Block& block : blocks) {
    offset.push_back(offset.back() + static_cast<std::size_t>(block.count) *
                                         static_cast<std::size_t>(block.members));
  }
  std::vector<double> scores(offset.back());
  context.pool.parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t i) {
    const Block& block = blocks[static_cast<std::size_t>(i)];
    const Distinct& graph = graphs[block.place];
    const std::vector<std::int64_t>& rows = graph.rows;
    const SlateRows slate{graph.graph,
                          {rows.begin() + block.first, rows.begin() + block.first + block.count}};
    const Unit unit = units.build(std::span(&slate, 1));
    double* out = scores.data() + offset[static_cast<std::size_t>(i)];
    const int together = std::min(units.members_together(unit), block.members);
    for (int first = 0; first < block.members; first += together) {
      const int count = std::min(together, block.members - first);
      const UnitScores result = network.scores(flat, block.first_member + first, count, unit.input);
      for (int m = 0; m < count; ++m) {
        for (std::int64_t k = 0; k < block.count; ++k) {
          *out++ = result.common[static_cast<std::size_t>(m)] +
                   result.delta[static_cast<std::size_t>(m * block.count + k)];
        }
      }
    }
    context.progress.advance(block.count * block.members);
  });
  return scores;
}

}  // namespace

std::vector<GraphRange> scoring_ranges(const Dataset& dataset, int members, std::int64_t most_rows,
                                       std::int64_t most) {
  std::vector<GraphRange> ranges;
  std::int64_t scores = 0;
  for (int g = 0; g < dataset.size(); ++g) {
    const std::int64_t own = members * chosen_count(dataset, g, most_rows);
    if (ranges.empty() || scores + own > most) {
      ranges.push_back({g, 0});
      scores = 0;
    }
    ++ranges.back().count;
    scores += own;
  }
  return ranges;
}

std::vector<GraphPrediction> score_graphs(const Network& network, std::span<const float> flat,
                                          int members, const Dataset& dataset, GraphRange graphs,
                                          const UnitBuilder& units, const ScoringOptions& options,
                                          JobContext& context) {
  std::vector<GraphPrediction> predictions(static_cast<std::size_t>(graphs.count));
  std::vector<Distinct> distinct(predictions.size());
  context.pool.parallel_for(graphs.count, [&](std::int64_t i) {
    GraphPrediction& prediction = predictions[static_cast<std::size_t>(i)];
    prediction.graph = graphs.first + static_cast<int>(i);
    prediction.rows = chosen_rows(dataset, prediction.graph, options.most_rows);
    distinct[static_cast<std::size_t>(i)] =
        distinct_rows(dataset, prediction.graph, prediction.rows);
  });
  const std::vector<Block> blocks =
      cut_members(cut_blocks(dataset, distinct, options.block), members, 2 * context.world.size());
  std::vector<double> costs;
  for (const Block& block : blocks) {
    costs.push_back(static_cast<double>(block.count * block.members) *
                    static_cast<double>(dataset.graph(distinct[block.place].graph).nodes));
  }
  const std::vector<int> owner = assign_by_cost(costs, context.world.size());
  const auto mine = std::equal_range(owner.begin(), owner.end(), context.world.rank());
  const auto first = static_cast<std::size_t>(mine.first - owner.begin());
  const auto last = static_cast<std::size_t>(mine.second - owner.begin());
  std::int64_t configs = 0;
  for (std::size_t i = first; i < last; ++i) configs += blocks[i].count * blocks[i].members;
  context.progress.start("score", configs, "scores");
  std::vector<double> own;
  run_on_all_ranks(context.world, [&] {
    own = score_blocks(network, flat, distinct, units,
                       std::span(blocks).subspan(first, last - first), context);
  });
  context.progress.finish();
  const std::vector<double> all = all_gather_variable<double>(context.world, own);

  std::vector<std::vector<std::vector<double>>> by_graph(predictions.size());
  for (std::size_t g = 0; g < predictions.size(); ++g) {
    by_graph[g].assign(static_cast<std::size_t>(members),
                       std::vector<double>(distinct[g].rows.size()));
  }
  const double* next = all.data();
  for (const Block& block : blocks) {
    auto& of_members = by_graph[block.place];
    for (int m = block.first_member; m < block.first_member + block.members; ++m) {
      std::copy_n(next, block.count, of_members[static_cast<std::size_t>(m)].begin() + block.first);
      next += block.count;
    }
  }
  for (std::size_t g = 0; g < predictions.size(); ++g) {
    for (const std::vector<double>& scores : by_graph[g]) {
      std::vector<double>& out = predictions[g].scores.emplace_back();
      for (std::int64_t index : distinct[g].index)
        out.push_back(scores[static_cast<std::size_t>(index)]);
    }
  }
  return predictions;
}

std::vector<double> mean_scores(const GraphPrediction& prediction, const std::vector<bool>& use) {
  std::vector<double> mean(prediction.rows.size(), 0.0);
  double count = 0;
  for (std::size_t m = 0; m < prediction.scores.size(); ++m) {
    if (!use[m]) continue;
    ++count;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += prediction.scores[m][i];
  }
  for (double& score : mean) score = count > 0 ? score / count : 0;
  return mean;
}

}  // namespace tpudist
