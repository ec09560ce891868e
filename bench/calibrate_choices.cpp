#include "bench/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/intervals/family_variance.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "statistics/ranking/predicted_gain.hpp"
#include "tests/statistics/simulated_rankings.hpp"

namespace tpudist {
namespace {

// Skewed values of one graph a family, half of them 0 and the others exponential, as slowdowns are: how
// often the 95 % interval on other families holds, and how often the true mean lies above.
void slowdowns(int repeats) {
  fmt::print("\nmean slowdown, intervals of 95 %\n\n{:<10}  {:>12}  {:>12}\n", "families", "holds",
             "too low");
  for (const int families : {5, 8, 16, 24}) {
    Share holds, low;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      CounterRng random(mix_key({key, 53, static_cast<std::uint64_t>(families)}));
      GraphValues found;
      for (int f = 0; f < families; ++f) {
        found.families.push_back(std::to_string(f));
        found.values.push_back(random.uniform() < 0.5 ? 0 : -std::log(1 - random.uniform()));
      }
      const Interval interval =
          t_interval(mean(found.values), family_variance({&found, 1}), kIntervalLevel, {.low = 0});
      low.add(interval.high < 0.5);
      holds.add(interval.low <= 0.5 && 0.5 <= interval.high);
    }
    fmt::print("{:<10}  {:>12}  {:>12}\n", families, holds.text(), low.text());
  }
}

// How many to measure: how often the promised number is enough on a graph of a new family, for each
// split into families that the promise is learned from and 20 others.
void promise(int repeats) {
  fmt::print(
      "\nthe promise of 90 % on new families, in percent: as printed, and smoothed\n\n"
      "{:<44}  {:>12}  {:>8}  {:>16}\n",
      "families that it is learned from", "printed", "smoothed", "first k (median)");
  std::vector<int> uneven{9, 1, 3, 2, 1, 1, 6, 1, 2, 1, 1, 5};
  const auto show = [&](std::string_view name, const SimulatedRankings& world) {
    constexpr int kTests = 20;
    std::vector<double> printed, smoothed, counts;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      const PromiseCoverage found = promise_coverage(world, kTests, mix_key({key, 53}));
      printed.push_back(100 * found.printed / kTests);
      smoothed.push_back(100 * found.smoothed / kTests);
      counts.push_back(static_cast<double>(found.count));
    }
    fmt::print("{:<44}  {:>12}  {:>8.1f}  {:>16.0f}\n", name,
               fmt::format("{:.1f} ({:.1f})", mean(printed),
                           std::sqrt(sample_variance(printed) / repeats)),
               mean(smoothed), median(counts));
    std::fflush(stdout);
  };
  for (const int families : {9, 12, 16, 19, 29, 49})
    show(fmt::format("{} of one graph", families),
         {.families = std::vector<int>(static_cast<std::size_t>(families), 1)});
  show("12 of 1 to 9 graphs", {.families = uneven});
  show("12 of 1 to 9 graphs, alike by 0.95", {.families = uneven, .family_share = 0.95});
  show("24 of 1 to 9 graphs", [&] {
    SimulatedRankings world{.families = uneven};
    world.families.insert(world.families.end(), uneven.begin(), uneven.end());
    return world;
  }());
  show("19 of two graphs", {.families = std::vector<int>(19, 2)});
  show("19 of one graph, 20 configurations", {.families = std::vector<int>(19, 1), .configs = 20});
}

// The same with the graphs of trained runs: their families are split at random into those that the
// promise is learned from and the others, each of which counts once.
void promise_of(const std::string& file, int repeats) {
  std::ifstream stream(file);
  const auto json = nlohmann::json::parse(stream).at("advice");
  std::map<std::string, std::vector<std::int64_t>> all;
  for (const auto& graph : json.at("needed")) all[graph["family"]].push_back(graph["count"]);
  std::vector<std::string> names;
  for (const auto& [family, needed] : all) names.push_back(family);
  fmt::print(
      "\n{} graphs of {} families: the promise of {} on the families left out\n\n{:<24}  {:>12}  "
      "{:>16}\n",
      json.at("needed").size(), names.size(), json.at("confidence").get<double>(),
      "families learned from", "holds, %", "first k (median)");
  for (std::size_t known = json.at("least_families"); known + 3 <= names.size(); ++known) {
    std::vector<double> held, counts;
    CounterRng random(mix_key({known, 53}));
    for (int split = 0; split < repeats; ++split) {
      random.shuffle(std::span(names));
      std::vector<std::string> families;
      std::vector<std::int64_t> needed;
      for (std::size_t f = 0; f < known; ++f) {
        for (const std::int64_t need : all[names[f]]) {
          families.push_back(names[f]);
          needed.push_back(need);
        }
      }
      const std::int64_t count =
          promise_measurements(families, needed, json.at("confidence")).count;
      counts.push_back(static_cast<double>(count));
      for (std::size_t f = known; f < names.size(); ++f) {
        const auto& own = all[names[f]];
        const auto enough = std::ranges::count_if(own, [&](auto need) { return need <= count; });
        held.push_back(100.0 * static_cast<double>(enough) / static_cast<double>(own.size()));
      }
    }
    fmt::print("{:<24}  {:>12.1f}  {:>16.0f}\n", known, mean(held), median(counts));
  }
}

// Members that know nothing: how often the best of a list is called better than its default.
void gain(int repeats) {
  fmt::print(
      "\nmembers whose scores are noise: the best is called better than the default, in "
      "percent\n\n{:<16}  {:>8}  {:>12}  {:>22}\n",
      "configurations", "members", "as printed", "mean gain above its SD");
  for (const int configs : {18, 100, 1000}) {
    for (const int members : {2, 3, 5, 10, 25}) {
      Share printed, plain;
      for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
        CounterRng random(mix_key({key, static_cast<std::uint64_t>(members)}));
        std::vector<std::vector<double>> scores(static_cast<std::size_t>(members));
        for (auto& own : scores) {
          for (int k = 0; k < configs; ++k) own.push_back(random.normal());
        }
        const std::vector<MemberSpread> spreads = member_spreads(scores);
        printed.add(known_gain(spreads, 0).is_better());
        const auto best = std::ranges::min_element(
            spreads, {}, [](const MemberSpread& spread) { return mean(spread.z_scores); });
        const PredictedGain of_best = predicted_gain(spreads[0].z_scores, best->z_scores);
        plain.add(of_best.mean > of_best.deviation);
      }
      fmt::print("{:<16}  {:>8}  {:>12}  {:>22}\n", configs, members, printed.text(), plain.text());
    }
  }
}

}  // namespace

void calibrate_choices(const WantedTables& wanted, const std::string& ranked, int repeats) {
  if (!ranked.empty())
    promise_of(ranked, repeats);
  else if (wanted("promise"))
    promise(repeats);
  if (wanted("gain")) gain(repeats);
  if (wanted("slowdowns")) slowdowns(repeats);
}

}  // namespace tpudist
