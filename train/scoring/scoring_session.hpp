#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "dist/health/job_context.hpp"
#include "models/network/network.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/scoring.hpp"
#include "train/scoring/scoring_blocks.hpp"

namespace tpudist {

// Which members score which graphs of a dataset, [graphs][M]. Empty: all members score all graphs.
using ScoringMembers = std::vector<std::vector<bool>>;

// For each network of a session the weights of its members, [M of the network, P].
using MemberWeights = std::vector<std::span<const float>>;

// The network of a run, without parameters. `device` -1 is the CPU.
Network make_network(const Experiment& experiment, int device, ThreadPool& pool);

bool has_graphs(const DatasetOptions& options);

// Throws ConfigError where ranks have different graphs. `data` null: this rank has none.
// Collective.
void require_same_graphs(const DatasetOptions& options, const Dataset* data, Communicator& world);

// The graphs of a split, opened to read a few rows of each. Nothing where the split has no graphs.
std::optional<Dataset> open_for_costs(DatasetOptions options, ThreadPool& pool);

// The graphs of one split and the members that score them. Whatever ranks graphs by trained members
// uses this class: commands, the evaluations and predictions of a run, and the estimates of their
// cost.
class ScoringSession {
 public:
  // Opens the graphs, which must be the same on all ranks. Collective. Throws ConfigError and what
  // Dataset::open throws.
  ScoringSession(const DatasetOptions& options, JobContext& context);
  // Borrows graphs that are already open.
  ScoringSession(const Dataset& data, JobContext& context);
  ~ScoringSession();

  // Appends the members of a run. Their network is borrowed, or made here for this rank's device.
  void add(const Experiment& experiment, const Network& network);
  void add(const Experiment& experiment);
  // Restricts which members score which graph.
  void limit(ScoringMembers by) { by_ = std::move(by); }

  const Dataset& data() const { return data_; }
  int members() const { return static_cast<int>(slates_.size()); }
  // Whether some graphs are scored by only some of the members.
  bool is_limited() const { return !by_.empty(); }
  // [M] the slates in which each member scores
  const std::vector<ScoringSlates>& slates() const { return slates_; }

  // How many scores score() makes.
  std::int64_t scores(std::int64_t most_rows) const;

  // Scores at most `most_rows` rows of each graph (0 = all), a few graphs at a time in the order of
  // the dataset, and gives them to `take`. Before each few graphs it asks `stops`, if given, and
  // returns false where `stops` returns true. Collective. The caller starts and finishes the
  // progress, which advances by `scores`. `draw`: as in ScoringOptions.
  using Take = std::function<void(std::vector<ScoresByMember>)>;
  bool score(const MemberWeights& weights, std::int64_t most_rows, const Take& take,
             const std::function<bool()>& stops = {}, std::uint64_t draw = 0) const;

  // Throws ConfigError where the score of a network is no sum over nodes.
  void require_scores_of_nodes() const;

  // What each node of graph `graph` adds to the score of row `row` by each member, [M][nodes]; NaN
  // of a node that `data.reduce.max_nodes` did not draw. Each rank computes it. Throws as above.
  std::vector<std::vector<double>> score_nodes(const MemberWeights& weights, int graph,
                                               std::int64_t row) const;

  // What scoring with so many members costs on the first network. Builds sample plans. Not
  // collective.
  ScoringCost cost(int members, std::int64_t most_rows) const;

 private:
  class Scorer;
  // [graphs]
  std::vector<std::int64_t> scores_of_graphs(std::int64_t most_rows) const;

  std::optional<Dataset> own_;
  const Dataset& data_;
  JobContext& context_;
  std::vector<std::unique_ptr<const Network>> networks_;  // the networks that are owned, not
                                                          // borrowed
  std::vector<std::unique_ptr<const Scorer>> scorers_;
  std::vector<ScoringSlates> slates_;
  ScoringMembers by_;
};

}  // namespace tpudist
