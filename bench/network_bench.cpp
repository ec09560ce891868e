// Time of one training gradient on dense plans. `share` is its rate of multiply-adds over the rate
// of plain matrix products (512 x 512 x 512, one a thread at the same time) measured in the same
// run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "core/aligned.hpp"
#include "core/random.hpp"
#include "core/thread_pool.hpp"
#include "models/gemm.hpp"
#include "models/graph_input.hpp"
#include "models/network.hpp"
#include "models/threads.hpp"

namespace tpudist {
namespace {

struct Workload {
  const char* preset;
  std::int64_t nodes, edges, config_nodes;
  int slates, configs, members;
};

const Workload kWorkloads[] = {
    {"latenciaga_xla", 372, 597, 26, 10, 4,
     5},  // AlexNet's training step, a batch of the 2nd place
    {"latenciaga_xla", 372, 597, 26, 10, 4, 1},
    {"latenciaga_xla", 3163, 5112, 62, 1, 10, 5},  // a step of ResNet
    {"latenciaga_nlp", 3163, 5112, 62, 1, 10, 1},
    {"latenciaga_nlp", 372, 597, 26, 4, 10, 5},
    {"latenciaga_tile", 40, 50, 0, 10, 10, 5},
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double product_rate(ThreadPool& pool) {
  constexpr int kSize = 512, kRepeats = 40;
  std::vector<AlignedFloats> buffers(pool.threads(), AlignedFloats(3 * kSize * kSize, 0.5f));
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const Clock::time_point start = Clock::now();
    pool.parallel_for(pool.threads(), [&](std::int64_t i) {
      float* const a = buffers[i].data();
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        gemm(kSize, kSize, kSize, {a, kSize}, {a + kSize * kSize, kSize}, 0, a + 2 * kSize * kSize,
             kSize);
      }
    });
    best = std::max(
        best, 2e-9 * kSize * kSize * kSize * kRepeats * pool.threads() / seconds_since(start));
  }
  return best;
}

UnitInput make_unit(const Network& network, const Workload& work, std::uint64_t key) {
  CounterRng rng(key);
  std::vector<float> features(work.nodes * GraphInput::features);
  for (float& x : features) x = rng.uniform() < 0.7 ? 0 : static_cast<float>(rng.uniform(0, 1000));
  std::vector<std::uint8_t> opcodes(work.nodes);
  for (auto& opcode : opcodes) opcode = static_cast<std::uint8_t>(rng.below(GraphInput::opcodes));
  std::vector<std::int32_t> edges, config_nodes, states;
  for (std::int64_t e = 0; e < work.edges; ++e) {
    const auto producer = static_cast<std::int32_t>(rng.below(work.nodes - 1));
    const auto span = std::min<std::int64_t>(work.nodes - producer - 1, 8);
    edges.insert(edges.end(),
                 {static_cast<std::int32_t>(producer + 1 + rng.below(span)), producer});
  }
  for (std::int64_t j = 0; j < work.config_nodes; ++j) {
    config_nodes.push_back(static_cast<std::int32_t>(j * work.nodes / work.config_nodes));
  }
  const std::int64_t per_config = std::max<std::int64_t>(work.config_nodes, 1);
  const std::int64_t state_rows = work.config_nodes ? 8 * work.config_nodes : work.configs;
  for (std::int64_t i = 0; i < work.configs * per_config; ++i) {
    states.push_back(static_cast<std::int32_t>(rng.below(state_rows)));
  }
  PlanSlate slate{work.nodes, edges, config_nodes, work.configs, states, state_rows};
  UnitInput input;
  input.graphs = {network.prepare_graph(features, opcodes)};
  input.plan = std::make_shared<Plan>(build_dense_plan(std::span(&slate, 1), network.plan_shape()));
  input.states.resize(state_rows * (work.config_nodes ? 18 : 24));
  for (float& x : input.states) x = static_cast<float>(rng.below(7)) - 1;
  return input;
}

double multiply_adds(const NetworkConfig& network, const Plan& plan) {
  double flops = 0;
  std::int64_t in = network.encoder.width;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const SageConfig& layer = network.layers[i];
    flops += 2.0 * plan.steps[i]->rows_out * (layer.mix.directions.size() + 1) * in * layer.width;
    in = layer.width;
  }
  return 3 * flops;  // the weights' and the inputs' gradients cost as much again
}

void network_gradient(benchmark::State& state) {
  const Workload& work = kWorkloads[state.range(0)];
  const bool side_by_side = state.range(1);
  use_one_thread_per_worker();
  ThreadPool pool(static_cast<int>(std::thread::hardware_concurrency()), use_one_thread_per_worker);
  const Network network(NetworkConfig::preset(work.preset), work.config_nodes ? 18 : 24, -1, pool);
  const std::int64_t length = network.parameters().length();
  AlignedFloats flat(work.members * length);
  for (int m = 0; m < work.members; ++m)
    network.initialise(std::span(flat).subspan(m * length, length), m);
  std::vector<UnitInput> units;
  for (int s = 0; s < work.slates; ++s) units.push_back(make_unit(network, work, s));
  std::vector<AlignedFloats> gradients(work.slates, AlignedFloats(flat.size()));
  const auto run = [&](std::int64_t unit) {
    std::vector<std::span<float>> spans;
    for (int m = 0; m < work.members; ++m)
      spans.push_back(std::span(gradients[unit]).subspan(m * length, length));
    const auto loss = [](const UnitScores& scores) {
      return ScoreGradient{std::vector<double>(scores.delta.size(), 1.0), {}};
    };
    network.gradient(flat, 0, work.members, units[unit], loss, spans);
  };
  double flops = 0;
  for (const UnitInput& unit : units)
    flops += work.members * multiply_adds(network.config(), *unit.plan);

  double best = 1e30;
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    if (side_by_side) {
      pool.parallel_for(work.slates, run);
    } else {
      for (int unit = 0; unit < work.slates; ++unit) run(unit);
    }
    best = std::min(best, seconds_since(start));
  }
  const double products = product_rate(pool);
  state.SetLabel(std::string(work.preset) + " " + std::to_string(work.nodes) + " nodes, " +
                 std::to_string(work.slates) + " x " + std::to_string(work.configs) + " configs, " +
                 std::to_string(work.members) + " members");
  state.counters["s"] = best;
  state.counters["GFLOP/s"] = flops * 1e-9 / best;
  state.counters["gemm"] = products;
  state.counters["share"] = flops * 1e-9 / best / products;
}

BENCHMARK(network_gradient)
    ->ArgNames({"work", "side_by_side"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, std::size(kWorkloads) - 1, 1), {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->MinTime(1.5)
    ->UseRealTime();

}  // namespace
}  // namespace tpudist
