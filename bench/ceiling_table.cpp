// How near the noise ceiling comes to the truth on made-up measurements whose truth is known:
//
//     ceiling_table [SEEDS [CONFIGURATIONS]]
//     ceiling_table few [SEEDS]
//
// Four kinds of graphs: run times that vary smoothly, that lie on a few levels, smooth ones whose
// fast configurations are repeated most, and smooth ones measured with noise of two humps. "truth"
// is Kendall's tau-b of the true times with the measured ones; "known" and "estimated" are the
// ceiling where noise is given and where it comes from repeats; "added noise" is what comes out
// when noise is added to the measured times instead. `few`: too few repeats for the shape of the
// noise, 300 configurations of which one in five was measured two or three times.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "statistics/noise/noise_ceiling.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist {
namespace {

using test::NoisyGraph;

// The mean measured times of the configurations as if they were the truth, with noise added.
double added_noise(const NoisyGraph& graph, NoisyGraph::Kind kind, double deviation,
                   std::uint64_t key) {
  CounterRng random(key);
  std::vector<double> again;
  for (const double time : graph.means())
    again.push_back(time * std::exp(deviation * NoisyGraph::noise(kind, random)));
  return kendall_tau_b(graph.means(), again);
}

// The true shape of the noise.
NoiseShape shape_of(NoisyGraph::Kind kind) {
  if (kind != NoisyGraph::two_humps) return {};
  CounterRng random(1);
  std::vector<NoiseShape::Deviation> sample;
  for (int i = 0; i < 100000; ++i) sample.push_back({NoisyGraph::noise(kind, random), 0});
  return NoiseShape(sample);
}

struct Column {
  double sum = 0, squares = 0, largest = 0;
  void add(double error) {
    sum += error;
    squares += error * error;
    largest = std::max(largest, std::abs(error));
  }
  std::string text(int n) const {
    return fmt::format("{:+.4f} | {:.4f} | {:.4f}", sum / n, std::sqrt(squares / n), largest);
  }
};

void table(int seeds, int configs) {
  fmt::print("{} seeds, {} configurations; error: mean, root mean square, largest\n\n", seeds,
             configs);
  fmt::print("| run times | noise | truth | known | | | estimated | | | inside | added noise |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto kind :
       {NoisyGraph::smooth, NoisyGraph::levels, NoisyGraph::preferential, NoisyGraph::two_humps}) {
    for (const double deviation : {0.001, 0.004, 0.016}) {
      Column known, estimated, added;
      double truth = 0;
      int inside = 0;
      for (int s = 0; s < seeds; ++s) {
        const auto seed = static_cast<std::uint64_t>(s);
        const NoisyGraph graph(kind, configs, deviation, mix_key({seed, 77}));
        const double true_score = kendall_tau_b(graph.truth, graph.times);
        const NoiseCeiling free = noise_ceiling(graph.times, graph.config);
        const NoiseModel noise({0}, {deviation}, shape_of(kind));
        known.add(*noise_ceiling(graph.times, graph.config, 1, noise).value - true_score);
        truth += true_score / seeds;
        added.add(added_noise(graph, kind, deviation, seed) - true_score);
        if (!free.value) {
          fmt::print("{}\n", to_text(free));
          continue;
        }
        estimated.add(*free.value - true_score);
        inside += free.low <= true_score && true_score <= free.high;
      }
      fmt::print("| {} | {:.1f} % | {:.4f} | {} | {} | {}/{} | {:+.4f} |\n",
                 NoisyGraph::name_of(kind), 100 * deviation, truth, known.text(seeds),
                 estimated.text(seeds), inside, seeds, added.sum / seeds);
    }
  }
}

void few_repeats(int seeds) {
  fmt::print("{} seeds, 300 configurations, 60 of them measured two or three times\n\n", seeds);
  fmt::print(
      "| noise | SD | truth | error | below | above | inside |\n|---|---|---|---|---|---|---|\n");
  for (const auto kind : {NoisyGraph::smooth, NoisyGraph::rising, NoisyGraph::student,
                          NoisyGraph::exponential, NoisyGraph::two_humps}) {
    for (const double deviation : {0.002, 0.005, 0.01, 0.02}) {
      double truth = 0, error = 0, below = 0, above = 0;
      int inside = 0;
      for (int s = 0; s < seeds; ++s) {
        const NoisyGraph graph(kind, 300, deviation, mix_key({static_cast<std::uint64_t>(s), 78}),
                               true);
        const double true_score = kendall_tau_b(graph.truth, graph.times);
        const NoiseCeiling found = noise_ceiling(graph.times, graph.config);
        truth += true_score / seeds;
        error += (*found.value - true_score) / seeds;
        below += (*found.value - found.low) / seeds;
        above += (found.high - *found.value) / seeds;
        inside += found.low <= true_score && true_score <= found.high;
      }
      fmt::print("| {} | {:.1f} % | {:.3f} | {:+.3f} | {:.3f} | {:.3f} | {:.0f} % |\n",
                 NoisyGraph::name_of(kind), 100 * deviation, truth, error, below, above,
                 100.0 * inside / seeds);
    }
  }
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  if (argc > 1 && std::string_view(argv[1]) == "few")
    tpudist::few_repeats(argc > 2 ? std::atoi(argv[2]) : 200);
  else
    tpudist::table(argc > 1 ? std::atoi(argv[1]) : 20, argc > 2 ? std::atoi(argv[2]) : 3000);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("\n{:.1f} s\n", seconds.count());
}
