// Search by a trained ensemble against other ways to find a fast configuration, on synthetic programs
// of families that no training has seen. Their true run times are known without noise.
//
//   search_peers EVALUATIONS RUN... > peers.json
//
// bench/search_peers.py trains the runs and makes the tables of docs/search.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "bench/synthetic_program.hpp"
#include "core/process.hpp"
#include "core/progress.hpp"
#include "core/thread_pool.hpp"
#include "data/synth/presets.hpp"
#include "dist/collectives/communicator.hpp"

namespace {

using namespace tpudist;

constexpr std::int64_t kBudgets[] = {1, 10, 100, 1000};

using ByBudget = std::array<double, std::size(kBudgets)>;  // shortest time within each budget

ByBudget shortest(const std::vector<double>& times) {
  ByBudget best;
  for (std::size_t b = 0; b < best.size(); ++b) {
    const auto count = std::min<std::size_t>(times.size(), static_cast<std::size_t>(kBudgets[b]));
    best[b] = *std::min_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return best;
}

ByBudget by_search(const SearchedProgram& program, const PointScorer& scorer,
                   const SearchOptions& options, JobContext& context) {
  SearchResult found = find_configs(program.points, scorer, options, context);
  ByBudget best;
  for (std::size_t b = 0; b < best.size(); ++b) {
    found.propose(static_cast<int>(kBudgets[b]));
    best[b] = std::numeric_limits<double>::infinity();
    for (const Point& point : found.proposals) best[b] = std::min(best[b], program.time(point));
  }
  return best;
}

ByBudget by_ranking(const SearchedProgram& program, const PointScorer& scorer,
                    std::int64_t evaluations, CounterRng& rng) {
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

void measure_peers(const SearchedProgram& program, std::uint64_t number, std::size_t repeats,
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

void measure_model(const SearchedProgram& program, const std::vector<TrainedRun>& run,
                   const SearchOptions& options, CounterRng rng, JobContext& context,
                   Times& times) {
  const SearchedModule searched(program.module, run, {}, false, 1, context);
  const double pessimism = pessimism_of(ranking_runs(run, searched.members())).share;
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
  std::vector<std::unique_ptr<SearchedProgram>> programs;
  for (const synth::LayoutJob& job : synth::layout_jobs(plan, "xla", 1)) {
    if (job.split == 2) programs.push_back(std::make_unique<SearchedProgram>(job, collection));
  }
  std::vector<Times> times(programs.size());
  pool.parallel_for(std::ssize(programs), [&](std::int64_t i) {
    measure_peers(*programs[i], static_cast<std::uint64_t>(i), runs.size(), times[i]);
  });
  nlohmann::ordered_json json = {{"evaluations", evaluations}, {"budgets", kBudgets}};
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const SearchedProgram& program = *programs[i];
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
