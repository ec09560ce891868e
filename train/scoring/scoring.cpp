#include "train/scoring/scoring.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <semaphore>
#include <string>
#include <utility>

#include "core/mutex.hpp"
#include "dist/collectives/assignment.hpp"
#include "train/scoring/scoring_blocks.hpp"

namespace tpudist {
namespace {

// Wanted pieces of work per rank. Members are split, too, because a small graph is one block.
constexpr std::int64_t kPiecesOfARank = 2;

// Estimates the number of scores that all ranks have done from this rank's work, and tells the
// sink. Assumes that ranks with equal shares of the work progress equally. Thread-safe.
class ShareOfProgress {
 public:
  // `total`: scores of all ranks, assumed done when this rank has done its `work`.
  ShareOfProgress(ProgressSink& sink, std::int64_t total, double work)
      : sink_(sink), total_(total), work_(work) {}

  void advance(double work, const std::string& note) {
    const MutexLock lock(mutex_);
    done_ += work;
    const double share = work_ > 0 ? std::min(done_ / work_, 1.0) : 1.0;
    show(static_cast<std::int64_t>(share * static_cast<double>(total_)), note);
  }
  void finish() {
    const MutexLock lock(mutex_);
    show(total_, {});
  }

 private:
  void show(std::int64_t scores, const std::string& note) TPUDIST_REQUIRES(mutex_) {
    if (scores <= shown_) return;
    sink_.advance(scores - shown_, note);
    shown_ = scores;
  }

  ProgressSink& sink_;
  const std::int64_t total_;
  const double work_;
  Mutex mutex_;
  double done_ TPUDIST_GUARDED_BY(mutex_) = 0;
  std::int64_t shown_ TPUDIST_GUARDED_BY(mutex_) = 0;
};

// Runs blocks of configurations. Thread-safe.
class BlockScorer {
 public:
  BlockScorer(const Network& network, Parameters parameters, const UnitBuilder& units,
              const ScoringOptions& options)
      : network_(network), parameters_(std::move(parameters)), units_(units), options_(options) {}

  // Writes the scores of a slate into out, [members][K].
  void score(const Slate& slate, int members, double* out) const {
    const auto configs = static_cast<std::int64_t>(slate.configs.size());
    const std::int64_t most = options_.block.size(units_.nodes(slate));
    const Block block{0, 0, configs, 0, members};
    for (std::int64_t first = 0; first < configs; first += most) {
      for_fitting_units(
          units_, first, std::min(most, configs - first), options_.block,
          [&](std::int64_t from, std::int64_t count) {
            return units_.build({part_of_slate(slate, from, count)}, {.key = options_.draw},
                                options_.kept);
          },
          [&](std::int64_t from, std::int64_t count, const Unit& unit) {
            score_part(unit, block, count, out + from);
            if (options_.kept) options_.kept->finish();
          });
    }
  }

  // Writes the scores of a block into out, [members of block][count of block].
  void score(const DistinctRows& graph, const Block& block, double* out) const {
    for_fitting_units(units_, graph, block.first, block.count, options_.block, options_.draw,
                      [&](std::int64_t first, std::int64_t count, const Unit& unit) {
                        score_part(unit, block, count, out + (first - block.first));
                      });
  }

 private:
  using Turns = std::counting_semaphore<2>;

  // Scores `count` configurations of the block. out[m * block.count + k]: member m of the block.
  void score_part(const Unit& unit, const Block& block, std::int64_t count, double* out) const {
    const int together = std::min({units_.members_together(unit), block.members,
                                   options_.block.members(units_.state_floats(*unit.input.plan))});
    for (int done = 0; done < block.members; done += together) {
      const int members = std::min(together, block.members - done);
      // Two calls at a time keep a device busy, and the states of each need memory.
      std::unique_ptr<Turns, void (*)(Turns*)> turn(nullptr,
                                                    [](Turns* turns) { turns->release(); });
      if (network_.device()) turns_.acquire(), turn.reset(&turns_);
      const UnitScores result =
          network_.scores(parameters_, block.first_member + done, members, unit.input);
      for (int m = 0; m < members; ++m) {
        double* of_member = out + (done + m) * block.count;
        for (std::int64_t k = 0; k < count; ++k) {
          of_member[k] = result.common[m] + result.delta[m * count + k];
        }
      }
    }
  }

  const Network& network_;
  const Parameters parameters_;
  const UnitBuilder& units_;
  const ScoringOptions& options_;
  mutable Turns turns_{2};
};

// The blocks of all ranks.
struct SharedBlocks {
  std::vector<Block> blocks;
  std::vector<double> work;  // [blocks] estimated
  std::vector<int> owner;    // [blocks] the rank that scores it
};

SharedBlocks share_blocks(const std::vector<DistinctRows>& distinct,
                          const std::vector<BlockEstimate>& scoring, int members,
                          const Communicator& world) {
  SharedBlocks shared;
  shared.blocks = cut_blocks(distinct, scoring, members, kPiecesOfARank * world.size());
  std::vector<WorkItem> items;
  for (const Block& block : shared.blocks) {
    shared.work.push_back(static_cast<double>(block.count * block.members) *
                          scoring[block.place].work);
    items.push_back({distinct[block.place].graph, shared.work.back()});
  }
  shared.owner = assign_by_cost(items, world.size());
  return shared;
}

std::size_t scores_of(const Block& block) {
  return static_cast<std::size_t>(block.count) * static_cast<std::size_t>(block.members);
}

// Scores of this rank's blocks, block by block. `scores`: of all ranks, for the progress.
std::vector<double> score_blocks(const BlockScorer& scorer, const Dataset& dataset,
                                 const std::vector<DistinctRows>& graphs,
                                 const SharedBlocks& shared, std::int64_t scores,
                                 JobContext& context) {
  std::vector<std::size_t> own, offset{0};
  double work = 0;
  for (std::size_t i = 0; i < shared.blocks.size(); ++i) {
    if (shared.owner[i] != context.world.rank()) continue;
    own.push_back(i);
    offset.push_back(offset.back() + scores_of(shared.blocks[i]));
    work += shared.work[i];
  }
  std::vector<double> result(offset.back());
  ShareOfProgress progress(context.progress, scores, work);
  context.pool.parallel_for(static_cast<std::int64_t>(own.size()), [&](std::int64_t i) {
    const std::size_t at = own[i];
    const Block& block = shared.blocks[at];
    const DistinctRows& graph = graphs[block.place];
    const char* name =
        context.trace ? context.trace->keep(dataset.graph(graph.graph).name) : nullptr;
    const TraceSpan span(context.trace, "score", -1, i, name);
    scorer.score(graph, block, result.data() + offset[i]);
    progress.advance(shared.work[at], dataset.graph(graph.graph).name);
  });
  progress.finish();
  return result;
}

// Sorts the blocks' scores by graph, member and row, averages them over permutations, and repeats
// them for equal configurations. `scores`: rank by rank, each in the order of its blocks.
void fill_scores(const SharedBlocks& shared, const std::vector<double>& scores, int ranks,
                 int members, const std::vector<DistinctRows>& distinct,
                 const SlatePermutations& permutations, std::vector<ScoresByMember>& predictions) {
  std::vector<std::vector<std::vector<double>>> by_graph(predictions.size());
  for (std::size_t g = 0; g < predictions.size(); ++g) {
    by_graph[g].assign(members, std::vector<double>(distinct[g].rows.size()));
  }
  std::vector<std::size_t> next(static_cast<std::size_t>(ranks) + 1);  // of each rank's scores
  for (std::size_t i = 0; i < shared.blocks.size(); ++i)
    next[static_cast<std::size_t>(shared.owner[i]) + 1] += scores_of(shared.blocks[i]);
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::size_t i = 0; i < shared.blocks.size(); ++i) {
    const Block& block = shared.blocks[i];
    auto& of_members = by_graph[permutations.graph_of(block.place)];
    std::size_t& at = next[shared.owner[i]];
    for (int m = block.first_member; m < block.first_member + block.members; ++m) {
      std::vector<double>& sums = of_members[m];
      for (std::int64_t k = 0; k < block.count; ++k)
        sums[permutations.position(block.place, block.first + k)] += scores[at++];
    }
  }
  for (std::size_t g = 0; g < predictions.size(); ++g) {
    for (const std::vector<double>& of_member : by_graph[g]) {
      std::vector<double>& out = predictions[g].scores.emplace_back();
      for (std::int64_t index : distinct[g].index)
        out.push_back(of_member[index] / permutations.count());
    }
  }
}

}  // namespace

std::vector<GraphRange> scoring_ranges(std::span<const std::int64_t> scores, std::int64_t most) {
  std::vector<GraphRange> ranges;
  std::int64_t sum = 0;
  for (std::size_t g = 0; g < scores.size(); ++g) {
    if (ranges.empty() || sum + scores[g] > most) {
      ranges.push_back({static_cast<int>(g), 0});
      sum = 0;
    }
    ++ranges.back().count;
    sum += scores[g];
  }
  return ranges;
}

std::vector<ScoresByMember> score_graphs(const Network& network, std::span<const float> flat,
                                         int members, const Dataset& dataset, GraphRange graphs,
                                         const UnitBuilder& units, const ScoringOptions& options,
                                         JobContext& context) {
  std::vector<ScoresByMember> predictions(graphs.count);
  std::vector<DistinctRows> distinct(predictions.size());
  context.pool.parallel_for(graphs.count, [&](std::int64_t i) {
    ScoresByMember& prediction = predictions[i];
    prediction.graph = graphs.first + static_cast<int>(i);
    prediction.rows = choose_rows(dataset, prediction.graph, options.most_rows);
    distinct[i] = distinct_rows(dataset, prediction.graph, prediction.rows);
  });
  std::int64_t scores = 0;
  for (const ScoresByMember& prediction : predictions)
    scores += members * static_cast<std::int64_t>(prediction.rows.size());

  const SlatePermutations permutations(dataset, distinct, options.block.slates);
  const std::vector<BlockEstimate> scoring = permutations.repeat(
      estimate_scoring(units, dataset, distinct, options.block, context.pool, context.world));
  const SharedBlocks shared = share_blocks(permutations.rows(), scoring, members, context.world);
  std::vector<double> own;
  run_on_all_ranks(context.world, [&] {
    const BlockScorer scorer(network, network.place(flat), units, options);
    own = score_blocks(scorer, dataset, permutations.rows(), shared, scores, context);
  });
  const std::vector<double> all = all_gather_variable<double>(context.world, own);
  fill_scores(shared, all, context.world.size(), members, distinct, permutations, predictions);
  return predictions;
}

std::vector<std::vector<double>> score_slate(const Network& network, const Parameters& parameters,
                                             int members, const UnitBuilder& units,
                                             const Slate& slate, const ScoringOptions& options) {
  const std::size_t configs = slate.configs.size();
  std::vector<double> all(static_cast<std::size_t>(members) * configs);
  BlockScorer(network, parameters, units, options).score(slate, members, all.data());
  std::vector<std::vector<double>> scores;
  for (std::size_t at = 0; at < all.size(); at += configs)
    scores.emplace_back(all.begin() + at, all.begin() + at + configs);
  return scores;
}

std::vector<double> combined_scores(const ScoresByMember& prediction,
                                    const std::vector<double>& weights,
                                    const Combination& combination) {
  std::vector<double> combined = combine_scored(prediction.scores, combination, weights);
  if (combined.empty()) combined.assign(prediction.rows.size(), 0.0);
  return combined;
}

}  // namespace tpudist
