#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/loading/config_space.hpp"
#include "dist/health/job_context.hpp"
#include "results/records/predictions.hpp"
#include "train/scoring/scoring_session.hpp"

namespace tpudist {

// What a search says of a configuration.
struct PointScore {
  double estimate = 0;  // lower is faster
  double agree = 0;     // share of members that put it below the default
};
// Scores configurations. Thread-safe. The same list has the same scores; in another list a
// configuration's score may differ by rounding.
using PointScorer =
    std::function<std::vector<PointScore>(std::span<const ConfigSpace::Point> points)>;

// Scores configurations of a space by the members of a session on `pool`, the space's reference
// configurations, the default first. A member's scores become z-scores by their mean and deviation
// over the pool. The score is the mean of these z-scores plus `pessimism` times their standard
// deviation over members (divisor M - 1), because a search finds what the model is wrong about.
class EnsembleScorer {
 public:
  // `prediction`: of the pool. `used` [M]: the members that take part. Borrows session, space and
  // weights.
  EnsembleScorer(const ScoringSession& session, const MemberWeights& weights,
                 const ConfigSpace& space, const ScoresByMember& prediction,
                 const std::vector<bool>& used, double pessimism);
  std::vector<PointScore> operator()(std::span<const ConfigSpace::Point> points) const;
  // [members that take part and tell configurations apart][points]
  std::vector<std::vector<double>> z_scores(std::span<const ConfigSpace::Point> points) const;

 private:
  struct Scale {
    std::size_t member;
    double mean, deviation, standard;  // of the pool; z-score of the default
  };
  const ScoringSession& session_;
  const MemberWeights& weights_;
  const ConfigSpace& space_;
  double pessimism_;
  std::vector<Scale> scales_;  // of the members of z_scores
};

// Distinct configurations: the default, then at most count - 1 others, drawn uniformly.
std::vector<ConfigSpace::Point> reference_points(const ConfigSpace& space, std::int64_t count,
                                                 std::uint64_t seed);

// The weight of the members' deviation, and the number of graphs that chose it.
struct Pessimism {
  double share = 0.5;  // if none chose it
  std::int64_t graphs = 0;
};
// Of 0, 0.25, 0.5, 1 and 2 the weight with the smallest mean slowdown of the best of the first ten,
// over the measured graphs that two members or more have not seen in training; the smaller one if two
// are equal. Fewer than five families choose nothing. `takes_part` [M]: members that count; empty: all.
Pessimism chosen_pessimism(const PredictionSource& predictions,
                           const std::vector<bool>& takes_part = {});

struct SearchOptions {
  std::int64_t evaluations = 10'000;  // most configurations to score, of all starts together
  int starts = 8;                     // each has an equal share of the evaluations
  int propose = 10;
  std::uint64_t seed = 1;
  // Descents begin at these points, which the starts take in turn; without any, the first one at the
  // default. The others are drawn from `known`, or from the space if that is empty.
  std::vector<ConfigSpace::Point> first = {}, known = {};
  std::set<ConfigSpace::Point> measured = {};  // never proposed
  // Scores have the same bits in any list, so what several starts want may be scored as one.
  bool any_slate = false;
};

struct ScoredPoint {
  PointScore score;
  ConfigSpace::Point point;
};

struct SearchResult {
  std::vector<ConfigSpace::Point> proposals;  // the best first; never the default
  std::vector<PointScore> scores;             // of the proposals
  PointScore standard;                        // of the default
  std::int64_t evaluations = 0;
  int apart = 0;  // proposals differ in at least this number of groups
  // What proposals are taken from: the best configurations of each start, the best first, each once.
  std::vector<ScoredPoint> best;

  // Proposes up to `count` of them: takes the best, and passes over a configuration that differs from
  // a better proposal in less than `apart` groups. That is a quarter of the groups, or the largest
  // number (by bisection) that leaves enough.
  void propose(int count);
};

// Coordinate descent over groups. All configurations that differ from the present one in one group
// are a slate; where several groups have a better choice, the two best such choices together, the
// three best and so on are scored too; the best of all is the next. A start whose descent has ended
// begins again until it has used its share. Starts are spread over ranks and threads. A start is whole
// on one rank, and has slates of its own unless any slate will do. So the result is the same on any
// number of ranks and threads. Collective.
SearchResult find_configs(const ConfigSpace& space, const PointScorer& score,
                          const SearchOptions& options, JobContext& context);

}  // namespace tpudist
