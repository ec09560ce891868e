// Searches by measurements alone, the peers of search_peers.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "bench/synthetic_program.hpp"

namespace tpudist {
namespace {

void change(Point& point, const ConfigSpace& space, CounterRng& rng) {
  const std::size_t g = rng.below(point.size());
  point[g] = static_cast<std::uint16_t>(rng.below(space.groups[g].choices.size()));
}

// Tries that find nothing new, after which a small space counts as exhausted.
constexpr int kIdle = 20'000;

// Gradient-boosted regression trees on the choices, squared loss: each split asks whether a group has
// one choice.
class Trees {
 public:
  Trees(const ConfigSpace& space, std::span<const Point> points, std::span<const double> targets)
      : space_(space), mean_(0) {
    for (const double target : targets) mean_ += target / static_cast<double>(targets.size());
    std::vector<double> rest;
    for (const double target : targets) rest.push_back(target - mean_);
    std::vector<std::size_t> all(points.size());
    std::iota(all.begin(), all.end(), 0);
    for (int tree = 0; tree < kTrees; ++tree) {
      roots_.push_back(grow(points, rest, all, kDepth));
      for (std::size_t i = 0; i < points.size(); ++i)
        rest[i] -= kRate * value(roots_.back(), points[i]);
    }
  }
  double predict(const Point& point) const {
    double sum = mean_;
    for (const int root : roots_) sum += kRate * value(root, point);
    return sum;
  }

 private:
  static constexpr int kTrees = 80, kDepth = 4;
  static constexpr double kRate = 0.15;
  struct Node {
    std::size_t group = 0;
    std::uint16_t choice = 0;
    int yes = -1, no = -1;
    double value = 0;
  };

  double value(int node, const Point& point) const {
    while (nodes_[node].yes >= 0)
      node = point[nodes_[node].group] == nodes_[node].choice ? nodes_[node].yes : nodes_[node].no;
    return nodes_[node].value;
  }

  int grow(std::span<const Point> points, const std::vector<double>& rest,
           const std::vector<std::size_t>& rows, int depth) {
    const int own = static_cast<int>(nodes_.size());
    nodes_.emplace_back();
    double sum = 0;
    for (const std::size_t i : rows) sum += rest[i];
    const double count = static_cast<double>(rows.size());
    nodes_[own].value = sum / (count + 1);
    if (depth == 0 || rows.size() < 4) return own;
    double most = 1e-12;
    std::size_t group = points.front().size();
    std::uint16_t choice = 0;
    for (std::size_t g = 0; g < points.front().size(); ++g) {
      std::vector<double> sums(space_.groups[g].choices.size()), counts(sums.size());
      for (const std::size_t i : rows) sums[points[i][g]] += rest[i], ++counts[points[i][g]];
      for (std::size_t c = 0; c < sums.size(); ++c) {
        if (counts[c] < 1 || counts[c] > count - 1) continue;
        const double left = sum - sums[c];
        const double gain = sums[c] * sums[c] / (counts[c] + 1) +
                            left * left / (count - counts[c] + 1) - sum * sum / (count + 1);
        if (gain > most) most = gain, group = g, choice = static_cast<std::uint16_t>(c);
      }
    }
    if (group == points.front().size()) return own;
    std::vector<std::size_t> yes, no;
    for (const std::size_t i : rows) (points[i][group] == choice ? yes : no).push_back(i);
    const int first = grow(points, rest, yes, depth - 1),
              second = grow(points, rest, no, depth - 1);
    nodes_[own] = {group, choice, first, second, nodes_[own].value};
    return own;
  }

  const ConfigSpace& space_;
  double mean_;
  std::vector<Node> nodes_;
  std::vector<int> roots_;
};

}  // namespace

std::vector<double> at_random(const SearchedProgram& program, CounterRng& rng) {
  Measured measured(program);
  for (int tries = 0; !measured.full() && tries < kIdle; ++tries)
    measured.time(program.points.random_point(rng));
  return measured.times();
}

std::vector<double> genetic(const SearchedProgram& program, std::uint64_t key) {
  return synth::search_configs(program.space, program.cost, 20 * kMostMeasured, key).time;
}

std::vector<double> annealing(const SearchedProgram& program, CounterRng& rng) {
  Measured measured(program);
  Point point = program.points.standard_point;
  double own = measured.time(point);
  for (int tries = 0; !measured.full() && tries < kIdle; ++tries) {
    const double done = static_cast<double>(measured.times().size()) / kMostMeasured;
    const double temperature = 0.05 * std::pow(0.01, done);
    Point next = point;
    change(next, program.points, rng);
    const double time = measured.time(next);
    if (time <= own || rng.uniform() < std::exp((1 - time / own) / temperature))
      point = std::move(next), own = time;
  }
  return measured.times();
}

void descend(const SearchedProgram& program, Measured& measured, Point point, CounterRng& rng) {
  double own = measured.time(point);
  std::vector<std::size_t> order(point.size());
  std::iota(order.begin(), order.end(), 0);
  rng.shuffle(std::span(order));
  for (std::size_t at = 0, tried = 0; tried < order.size() && !measured.full(); ++at, ++tried) {
    const std::size_t g = order[at % order.size()];
    Point next = point;
    for (std::size_t c = 0; c < program.points.groups[g].choices.size(); ++c) {
      next[g] = static_cast<std::uint16_t>(c);
      const double time = measured.time(next);
      if (time < own) point = next, own = time, tried = 0;
    }
  }
}

std::vector<double> coordinate(const SearchedProgram& program, CounterRng& rng) {
  Measured measured(program);
  Point point = program.points.standard_point;
  for (int tries = 0; !measured.full() && tries < 1000; ++tries) {
    descend(program, measured, point, rng);
    point = program.points.random_point(rng);
  }
  return measured.times();
}

std::vector<double> surrogate(const SearchedProgram& program, CounterRng& rng) {
  Measured measured(program);
  const ConfigSpace& space = program.points;
  std::vector<Point> points;
  std::vector<double> logs;
  const auto measure = [&](const Point& point) {
    const std::size_t before = measured.times().size();
    const double time = measured.time(point);
    if (measured.times().size() == before) return;
    points.push_back(point);
    logs.push_back(std::log(time));
  };
  measure(space.standard_point);
  for (int tries = 0; points.size() < 10 && tries < kIdle; ++tries)
    measure(space.random_point(rng));
  for (int idle = 0; !measured.full() && idle < 50;) {
    const std::size_t before = points.size();
    const Trees trees(space, points, logs);
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::size_t i) { return logs[i]; });
    std::set<Point> pool;
    for (int i = 0; i < 2000; ++i) {
      Point point = space.random_point(rng);
      if (i % 2) {
        point = points[order[rng.below(std::min<std::size_t>(order.size(), 20))]];
        do change(point, space, rng);
        while (rng.uniform() < 0.6);
      }
      if (!measured.known().contains(point)) pool.insert(std::move(point));
    }
    std::vector<std::pair<double, Point>> candidates;
    for (const Point& point : pool) candidates.emplace_back(trees.predict(point), point);
    std::ranges::sort(candidates);
    const std::size_t batch = std::max<std::size_t>(5, points.size() / 10);
    for (std::size_t i = 0; i < std::min(batch, candidates.size()); ++i)
      measure(i % 10 == 9 ? candidates[rng.below(candidates.size())].second : candidates[i].second);
    idle = points.size() == before ? idle + 1 : 0;
  }
  return measured.times();
}

}  // namespace tpudist
