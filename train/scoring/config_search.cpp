#include "train/scoring/config_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/hash.hpp"
#include "core/means.hpp"
#include "core/mutex.hpp"
#include "core/random.hpp"
#include "results/scores/member_scores.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

using Point = ConfigSpace::Point;

constexpr std::uint64_t kPoolKey = 0x7365617263685f30, kStartKey = 0x7365617263685f31;
// Most neighbours of a slate. More groups are tried in parts, in random order.
constexpr std::size_t kMostNeighbours = 512;
// Most combinations of the best choices of several groups.
constexpr std::size_t kMostJoined = 32;
// A start ends after this number of descents without a new configuration.
constexpr int kIdleDescents = 50;
// Configurations that a start keeps as candidates for proposals.
constexpr std::size_t kKept = 1000;

Point random_point(const ConfigSpace& space, CounterRng& rng) {
  Point point;
  for (const ConfigSpace::Group& group : space.groups)
    point.push_back(static_cast<std::uint16_t>(rng.below(group.choices.size())));
  return point;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments_of(std::span<const double> values) {
  const double centre = mean(values);
  return {centre, std::sqrt(squares_around(values, centre) / static_cast<double>(values.size()))};
}

// Whether a member's scores differ by more than rounding.
bool tells_apart(const Moments& own) {
  return own.deviation > 1e-9 * std::max(1.0, std::abs(own.mean));
}

struct Candidate {
  PointScore score;
  Point point;
  auto key() const { return std::tie(score.score, point); }
};

// One start of the search.
class Walk {
 public:
  using Told = std::function<void(std::int64_t fresh, const PointScore& best)>;

  Walk(const ConfigSpace& space, const PointScorer& score, const SearchOptions& options, int number,
       const Told& told)
      : space_(space),
        score_(score),
        options_(options),
        number_(static_cast<std::size_t>(number)),
        rng_(mix_key({kStartKey, options.seed, number_})),
        left_(options.evaluations * (number + 1) / options.starts -
              options.evaluations * number / options.starts),
        told_(told) {}

  void run() {
    Point first = number_ == 0 ? space_.standard_point : drawn();
    if (number_ < options_.first.size()) first = options_.first[number_];
    for (int idle = 0; left_ > 0 && idle < kIdleDescents;) {
      const std::int64_t before = left_;
      descend(std::move(first));
      idle = left_ == before ? idle + 1 : 0;
      if (static_cast<double>(known_.size()) >= space_.size()) break;
      first = drawn();
    }
  }

  std::int64_t evaluations() const { return std::ssize(known_); }
  const std::map<Point, PointScore>& known() const { return known_; }

 private:
  Point drawn() {
    if (options_.known.empty()) return random_point(space_, rng_);
    return options_.known[rng_.below(options_.known.size())];
  }

  // Scores those that are not known yet, as one slate, as far as the share of evaluations allows.
  // Returns the score of each; infinity for one that is left out.
  std::vector<double> evaluate(const std::vector<Point>& points) {
    std::vector<Point> fresh;
    for (const Point& point : points) {
      if (std::ssize(fresh) < left_ && known_.try_emplace(point).second) fresh.push_back(point);
    }
    if (!fresh.empty()) {
      const std::vector<PointScore> scores = score_(fresh);
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        known_[fresh[i]] = scores[i];
        if (scores[i].score < best_.score) best_ = scores[i];
      }
      left_ -= std::ssize(fresh);
      told_(std::ssize(fresh), best_);
    }
    std::vector<double> scores;
    for (const Point& point : points) {
      const auto found = known_.find(point);
      scores.push_back(found == known_.end() ? std::numeric_limits<double>::infinity()
                                             : found->second.score);
    }
    return scores;
  }

  void descend(Point point) {
    double own = evaluate({point}).front();
    const std::size_t groups = space_.groups.size();
    std::vector<std::size_t> order(groups);
    std::iota(order.begin(), order.end(), 0);
    rng_.shuffle(std::span(order));
    // `tried`: groups since the last change.
    for (std::size_t at = 0, tried = 0; tried < groups && left_ > 0;) {
      std::vector<std::pair<std::size_t, std::uint16_t>> changes;
      std::size_t taken = 0;
      for (; taken < groups; ++taken) {
        const std::size_t g = order[(at + taken) % groups];
        const std::size_t choices = space_.groups[g].choices.size();
        if (taken > 0 && changes.size() + choices > kMostNeighbours) break;
        for (std::size_t c = 0; c < choices; ++c) {
          if (c != point[g]) changes.emplace_back(g, static_cast<std::uint16_t>(c));
        }
      }
      at += taken;
      tried += taken;
      if (move(point, own, changes)) tried = 0;
    }
  }

  // Makes the best of these changes, each of one group, and of joined ones. False if none is
  // better.
  bool move(Point& point, double& own,
            const std::vector<std::pair<std::size_t, std::uint16_t>>& changes) {
    const auto changed = [](Point to, const auto& change) {
      to[change.first] = change.second;
      return to;
    };
    std::vector<Point> points;
    for (const auto& change : changes) points.push_back(changed(point, change));
    std::vector<double> scores = evaluate(points);
    // The best change of each group that has a better choice.
    std::map<std::size_t, std::size_t> best;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (!(scores[i] < own)) continue;
      const auto [found, fresh] = best.try_emplace(changes[i].first, i);
      if (!fresh && scores[i] < scores[found->second]) found->second = i;
    }
    if (best.empty()) return false;
    std::vector<std::size_t> better;
    for (const auto& [group, i] : best) better.push_back(i);
    std::ranges::stable_sort(better, {}, [&](std::size_t i) { return scores[i]; });
    better.resize(std::min(better.size(), kMostJoined));
    std::vector<Point> joined{points[better.front()]};
    for (std::size_t i = 1; i < better.size(); ++i)
      joined.push_back(changed(joined.back(), changes[better[i]]));
    scores = evaluate(joined);
    const auto least = static_cast<std::size_t>(std::ranges::min_element(scores) - scores.begin());
    point = joined[least];
    own = scores[least];
    return true;
  }

  const ConfigSpace& space_;
  const PointScorer& score_;
  const SearchOptions& options_;
  const std::size_t number_;
  CounterRng rng_;
  std::int64_t left_;
  const Told& told_;
  PointScore best_{std::numeric_limits<double>::infinity(), 0};
  std::map<Point, PointScore> known_;
};

std::vector<Candidate> best_of(const std::map<Point, PointScore>& known) {
  std::vector<Candidate> best;
  for (const auto& [point, score] : known) best.push_back({score, point});
  std::ranges::sort(best, {}, &Candidate::key);
  if (best.size() > kKept) best.resize(kKept);
  return best;
}

// The candidates of all ranks, the best first, each configuration once.
std::vector<Candidate> gather(const std::vector<Candidate>& own, std::size_t groups,
                              Communicator& world) {
  std::vector<double> scores;
  std::vector<std::uint16_t> points;
  for (const Candidate& candidate : own) {
    scores.insert(scores.end(), {candidate.score.score, candidate.score.agree});
    points.insert(points.end(), candidate.point.begin(), candidate.point.end());
  }
  scores = all_gather_variable<double>(world, scores);
  points = all_gather_variable<std::uint16_t>(world, points);
  std::vector<Candidate> all;
  for (std::size_t i = 0; 2 * i < scores.size(); ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * groups);
    all.push_back({{scores[2 * i], scores[2 * i + 1]},
                   Point(begin, begin + static_cast<std::ptrdiff_t>(groups))});
  }
  std::ranges::sort(all, {}, &Candidate::key);
  // Two starts may score a configuration in other slates, so that it differs by rounding.
  std::set<Point> seen;
  std::erase_if(all, [&](const Candidate& entry) { return !seen.insert(entry.point).second; });
  return all;
}

}  // namespace

EnsembleScorer::EnsembleScorer(const ScoringSession& session, const MemberWeights& weights,
                               const ConfigSpace& space, const ScoresByMember& prediction,
                               const std::vector<bool>& used, double pessimism)
    : session_(session), weights_(weights), space_(space), pessimism_(pessimism) {
  for (std::size_t m = 0; m < used.size(); ++m) {
    if (!used[m]) continue;
    const std::vector<double>& scores = prediction.scores[m];
    const Moments own = moments_of(scores);
    if (tells_apart(own))
      scales_.push_back({m, own.mean, own.deviation, (scores[0] - own.mean) / own.deviation});
  }
}

std::vector<PointScore> EnsembleScorer::operator()(std::span<const Point> points) const {
  const std::vector<std::vector<double>> of_members = z_scores(points);
  std::vector<PointScore> result(points.size());
  if (scales_.empty()) return result;
  std::vector<double> z(scales_.size());
  for (std::size_t k = 0; k < points.size(); ++k) {
    double below = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      z[i] = of_members[i][k];
      below += z[i] < scales_[i].standard;
    }
    const double deviation = z.size() > 1 ? std::sqrt(sample_variance(z)) : 0;
    result[k] = {mean(z) + pessimism_ * deviation, below / static_cast<double>(z.size())};
  }
  return result;
}

std::vector<std::vector<double>> EnsembleScorer::z_scores(std::span<const Point> points) const {
  std::vector<std::vector<double>> z;
  if (scales_.empty()) return z;
  const auto scores = session_.score_slate(weights_, space_.slate(points));
  for (const Scale& scale : scales_) {
    z.push_back(scores[scale.member]);
    for (double& score : z.back()) score = (score - scale.mean) / scale.deviation;
  }
  return z;
}

std::vector<Point> reference_points(const ConfigSpace& space, std::int64_t count,
                                    std::uint64_t seed) {
  std::vector<Point> points{space.standard_point};
  std::set<Point> seen(points.begin(), points.end());
  CounterRng rng(mix_key({kPoolKey, seed}));
  // If few are left, most draws repeat a known configuration.
  for (std::int64_t tries = 0; std::ssize(points) < count && tries < 20 * count; ++tries) {
    Point point = random_point(space, rng);
    if (seen.insert(point).second) points.push_back(std::move(point));
  }
  return points;
}

Pessimism chosen_pessimism(const PredictionSource& predictions) {
  constexpr double kTried[] = {0, 0.25, 0.5, 1, 2};
  constexpr std::int64_t kMeasured = 10;
  double sums[std::size(kTried)] = {};
  Pessimism chosen;
  const PredictionsHeader& header = predictions.header();
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& graph = header.graphs[g];
    if (graph.split == "test" || std::ranges::count(graph.held_out, true) < 2) continue;
    PredictionRows rows = predictions.read(static_cast<int>(g));
    const std::vector<double> weights = held_out_weights(graph, rows), targets = rows.targets();
    std::vector<std::vector<double>> members;  // that have not seen the graph
    for (std::size_t m = 0; m < weights.size(); ++m) {
      if (weights[m] > 0 && !rows.scores[m].empty()) members.push_back(std::move(rows.scores[m]));
    }
    if (members.size() < 2 || std::ranges::min(targets) <= 0) continue;
    ++chosen.graphs;
    const std::vector<MemberSpread> spreads = member_spreads(members);
    for (std::size_t i = 0; i < std::size(kTried); ++i) {
      std::vector<double> scores;
      for (const MemberSpread& spread : spreads)
        scores.push_back(mean(spread.z_scores) + kTried[i] * spread.deviation);
      sums[i] += slowdown_at(scores, targets, kMeasured);
    }
  }
  if (chosen.graphs > 0) chosen.share = kTried[std::ranges::min_element(sums) - std::begin(sums)];
  return chosen;
}

SearchResult find_configs(const ConfigSpace& space, const PointScorer& score,
                          const SearchOptions& options, JobContext& context) {
  const int ranks = context.world.size();
  std::vector<int> own;
  for (int number = context.world.rank(); number < options.starts; number += ranks)
    own.push_back(number);
  std::vector<std::vector<Candidate>> candidates(own.size());
  std::vector<std::int64_t> evaluations(own.size());
  std::vector<std::vector<std::uint64_t>> hashes(own.size());
  Mutex mutex;
  PointScore best{std::numeric_limits<double>::infinity(), 0};
  const Walk::Told told = [&](std::int64_t fresh, const PointScore& of_walk) {
    const MutexLock lock(mutex);
    if (of_walk.score < best.score) best = of_walk;
    // The other ranks advance alike.
    context.progress.advance(fresh * ranks, fmt::format("best {:.3f}, {:.0f} % of members agree",
                                                        best.score, 100 * best.agree));
  };
  context.progress.start("search", options.evaluations, "evaluations");
  run_on_all_ranks(context.world, [&] {
    const auto walk = [&](std::int64_t i) {
      Walk one(space, score, options, own[static_cast<std::size_t>(i)], told);
      one.run();
      candidates[i] = best_of(one.known());
      evaluations[i] = one.evaluations();
      for (const auto& [point, ignored] : one.known())
        hashes[i].push_back(hash64(std::as_bytes(std::span(point))));
    };
    // The calls of a device take turns.
    if (context.topology.device >= 0) {
      for (std::int64_t i = 0; i < std::ssize(own); ++i) walk(i);
    } else {
      context.pool.parallel_for(std::ssize(own), walk);
    }
  });
  context.progress.finish();

  SearchResult result;
  result.standard = score(std::span(&space.standard_point, 1)).front();
  std::vector<Candidate> all;
  std::vector<std::uint64_t> seen;
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::ranges::move(candidates[i], std::back_inserter(all));
    seen.insert(seen.end(), hashes[i].begin(), hashes[i].end());
    result.evaluations += evaluations[i];
  }
  context.world.all_reduce(std::span(&result.evaluations, 1), ReduceOp::sum);
  seen = all_gather_variable<std::uint64_t>(context.world, seen);
  result.distinct = std::ssize(std::set<std::uint64_t>(seen.begin(), seen.end()));
  all = gather(all, space.groups.size(), context.world);
  std::erase_if(all, [&](const Candidate& entry) {
    return entry.point == space.standard_point || options.measured.contains(entry.point);
  });
  const auto wanted = std::min(static_cast<std::size_t>(options.propose), all.size());
  result.apart = std::max(1, static_cast<int>(space.groups.size()) / 4);
  for (;; --result.apart) {
    result.proposals.clear();
    result.scores.clear();
    for (const Candidate& entry : all) {
      if (result.proposals.size() == wanted) return result;
      const bool close = std::ranges::any_of(result.proposals, [&](const Point& other) {
        return distance(entry.point, other) < result.apart;
      });
      if (close) continue;
      result.proposals.push_back(entry.point);
      result.scores.push_back(entry.score);
    }
    if (result.proposals.size() == wanted || result.apart == 1) return result;
  }
}

}  // namespace tpudist
