// How near the noise ceiling comes to the truth on made-up measurements whose truth is known:
//
//     ceiling_table [SEEDS [CONFIGURATIONS]]
//
// Four kinds of graphs: run times that vary smoothly, that lie on a few levels, smooth ones whose
// fast configurations are repeated most, and smooth ones measured with noise of two humps. "truth"
// is Kendall's tau-b of the true times with the measured ones; "known" and "estimated" are the
// ceiling where noise is given and where it comes from repeats; "added noise" is what comes out
// when noise is added to the measured times instead.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
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
        NoiseCeilingOptions options;
        const NoiseCeiling free = noise_ceiling(graph.times, graph.config, options);
        options.noise = NoiseModel({0}, {deviation}, shape_of(kind));
        known.add(*noise_ceiling(graph.times, graph.config, options).value - true_score);
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

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  tpudist::table(argc > 1 ? std::atoi(argv[1]) : 20, argc > 2 ? std::atoi(argv[2]) : 3000);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("\n{:.1f} s\n", seconds.count());
}
