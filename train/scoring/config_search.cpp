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
#include "data/schema/model_family.hpp"
#include "results/scores/member_scores.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

using Point = ConfigSpace::Point;

constexpr std::uint64_t kPoolKey = 0x7365617263685f30, kStartKey = 0x7365617263685f31;
// Most configurations of a slate. More neighbours are tried in parts, groups in random order.
constexpr std::size_t kMostNeighbours = 512;
// Most combinations of the best choices of several groups.
constexpr std::size_t kMostJoined = 32;
// A start ends after this number of descents without a new configuration.
constexpr int kIdleDescents = 50;
// Configurations that a start keeps as candidates for proposals.
constexpr std::size_t kKept = 1000;

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

auto key_of(const ScoredPoint& scored) {
  return std::tie(scored.score.estimate, scored.point);
}

// One start of the search: says which configurations it has to know next, and takes their scores.
class Walk {
 public:
  Walk(const ConfigSpace& space, const SearchOptions& options, int number)
      : space_(space),
        options_(options),
        next_(static_cast<std::size_t>(number)),
        rng_(mix_key({kStartKey, options.seed, next_})),
        left_(options.evaluations * (number + 1) / options.starts -
              options.evaluations * number / options.starts),
        order_(space.groups.size()) {
    begin();
  }

  // The configurations to score next; none if the start has ended.
  std::vector<Point> next() {
    std::vector<Point> fresh;
    for (; !wanted_.empty(); advance()) {
      for (const Point& point : wanted_) {
        if (std::ssize(fresh) < left_ && known_.try_emplace(point).second) fresh.push_back(point);
      }
      if (!fresh.empty()) break;
    }
    return fresh;
  }
  // Takes the scores of next(), and goes on.
  void take(std::span<const Point> points, std::span<const PointScore> scores) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      PointScore& score = known_[points[i]] = scores[i];
      if (!std::isfinite(score.estimate)) score.estimate = std::numeric_limits<double>::infinity();
      if (score.estimate < best_score_.estimate) best_score_ = score;
    }
    left_ -= std::ssize(points);
    advance();
  }

  std::int64_t evaluations() const { return std::ssize(known_); }
  const PointScore& best_score() const { return best_score_; }
  // The configurations with the best scores, the best first.
  std::vector<ScoredPoint> best() const {
    std::vector<ScoredPoint> best;
    for (const auto& [point, score] : known_) {
      if (std::isfinite(score.estimate)) best.push_back({score, point});
    }
    std::ranges::sort(best, {}, key_of);
    if (best.size() > kKept) best.resize(kKept);
    return best;
  }

 private:
  using Change = std::pair<std::size_t, std::uint16_t>;  // group, choice
  enum class Wanted { start, neighbours, joined };

  Point drawn() {
    if (options_.known.empty()) return space_.random_point(rng_);
    return options_.known[rng_.below(options_.known.size())];
  }
  static Point changed(Point to, const Change& change) {
    to[change.first] = change.second;
    return to;
  }

  // Goes on with the scores of `wanted_`; infinity for one beyond the share of evaluations, or
  // without a finite score.
  void advance() {
    std::vector<double> scores;
    for (const Point& point : wanted_) {
      const auto found = known_.find(point);
      scores.push_back(found == known_.end() ? std::numeric_limits<double>::infinity()
                                             : found->second.estimate);
    }
    if (kind_ == Wanted::start) {
      own_ = scores.front();
      std::iota(order_.begin(), order_.end(), 0);
      rng_.shuffle(std::span(order_));
      at_ = tried_ = 0;
    } else if (kind_ == Wanted::neighbours) {
      if (want_joined(scores)) return;
    } else {
      const auto least = std::ranges::min_element(scores) - scores.begin();
      point_ = wanted_[static_cast<std::size_t>(least)];
      own_ = scores[static_cast<std::size_t>(least)];
      tried_ = 0;
    }
    want_neighbours();
  }

  // Begins a descent, or ends.
  void begin() {
    wanted_.clear();
    if (before_ >= 0) idle_ = left_ == before_ ? idle_ + 1 : 0;
    if (left_ <= 0 || idle_ >= kIdleDescents || static_cast<double>(known_.size()) >= space_.size())
      return;
    before_ = left_;
    // The first points are taken in turn by all starts.
    if (next_ < options_.first.size())
      point_ = options_.first[next_];
    else
      point_ = next_ == 0 ? space_.standard_point : drawn();
    next_ += static_cast<std::size_t>(options_.starts);
    wanted_ = {point_};
    kind_ = Wanted::start;
  }

  void want_neighbours() {
    const std::size_t groups = order_.size();
    if (tried_ >= groups || left_ <= 0) return begin();
    changes_.clear();
    std::size_t taken = 0;
    for (; taken < groups; ++taken) {
      const std::size_t g = order_[(at_ + taken) % groups];
      const std::size_t choices = space_.groups[g].choices.size();
      if (taken > 0 && changes_.size() + choices > kMostNeighbours) break;
      for (std::size_t c = 0; c < choices; ++c) {
        if (c != point_[g]) changes_.emplace_back(g, static_cast<std::uint16_t>(c));
      }
    }
    at_ += taken;
    tried_ += taken;
    wanted_.clear();
    for (const Change& change : changes_) wanted_.push_back(changed(point_, change));
    kind_ = Wanted::neighbours;
  }

  // The best of the neighbours, and joined ones. False if none is better.
  bool want_joined(const std::vector<double>& scores) {
    // The best change of each group that has a better choice.
    std::map<std::size_t, std::size_t> best;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (!(scores[i] < own_)) continue;
      const auto [found, fresh] = best.try_emplace(changes_[i].first, i);
      if (!fresh && scores[i] < scores[found->second]) found->second = i;
    }
    if (best.empty()) return false;
    std::vector<std::size_t> better;
    for (const auto& [group, i] : best) better.push_back(i);
    std::ranges::stable_sort(better, {}, [&](std::size_t i) { return scores[i]; });
    better.resize(std::min(better.size(), kMostJoined));
    std::vector<Point> joined{wanted_[better.front()]};
    for (std::size_t i = 1; i < better.size(); ++i)
      joined.push_back(changed(joined.back(), changes_[better[i]]));
    wanted_ = std::move(joined);
    kind_ = Wanted::joined;
    return true;
  }

  const ConfigSpace& space_;
  const SearchOptions& options_;
  std::size_t next_;  // descent, counted over all starts
  CounterRng rng_;
  std::int64_t left_, before_ = -1;  // evaluations, now and when the descent began
  int idle_ = 0;
  // The descent: its configuration with its score, the groups in random order, where it stands among
  // them, and the number of groups since the last change.
  Point point_;
  double own_ = 0;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0, tried_ = 0;
  std::vector<Change> changes_;  // of the neighbours
  std::vector<Point> wanted_;
  Wanted kind_ = Wanted::start;
  PointScore best_score_{std::numeric_limits<double>::infinity(), 0};
  std::map<Point, PointScore> known_;
};

// Runs walks side by side. What they want is scored together, in slates of kMostNeighbours at most;
// one walk alone has a slate for each wish.
void run_walks(std::span<Walk> walks, const PointScorer& score,
               const std::function<void(std::int64_t fresh, const PointScore& best)>& told) {
  for (;;) {
    std::vector<Point> points;
    std::vector<std::size_t> ends;
    for (Walk& walk : walks) {
      std::ranges::move(walk.next(), std::back_inserter(points));
      ends.push_back(points.size());
    }
    if (points.empty()) return;
    std::vector<PointScore> scores;
    const std::span<const Point> all(points);
    const std::size_t most = walks.size() > 1 ? kMostNeighbours : all.size();
    for (std::size_t at = 0; at < all.size(); at += most)
      std::ranges::move(score(all.subspan(at, std::min(most, all.size() - at))),
                        std::back_inserter(scores));
    for (std::size_t w = 0, begin = 0; w < walks.size(); begin = ends[w++]) {
      const std::size_t count = ends[w] - begin;
      if (count == 0) continue;
      walks[w].take(std::span(points).subspan(begin, count),
                    std::span(scores).subspan(begin, count));
      told(static_cast<std::int64_t>(count), walks[w].best_score());
    }
  }
}

// The configurations of all ranks, the best first, each once.
std::vector<ScoredPoint> gather(const std::vector<ScoredPoint>& own, std::size_t groups,
                                Communicator& world) {
  std::vector<double> scores;
  std::vector<std::uint16_t> points;
  for (const auto& [score, point] : own) {
    scores.insert(scores.end(), {score.estimate, score.agree});
    points.insert(points.end(), point.begin(), point.end());
  }
  scores = all_gather_variable<double>(world, scores);
  points = all_gather_variable<std::uint16_t>(world, points);
  std::vector<ScoredPoint> all;
  for (std::size_t i = 0; 2 * i < scores.size(); ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * groups);
    all.push_back({{scores[2 * i], scores[2 * i + 1]},
                   Point(begin, begin + static_cast<std::ptrdiff_t>(groups))});
  }
  std::ranges::sort(all, {}, key_of);
  // Two starts may score a configuration in other slates, so that it differs by rounding.
  std::set<Point> seen;
  std::erase_if(all, [&](const ScoredPoint& entry) { return !seen.insert(entry.point).second; });
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
    Point point = space.random_point(rng);
    if (seen.insert(point).second) points.push_back(std::move(point));
  }
  return points;
}

Pessimism chosen_pessimism(const PredictionSource& predictions,
                           const std::vector<bool>& takes_part) {
  constexpr double kTried[] = {0, 0.25, 0.5, 1, 2};
  constexpr std::int64_t kMeasured = 10;
  constexpr std::size_t kLeastFamilies = 5;
  double sums[std::size(kTried)] = {};
  std::int64_t graphs = 0;
  std::set<std::string> families;
  const auto add = [&](const PredictionEntry& graph, const PredictionRows& rows,
                       const std::vector<double>& weights) {
    const std::vector<double> targets = rows.targets();
    std::vector<std::vector<double>> members;  // that have not seen the graph
    for (std::size_t m = 0; m < weights.size(); ++m) {
      if (weights[m] > 0) members.push_back(rows.scores[m]);
    }
    if (members.size() < 2 || std::ranges::min(targets) <= 0) return;
    ++graphs;
    families.insert(model_family(graph.name));
    const std::vector<MemberSpread> spreads = member_spreads(members);
    for (std::size_t i = 0; i < std::size(kTried); ++i) {
      std::vector<double> scores;
      for (const MemberSpread& spread : spreads)
        scores.push_back(mean(spread.z_scores) + kTried[i] * spread.deviation);
      sums[i] += slowdown_at(scores, targets, kMeasured);
    }
  };
  each_unseen_graph(predictions, add, takes_part);
  if (families.size() < kLeastFamilies) return {};
  return {kTried[std::ranges::min_element(sums) - std::begin(sums)], graphs};
}

void SearchResult::propose(int count) {
  const std::size_t wanted = std::min(static_cast<std::size_t>(count), best.size());
  const auto choose = [&](int least) {
    proposals.clear();
    scores.clear();
    apart = least;
    for (const auto& [score, point] : best) {
      if (proposals.size() == wanted) break;
      const auto is_close = [&](const Point& other) { return distance(point, other) < least; };
      if (std::ranges::any_of(proposals, is_close)) continue;
      proposals.push_back(point);
      scores.push_back(score);
    }
    return proposals.size() == wanted;
  };
  int enough = 1, most = best.empty() ? 1 : std::max(1, static_cast<int>(best[0].point.size()) / 4);
  if (choose(most)) return;
  while (enough + 1 < most) {
    const int middle = (enough + most) / 2;
    (choose(middle) ? enough : most) = middle;
  }
  choose(enough);
}

SearchResult find_configs(const ConfigSpace& space, const PointScorer& score,
                          const SearchOptions& options, JobContext& context) {
  const int ranks = context.world.size();
  std::vector<Walk> walks;
  for (int number = context.world.rank(); number < options.starts; number += ranks)
    walks.emplace_back(space, options, number);
  Mutex mutex;
  PointScore best{std::numeric_limits<double>::infinity(), 0};
  const auto told = [&](std::int64_t fresh, const PointScore& of_walk) {
    const MutexLock lock(mutex);
    if (of_walk.estimate < best.estimate) best = of_walk;
    // The other ranks with starts advance alike.
    context.progress.advance(
        fresh * std::min(ranks, options.starts),
        fmt::format("best {:.3f}, {:.0f} % of members agree", best.estimate, 100 * best.agree));
  };
  context.progress.start("search", options.evaluations, "evaluations");
  run_on_all_ranks(context.world, [&] {
    // Large slates cost less for each configuration, so a thread's walks share theirs.
    const std::int64_t all = std::ssize(walks);
    const std::int64_t parts =
        options.any_slate ? std::min<std::int64_t>(all, context.pool.threads()) : all;
    const auto run = [&](std::int64_t part) {
      const std::int64_t begin = all * part / parts, end = all * (part + 1) / parts;
      run_walks(std::span(walks).subspan(begin, end - begin), score, told);
    };
    // The calls of a device take turns.
    if (context.topology.device >= 0) {
      for (std::int64_t part = 0; part < parts; ++part) run(part);
    } else {
      context.pool.parallel_for(parts, run);
    }
  });
  context.progress.finish();

  SearchResult result;
  result.standard = {score(std::span(&space.standard_point, 1)).front().estimate, 0};
  for (const Walk& walk : walks) {
    std::ranges::move(walk.best(), std::back_inserter(result.best));
    result.evaluations += walk.evaluations();
  }
  context.world.all_reduce(std::span(&result.evaluations, 1), ReduceOp::sum);
  result.best = gather(result.best, space.groups.size(), context.world);
  std::erase_if(result.best, [&](const ScoredPoint& entry) {
    return entry.point == space.standard_point || options.measured.contains(entry.point);
  });
  result.propose(options.propose);
  return result;
}

}  // namespace tpudist
