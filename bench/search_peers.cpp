// Search by a trained ensemble against other ways to find a fast configuration, on synthetic programs
// of families that no training has seen. Their true run times are known without noise.
//
//   search_peers EVALUATIONS RUN... > peers.json
//
// bench/search_peers.py trains the runs and makes the tables of docs/search.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "core/process.hpp"
#include "core/progress.hpp"
#include "core/random.hpp"
#include "core/thread_pool.hpp"
#include "data/synth/layouts.hpp"
#include "data/synth/presets.hpp"
#include "dist/collectives/communicator.hpp"
#include "train/scoring/module_search.hpp"

namespace {

using namespace tpudist;
using Point = ConfigSpace::Point;

constexpr std::int64_t kBudgets[] = {1, 10, 100, 1000};
constexpr std::size_t kMostMeasured = 1000;

// A program with its space and its law.
struct Program {
  std::string name;
  synth::Program program;
  synth::LayoutSpace space;
  synth::LayoutCost cost;
  Module module;  // with its default configuration alone
  ConfigSpace points;

  Program(const synth::LayoutJob& job, const Collection& collection)
      : name(job.model.name),
        program(synth::build_model(job.model)),
        space(program),
        cost(program, space.choices),
        module(as_module(collection)),
        points(config_space(module.made->space)) {}

  double time(const Point& point) const {
    std::vector<std::uint8_t> groups;
    std::size_t at = 0;
    for (const auto& group : space.groups)
      groups.push_back(static_cast<std::uint8_t>(group.states > 1 ? point[at++] : 0));
    return cost.time(space.codes(groups));
  }

 private:
  Module as_module(const Collection& collection) const {
    auto made = std::make_shared<MadeConfigs>();
    const Graph graph = to_graph(program, name, true);
    for (std::size_t j = 0; j < space.choices.size(); ++j) {
      ConfigurableNode& node = made->space.nodes.emplace_back();
      node.node = graph.config_nodes[j];
      node.name = fmt::format("node_config_ids[{}]", j);
      for (const auto& state : space.choices[j].states) node.states.push_back(state.features);
    }
    for (const auto& group : space.groups) {
      made->space.groups.emplace_back(group.ops.begin(), group.ops.end());
      for (const std::int32_t op : group.ops) made->space.nodes[op].standard = group.chosen;
    }
    made->configs = {made->space.standard()};
    const ConfigSpace own = config_space(made->space);
    GraphEntry entry;
    entry.name = name;
    entry.schema = collection.schema;
    entry.split = "test";
    entry.nodes = graph.nodes;
    DatasetOptions options;
    options.collection = collection;
    options.split = "test";
    const Slate slate = own.slate(std::span(&own.standard_point, 1));
    return {Dataset::of_slate(options, entry, graph, slate), false, {}, 0, std::move(made)};
  }
};

// Measurements of one search, each configuration once, in order.
class Measured {
 public:
  explicit Measured(const Program& program) : program_(program) {}
  bool full() const { return times_.size() >= kMostMeasured; }
  // Of a known configuration at no cost; infinity if no measurement is left.
  double time(const Point& point) {
    const auto known = known_.find(point);
    if (known != known_.end()) return known->second;
    if (full()) return std::numeric_limits<double>::infinity();
    times_.push_back(program_.time(point));
    return known_[point] = times_.back();
  }
  const std::map<Point, double>& known() const { return known_; }
  const std::vector<double>& times() const { return times_; }

 private:
  const Program& program_;
  std::map<Point, double> known_;
  std::vector<double> times_;
};

void change(Point& point, const ConfigSpace& space, CounterRng& rng) {
  const std::size_t g = rng.below(point.size());
  point[g] = static_cast<std::uint16_t>(rng.below(space.groups[g].choices.size()));
}

// Tries that find nothing new, after which a small space counts as exhausted.
constexpr int kIdle = 20'000;

std::vector<double> at_random(const Program& program, CounterRng& rng) {
  Measured measured(program);
  for (int tries = 0; !measured.full() && tries < kIdle; ++tries)
    measured.time(program.points.random_point(rng));
  return measured.times();
}

std::vector<double> genetic(const Program& program, std::uint64_t key) {
  return synth::search_configs(program.space, program.cost, 20 * kMostMeasured, key).time;
}

// From the default; a configuration that is slower by a share s is accepted with exp(-s / T), T from
// 5 % to 0.05 %.
std::vector<double> annealing(const Program& program, CounterRng& rng) {
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

// Group by group in random order, all choices of one, the best kept; begins again at random.
void descend(const Program& program, Measured& measured, Point point, CounterRng& rng) {
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

std::vector<double> coordinate(const Program& program, CounterRng& rng) {
  Measured measured(program);
  Point point = program.points.standard_point;
  for (int tries = 0; !measured.full() && tries < 1000; ++tries) {
    descend(program, measured, point, rng);
    point = program.points.random_point(rng);
  }
  return measured.times();
}

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

// Measures the default and nine random configurations, then rounds of a tenth of what is known: the
// best by trees learned from all measurements, among random configurations and changed good ones, one
// in ten at random.
std::vector<double> surrogate(const Program& program, CounterRng& rng) {
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

using ByBudget = std::array<double, std::size(kBudgets)>;  // shortest time within each budget

ByBudget shortest(const std::vector<double>& times) {
  ByBudget best;
  for (std::size_t b = 0; b < best.size(); ++b) {
    const auto count = std::min<std::size_t>(times.size(), static_cast<std::size_t>(kBudgets[b]));
    best[b] = *std::min_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return best;
}

ByBudget by_search(const Program& program, const PointScorer& scorer, const SearchOptions& options,
                   JobContext& context) {
  SearchResult found = find_configs(program.points, scorer, options, context);
  ByBudget best;
  for (std::size_t b = 0; b < best.size(); ++b) {
    found.propose(static_cast<int>(kBudgets[b]));
    best[b] = std::numeric_limits<double>::infinity();
    for (const Point& point : found.proposals) best[b] = std::min(best[b], program.time(point));
  }
  return best;
}

ByBudget by_ranking(const Program& program, const PointScorer& scorer, std::int64_t evaluations,
                    CounterRng& rng) {
  std::set<Point> drawn;
  for (std::int64_t tries = 0; std::ssize(drawn) < evaluations && tries < 4 * evaluations; ++tries)
    drawn.insert(program.points.random_point(rng));
  const std::vector<Point> points(drawn.begin(), drawn.end());
  std::vector<double> scores;
  for (std::size_t at = 0; at < points.size(); at += 500) {
    const auto part = std::span(points).subspan(at, std::min<std::size_t>(500, points.size() - at));
    for (const PointScore& score : scorer(part)) scores.push_back(score.estimate);
  }
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return scores[i]; });
  std::vector<double> times;
  for (std::size_t i = 0; i < std::min(order.size(), kMostMeasured); ++i)
    times.push_back(program.time(points[order[i]]));
  return shortest(times);
}

// The shortest times within each budget, of each repeat of a method: {"random": [[...], ...]}.
using Times = nlohmann::ordered_json;

void measure_peers(const Program& program, std::uint64_t number, std::size_t repeats,
                   Times& times) {
  CounterRng rng(mix_key({1, number}));
  for (int start = 0; start < 64; ++start) {
    Measured measured(program);
    descend(program, measured, program.points.random_point(rng), rng);
    times["best"].push_back({std::ranges::min(measured.times())});
  }
  for (std::size_t r = 0; r < repeats; ++r) {
    times["random"].push_back(shortest(at_random(program, rng)));
    times["genetic"].push_back(shortest(genetic(program, rng.next_u64())));
    times["annealing"].push_back(shortest(annealing(program, rng)));
    times["coordinate"].push_back(shortest(coordinate(program, rng)));
    times["surrogate"].push_back(shortest(surrogate(program, rng)));
  }
}

void measure_model(const Program& program, const std::vector<TrainedRun>& run,
                   const SearchOptions& options, CounterRng rng, JobContext& context,
                   Times& times) {
  const SearchedModule searched(program.module, run, {}, false, 1, context);
  const double pessimism = pessimism_of(searched.ranking()).share;
  times["search"].push_back(by_search(program, searched.scorer(pessimism), options, context));
  times["search, mean alone"].push_back(by_search(program, searched.scorer(0), options, context));
  times["ranked"].push_back(by_ranking(program, searched.scorer(0), options.evaluations, rng));
}

void compare(std::int64_t evaluations, const std::vector<std::string>& run_folders) {
  ThreadPool pool(usable_cores());
  const auto world = make_self_communicator();
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};
  std::vector<std::vector<TrainedRun>> runs(run_folders.size());
  for (std::size_t r = 0; r < runs.size(); ++r) runs[r].push_back(open_run(run_folders[r]));
  const Collection& collection = runs.front().front().experiment.data.collection;
  synth::Plan plan = *synth::preset_named("demo").xla;
  plan.graphs = {16, 5, 24};
  std::vector<std::unique_ptr<Program>> programs;
  for (const synth::LayoutJob& job : synth::layout_jobs(plan, "xla", 1)) {
    if (job.split == 2) programs.push_back(std::make_unique<Program>(job, collection));
  }
  std::vector<Times> times(programs.size());
  pool.parallel_for(std::ssize(programs), [&](std::int64_t i) {
    measure_peers(*programs[i], static_cast<std::uint64_t>(i), runs.size(), times[i]);
  });
  nlohmann::ordered_json json = {{"evaluations", evaluations}, {"budgets", kBudgets}};
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Program& program = *programs[i];
    for (std::size_t r = 0; r < runs.size(); ++r)
      measure_model(program, runs[r], {.evaluations = evaluations, .seed = r + 1},
                    CounterRng(mix_key({2, i, r})), context, times[i]);
    fmt::print(stderr, "{} of {}: {}\n", i + 1, programs.size(), program.name);
    json["graphs"].push_back({{"graph", program.name},
                              {"default", program.time(program.points.standard_point)},
                              {"times", std::move(times[i])}});
  }
  fmt::print("{}\n", json.dump(1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: search_peers EVALUATIONS RUN...\n");
    return 2;
  }
  try {
    compare(std::stoll(argv[1]), {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "search_peers: {}\n", error.what());
    return 1;
  }
}
