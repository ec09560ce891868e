#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/loading/dataset.hpp"
#include "dist/health/job_context.hpp"
#include "models/network/network.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/scoring.hpp"
#include "train/scoring/scoring_blocks.hpp"

namespace tpudist {

// [graphs][M] whether a member scores a graph of a dataset. Empty: all members score all graphs.
using ScoringMembers = std::vector<std::vector<bool>>;

// The name of a member: its number, and the run if several runs are scored together.
struct MemberName {
  std::string run;  // folder; empty for a single run
  int number = 0;
};
std::string to_text(const MemberName& name);

// The weights of the members of each network of a session, [M of the network, P].
using MemberWeights = std::vector<std::span<const float>>;

// The network of a run, without parameters. `device` -1 is the CPU.
Network make_network(const Experiment& experiment, int device, ThreadPool& pool);

bool has_graphs(const DatasetOptions& options);

// Throws ConfigError when ranks have different graphs. `data` null: no graphs. Collective.
void require_same_graphs(const DatasetOptions& options, const Dataset* data, Communicator& world);

// The graphs of a split, opened to read a few rows of each. Nothing if the split has no graphs.
std::optional<Dataset> open_for_costs(DatasetOptions options, ThreadPool& pool);

// The graphs of one split and the members that score them. All code that ranks graphs by trained
// members uses this class: commands, a run's evaluations and predictions, and estimates of their
// cost.
class ScoringSession {
 public:
  // Opens the graphs, which must be the same on all ranks. Collective. Throws ConfigError and what
  // Dataset::open throws.
  ScoringSession(const DatasetOptions& options, JobContext& context);
  // Borrows graphs that are already open.
  ScoringSession(const Dataset& data, JobContext& context);
  ~ScoringSession();

  // Appends the members of a run, under the run's name if several runs are scored together. Borrows
  // their network, or makes it for this rank's device.
  void add(const Experiment& experiment, const Network& network, const std::string& run = {});
  void add(const Experiment& experiment, const std::string& run);
  // Restricts which members score which graph.
  void limit(ScoringMembers by) { by_ = std::move(by); }

  const Dataset& data() const { return data_; }
  int members() const { return static_cast<int>(slates_.size()); }
  const std::vector<MemberName>& names() const { return names_; }  // [M]
  // Whether some graphs are scored by only some of the members.
  bool is_limited() const { return !by_.empty(); }
  // [M] the slates in which each member scores
  const std::vector<ScoringSlates>& slates() const { return slates_; }

  // The number of scores that score() makes.
  std::int64_t scores(std::int64_t most_rows) const;

  // Scores at most `most_rows` rows of each graph (0 = all), a few graphs at a time in the order of
  // the dataset, and passes the scores to `take`. Calls `stops`, if given, before each few graphs;
  // if `stops` returns true, returns false. Collective. The caller starts and finishes the
  // progress, which advances by `scores`. `draw`: as in ScoringOptions.
  using Take = std::function<void(std::vector<ScoresByMember>)>;
  bool score(const MemberWeights& weights, std::int64_t most_rows, const Take& take,
             const std::function<bool()>& stops = {}, std::uint64_t draw = 0) const;

  // Throws ConfigError if the score of a configuration depends on the rest of its slate by more
  // than rounding.
  void require_scores_of_configs() const;

  // [M][K] the scores of configurations that graph `slate.graph` need not have, by tpudist::
  // score_slate. `slate` has a state table of its own, or the states of the graph. Each rank
  // computes all. States of rows and a device's copy of the weights are kept for later slates, so
  // the numbers in `weights` must not change between calls (KeptRows).
  std::vector<std::vector<double>> score_slate(const MemberWeights& weights,
                                               const Slate& slate) const;

  // Whether score_slate gives a configuration the same bits in any slate (docs/plans.md).
  bool scores_any_slate() const;

  // The most memory for kept states, besides those of one slate for each thread. The bits do not
  // depend on it. Threads and networks have equal shares. A share that does not hold all rows of two
  // configurations keeps none. Not during another call.
  void keep_bytes(std::uint64_t bytes);

  // The cost of `members` members of the first network, by sample plans. Not collective.
  ScoringCost cost(int members, std::int64_t most_rows) const;

 private:
  class Scorer;
  // [graphs]
  std::vector<std::int64_t> scores_of_graphs(std::int64_t most_rows) const;

  std::optional<Dataset> own_;
  const Dataset& data_;
  JobContext& context_;
  std::vector<std::unique_ptr<const Network>> networks_;  // owned networks; others are borrowed
  std::vector<std::unique_ptr<const Scorer>> scorers_;
  std::vector<ScoringSlates> slates_;
  std::vector<MemberName> names_;
  ScoringMembers by_;
  std::uint64_t kept_bytes_ = std::uint64_t{1} << 30;
};

}  // namespace tpudist
