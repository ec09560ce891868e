#include "train/scoring/run_scorers.hpp"

#include <utility>

namespace tpudist {
namespace {

// The flags of some neighbouring members.
ScoringMembers columns(const ScoringMembers& by, int first, int count) {
  ScoringMembers part;
  for (const std::vector<bool>& graph : by)
    part.emplace_back(graph.begin() + first, graph.begin() + first + count);
  return part;
}

}  // namespace

// A run with what scores a dataset with it.
class RunScorers::Scorer {
 public:
  Scorer(const TrainedRun& run, const Dataset& dataset, JobContext& context)
      : run_(run),
        dataset_(dataset),
        network_(make_network(run.experiment, context.place.device, context.pool)),
        units_(dataset, network_, run.experiment.plan) {
    units_.share_graphs(false, context.pool);
  }

  int members() const { return static_cast<int>(run_.use.size()); }

  // `by`: of this run's members.
  std::vector<ScoresByMember> score(GraphRange graphs, const ScoringMembers& by,
                                    JobContext& context) const {
    return score_graphs(network_, run_.flat, members(), dataset_, graphs, by, units_,
                        {run_.experiment.evaluate_block, 0}, context);
  }

 private:
  const TrainedRun& run_;
  const Dataset& dataset_;
  const Network network_;
  UnitBuilder units_;
};

RunScorers::RunScorers(const std::vector<const TrainedRun*>& runs, const Dataset& dataset,
                       JobContext& context) {
  for (const TrainedRun* run : runs) {
    scorers_.push_back(std::make_unique<const Scorer>(*run, dataset, context));
    use_.insert(use_.end(), run->use.begin(), run->use.end());
  }
}

RunScorers::~RunScorers() = default;

std::vector<ScoresByMember> RunScorers::score(GraphRange graphs, const ScoringMembers& by,
                                              JobContext& context) const {
  std::vector<ScoresByMember> all =
      scorers_.front()->score(graphs, columns(by, 0, scorers_.front()->members()), context);
  int first = scorers_.front()->members();
  for (std::size_t s = 1; s < scorers_.size(); ++s) {
    const ScoringMembers own = columns(by, first, scorers_[s]->members());
    first += scorers_[s]->members();
    std::vector<ScoresByMember> more = scorers_[s]->score(graphs, own, context);
    for (std::size_t g = 0; g < all.size(); ++g) {
      for (auto& scores : more[g].scores) all[g].scores.push_back(std::move(scores));
    }
  }
  return all;
}

}  // namespace tpudist
