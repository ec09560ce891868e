#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/tpugraphs.hpp"
#include "models/executors/aten_executor.hpp"
#include "models/executors/aten_replay.hpp"
#include "models/executors/aten_unit.hpp"
#include "models/executors/cpu_executor.hpp"
#include "models/executors/executor.hpp"
#include "models/inputs/graph_input.hpp"
#include "models/kernels/threads.hpp"
#include "models/network/network_layout.hpp"
#include "models/operators/aten_operators.hpp"
#include "models/plans/csr.hpp"
#include "tests/models/network_case.hpp"
#include "tests/models/plans/make_csr.hpp"
#include "tests/models/repeated_case.hpp"

namespace tpudist {
namespace {

using test::CallResult;
using test::Shift;

// A sparse matrix and what it takes its rows from. Values are few integers, so that many are equal,
// and float32 sums of them are exact.
struct SparseCase {
  SparseMatrix matrix;
  at::Tensor x;         // [sources * replicas, width]
  at::Tensor gradient;  // [neighbourhoods * replicas, width]
};

SparseCase sparse_case(std::uint64_t key, std::int64_t neighbourhoods, std::int64_t sources,
                       std::int32_t replicas, std::int64_t width, std::int64_t entries) {
  CounterRng rng(key);
  std::vector<test::CsrEntry> list;
  for (std::int64_t e = 0; e < entries; ++e) {
    // The last neighbourhoods and sources stay without entries; equal entries are parallel edges.
    list.push_back({static_cast<std::int32_t>(rng.below(neighbourhoods - 2)),
                    static_cast<std::int32_t>(rng.below(sources - 2))});
  }
  SparseCase made;
  made.matrix.forward = test::make_csr(neighbourhoods, list);
  made.matrix.transposed = transpose(made.matrix.forward, sources);
  made.matrix.replicas = replicas;
  const auto integers = [&](std::int64_t rows, std::uint64_t spread) {
    std::vector<float> values(rows * width);
    for (float& value : values) value = static_cast<float>(rng.below(spread)) - 2;
    return at::tensor(values).view({rows, width});
  };
  made.x = integers(sources * replicas, 4);
  made.gradient = integers(neighbourhoods * replicas, 5);
  return made;
}

std::vector<SparseCase> sparse_cases() {
  std::vector<SparseCase> all;
  for (const std::int32_t replicas : {1, 3}) {
    all.push_back(sparse_case(1, 9, 7, replicas, 5, 30));
    all.push_back(sparse_case(2, 40, 33, replicas, 8, 200));
    all.push_back(sparse_case(3, 20, 30, replicas, 12, 25));
    all.push_back(sparse_case(4, 3, 3, replicas, 4, 0));
  }
  all.push_back(sparse_case(5, 6, 300, 1, 600, 900));  // more channels than a block has threads
  return all;
}

// Float64 rows whose equal ones autograd tells apart: every source of every neighbourhood as often
// as it has edges.
struct Autograd {
  at::Tensor sum, max, max_gradient;
};

Autograd autograd_of(const SparseCase& made) {
  const Csr& in = made.matrix.forward;
  const std::int64_t replicas = made.matrix.replicas, width = made.x.size(1);
  std::vector<std::int64_t> row, source;
  for (std::int64_t i = 0; i < in.rows(); ++i) {
    for (std::int64_t e = in.begin[i]; e < in.begin[i + 1]; ++e) {
      for (std::int64_t replica = 0; replica < replicas; ++replica) {
        row.insert(row.end(), static_cast<std::size_t>(in.weight_of(e)), i * replicas + replica);
        source.insert(source.end(), static_cast<std::size_t>(in.weight_of(e)),
                      in.source[e] * replicas + replica);
      }
    }
  }
  const at::Tensor x = made.x.to(at::kDouble).requires_grad_();
  const at::Tensor index = at::tensor(row, at::kLong),
                   taken = x.index_select(0, at::tensor(source, at::kLong));
  // What is reduced into must differ from every largest: autograd takes it for one of them.
  const at::Tensor none = at::zeros({in.rows() * replicas, width}, at::kDouble),
                   least = at::full_like(none, -100);
  const at::Tensor reduced =
      least.scatter_reduce(0, index.unsqueeze(1).expand_as(taken), taken, "amax");
  const at::Tensor max = at::where(reduced == least, none, reduced);
  max.backward(made.gradient.to(at::kDouble));
  return {none.index_add(0, index, taken).detach(), max.detach(), x.grad()};
}

DeviceCsr on_device(const Csr& csr, at::Device device) {
  const auto tensor = [&]<typename T>(const std::vector<T>& values) {
    return at::tensor(at::ArrayRef<T>(values)).to(device);
  };
  return {tensor(csr.begin), tensor(csr.source), tensor(csr.weight)};
}

DeviceSparseMatrix on_device(const SparseMatrix& matrix, at::Device device) {
  return {on_device(matrix.forward, device), on_device(matrix.transposed, device), matrix.replicas};
}

void expect_equal(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_TRUE(at::equal(actual.cpu().to(at::kDouble), expected.cpu().to(at::kDouble)))
      << actual << "\nexpected\n"
      << expected;
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_TRUE(
      at::allclose(actual.cpu().to(at::kDouble), expected.cpu().to(at::kDouble), 1e-6, 1e-6))
      << actual << "\nexpected\n"
      << expected;
}

TEST(AtenOperators, SumAndMaxEqualPlainAutograd) {
  for (const SparseCase& made : sparse_cases()) {
    const Autograd expected = autograd_of(made);
    const DeviceSparseMatrix matrix = on_device(made.matrix, at::kCPU);
    const at::Tensor best = spmm_max(matrix.forward, matrix.replicas, made.x);
    expect_equal(spmm(matrix.forward, matrix.replicas, made.x), expected.sum);
    expect_equal(best, expected.max);
    expect_close(spmm_max_backward(matrix, made.x, best, made.gradient), expected.max_gradient);
  }
}

TEST(AtenOperators, RoundsTheFloatSumToBf16) {
  for (const SparseCase& made : sparse_cases()) {
    const DeviceCsr matrix = on_device(made.matrix.forward, at::kCPU);
    const at::Tensor x = made.x / 3;
    const at::Tensor sum = spmm(matrix, made.matrix.replicas, x, at::kBFloat16);
    EXPECT_EQ(sum.scalar_type(), at::kBFloat16);
    expect_equal(sum, spmm(matrix, made.matrix.replicas, x).to(at::kBFloat16));
  }
}

// Neither the rows below it nor the other replicas and channels see it.
TEST(AtenOperators, NanGoesThroughAMaxWhereItIs) {
  SparseCase made = sparse_case(2, 40, 33, 3, 8, 200);
  const std::int64_t source = made.matrix.forward.source[1], replica = 1, channel = 2;
  made.x.index_put_({source * 3 + replica, channel}, std::numeric_limits<float>::quiet_NaN());
  const DeviceSparseMatrix matrix = on_device(made.matrix, at::kCPU);
  const at::Tensor best = spmm_max(matrix.forward, 3, made.x);
  at::Tensor expected = at::zeros_like(best).to(at::kBool);
  const Csr& out = made.matrix.transposed;
  for (std::int64_t e = out.begin[source]; e < out.begin[source + 1]; ++e)
    expected.index_put_({out.source[e] * 3 + replica, channel}, true);
  EXPECT_TRUE(at::equal(best.isnan(), expected));
  EXPECT_FALSE(spmm_max_backward(matrix, made.x, best, made.gradient).isnan().any().item<bool>());
}

NetworkConfig mixed_network(Aggregation aggregation) {
  const auto sage = [&](std::int64_t width, std::vector<EdgeKind> directions) {
    SageConfig layer;
    layer.width = width;
    layer.mix = {std::move(directions), aggregation};
    return layer;
  };
  const auto forth = EdgeKind::consumer_to_producer, back = EdgeKind::producer_to_consumer;
  NetworkConfig config;
  config.encoder = {4, 8, 16};
  config.layers = {sage(16, {forth, back}), sage(16, {forth}), sage(7, {back})};
  config.layers[0].residual = true;
  config.layers[1].activation = Activation::none;
  return config;
}

// Both plans of two graphs of repeated blocks; seeds give other graphs or only other choices.
std::vector<UnitInput> units_of(const Network& network, std::uint64_t graphs_seed,
                                std::uint64_t configs_seed) {
  CounterRng random(graphs_seed), choice(configs_seed);
  test::RepeatedUnit unit;
  for (int g = 0; g < 2; ++g)
    unit.graphs.push_back(
        test::random_graph(random, 6, 3, test::Configurable::few, kLayoutConfigFeatures));
  for (const int g : {0, 1, 0})
    unit.slates.push_back(test::random_configs(choice, unit.graphs, g, 4));
  return {test::dense_unit(network, unit), test::refined_unit(network, unit)};
}

CallResult call(const Executor& executor, const NetworkLayout& layout, std::span<const float> flat,
                int count, const UnitInput& unit, Shift shift = Shift::counts) {
  CallResult result;
  result.gradients.assign(count, std::vector<float>(layout.table.length(), 7.0f));
  const std::vector<std::span<float>> spans(result.gradients.begin(), result.gradients.end());
  executor.gradient({flat, 0, count}, unit, test::weighted_sum(*unit.plan, shift, result.scores),
                    spans, shift != Shift::ignored_by_caller);
  return result;
}

void expect_same_bits(const CallResult& actual, const CallResult& expected) {
  EXPECT_EQ(actual.scores.delta, expected.scores.delta);
  EXPECT_EQ(actual.scores.common, expected.scores.common);
  EXPECT_EQ(actual.gradients, expected.gradients);
}

void expect_near(std::span<const double> actual, std::span<const double> expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double square = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    square += expected[i] * expected[i];
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
  }
  EXPECT_GT(square, 0);
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(square));
}

void expect_near(const CallResult& actual, const CallResult& expected, double tolerance) {
  expect_near(actual.scores.delta, expected.scores.delta, tolerance);
  for (std::size_t m = 0; m < expected.gradients.size(); ++m) {
    const auto wide = [&](const CallResult& of) {
      return std::vector<double>(of.gradients[m].begin(), of.gradients[m].end());
    };
    expect_near(wide(actual), wide(expected), tolerance);
  }
}

void expect_cpu_results(Aggregation aggregation, Precision precision, double tolerance,
                        int device_index = -1) {
  ThreadPool pool(1, use_one_thread_per_worker);
  NetworkConfig config = mixed_network(aggregation);
  config.precision = precision;
  const Network network(config, kLayoutConfigFeatures, -1, pool);
  const NetworkLayout layout(config, kLayoutConfigFeatures);
  const auto cpu = make_cpu_executor(config, kLayoutConfigFeatures, layout.table, false, pool),
             aten = make_aten_executor(layout, config.output_scale, device_index);
  const AlignedFloats flat = test::random_parameters(network, 2, 5);
  for (const UnitInput& unit : units_of(network, 1, 1)) {
    for (const Shift shift : {Shift::counts, Shift::ignored_and_told, Shift::ignored_by_caller}) {
      const CallResult expected = call(*cpu, layout, flat, 2, unit, shift);
      expect_near(call(*aten, layout, flat, 2, unit, shift), expected, tolerance);
    }
  }
}

TEST(AtenExecutor, AggregatesLikeTheCpuExecutor) {
  for (const Aggregation aggregation : {Aggregation::mean, Aggregation::sum, Aggregation::max}) {
    expect_cpu_results(aggregation, Precision::fp32, 1e-5);
    expect_cpu_results(aggregation, Precision::bf16, 1e-2);
  }
}

TEST(AtenExecutor, StagingChangesNoBit) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const NetworkConfig config = mixed_network(Aggregation::mean);
  const Network network(config, kLayoutConfigFeatures, -1, pool);
  const NetworkLayout layout(config, kLayoutConfigFeatures);
  const auto executor = make_aten_executor(layout, config.output_scale, -1);
  const AlignedFloats flat = test::random_parameters(network, 2, 5);
  for (UnitInput unit : units_of(network, 1, 1)) {
    const CallResult expected = call(*executor, layout, flat, 2, unit);
    unit.staged = executor->stage(unit);
    ASSERT_NE(unit.staged, nullptr);
    for (int again = 0; again < 2; ++again)
      expect_same_bits(call(*executor, layout, flat, 2, unit), expected);
    EXPECT_EQ(executor->scores({flat, 0, 2}, unit).delta, expected.scores.delta);
  }
}

// Equal layers go over once: a deeper network of equal layers has no more arrays.
TEST(AtenUnit, SendsSharedStepsOnceOnAlignedPlaces) {
  ThreadPool pool(1, use_one_thread_per_worker);
  NetworkConfig config = mixed_network(Aggregation::mean);
  config.layers.assign(2, config.layers[1]);
  std::vector<std::size_t> arrays;
  for (int more = 0; more < 2; ++more) {
    const Network network(config, kLayoutConfigFeatures, -1, pool);
    UnitInput unit = units_of(network, 1, 1)[0];
    const StagedUnit staged = stage_unit(unit, kLayoutConfigFeatures, at::kCPU);
    arrays.push_back(staged.arrays.size());
    std::int64_t end = 0;
    for (const UnitArray& place : staged.arrays) {
      EXPECT_EQ(place.begin % 256, 0);
      EXPECT_GE(place.begin, end);
      end = place.begin + place.count * static_cast<std::int64_t>(at::elementSize(place.type));
    }
    EXPECT_LE(end, staged.buffer.numel());
    const DeviceUnit view = view_unit(unit, staged, staged.buffer, kLayoutConfigFeatures);
    EXPECT_EQ(view.layers.front(), view.layers.back());
    EXPECT_TRUE(at::equal(view.node, at::tensor(at::ArrayRef<std::int32_t>(unit.plan->node))));
    config.layers.assign(5, config.layers[1]);
  }
  EXPECT_EQ(arrays[0], arrays[1]);
}

CallSignature signature(const UnitInput& unit, int members = 2, bool backward = true) {
  return call_signature(unit, stage_unit(unit, kLayoutConfigFeatures, at::kCPU), members, backward);
}

// Dense units in the order of a replay's test: A, B, A, A', B', A, where A' has A's graphs and
// sizes with other configurations, and B has other graphs.
std::vector<UnitInput> replayed_units(const Network& network) {
  const UnitInput a = units_of(network, 1, 1)[0], b = units_of(network, 2, 1)[0];
  UnitInput other_a = units_of(network, 1, 2)[0], other_b = units_of(network, 2, 2)[0];
  other_a.graphs = a.graphs;
  other_b.graphs = b.graphs;
  EXPECT_NE(other_a.plan->state, a.plan->state);
  EXPECT_EQ(signature(other_a), signature(a));
  EXPECT_NE(signature(b), signature(a));
  return {a, b, a, other_a, other_b, a};
}

TEST(AtenReplay, SignaturesTellApartWhatIsLaunchedOtherwise) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const Network network(mixed_network(Aggregation::mean), kLayoutConfigFeatures, -1, pool);
  const std::vector<UnitInput> units = units_of(network, 1, 1);
  const CallSignature plain = signature(units[0]);
  EXPECT_EQ(signature(units[0]), plain);
  EXPECT_NE(signature(units[1]), plain);
  EXPECT_NE(signature(units[0], 3), plain);
  EXPECT_NE(signature(units[0], 2, false), plain);
  UnitInput changed = units[0];
  changed.graphs = units_of(network, 1, 1)[0].graphs;  // equal, but other buffers
  EXPECT_NE(signature(changed), plain);
  Plan plan = *units[0].plan;
  --plan.needed_counts[1].rows;
  changed = units[0];
  changed.plan = std::make_shared<Plan>(plan);
  EXPECT_NE(signature(changed), plain);
}

TEST(AtenReplay, KeepsWhatComesAgainAndDropsTheLeastRecentlyUsed) {
  ThreadPool pool(1, use_one_thread_per_worker);
  const NetworkConfig config = mixed_network(Aggregation::mean);
  const Network network(config, kLayoutConfigFeatures, -1, pool);
  const NetworkLayout layout(config, kLayoutConfigFeatures);
  const AtenPass pass(layout, at::kCPU);
  CallCache cache(at::kCPU, 2);
  std::vector<UnitInput> units;
  for (std::uint64_t seed = 0; seed < 3; ++seed) units.push_back(units_of(network, seed, 1)[0]);
  const auto take = [&](int unit) {
    return cache.take(pass, units[unit], stage_unit(units[unit], kLayoutConfigFeatures, at::kCPU),
                      1, true);
  };
  EXPECT_FALSE(take(0).is_kept());
  EXPECT_TRUE(take(0).is_kept());
  {
    const CallCache::Lease lent = take(0);
    EXPECT_TRUE(lent.is_kept());
    EXPECT_FALSE(take(0).is_kept());
  }
  for (const int unit : {1, 2}) take(unit);
  for (const int unit : {1, 2}) EXPECT_TRUE(take(unit).is_kept());  // drops 0
  EXPECT_FALSE(take(0).is_kept());
  EXPECT_TRUE(take(1).is_kept());
  EXPECT_TRUE(take(0).is_kept());  // drops 2
  EXPECT_TRUE(take(1).is_kept());
  EXPECT_FALSE(take(2).is_kept());
}

void expect_replays_bits(int device_index) {
  ThreadPool pool(1, use_one_thread_per_worker);
  for (const Aggregation aggregation : {Aggregation::mean, Aggregation::max}) {
    const NetworkConfig config = mixed_network(aggregation);
    const Network network(config, kLayoutConfigFeatures, -1, pool);
    const NetworkLayout layout(config, kLayoutConfigFeatures);
    const auto plain = make_aten_executor(layout, config.output_scale, device_index),
               replayed = make_aten_executor(layout, config.output_scale, device_index, true);
    std::vector<UnitInput> units = replayed_units(network);
    for (const UnitInput& refined : {units_of(network, 1, 1)[1], units_of(network, 2, 1)[1]})
      units.insert(units.end(), 3, refined);
    std::uint64_t key = 0;
    for (const UnitInput& unit : units) {
      const AlignedFloats flat = test::random_parameters(network, 2, ++key);
      for (const Shift shift : {Shift::counts, Shift::ignored_and_told, Shift::ignored_by_caller}) {
        expect_same_bits(call(*replayed, layout, flat, 2, unit, shift),
                         call(*plain, layout, flat, 2, unit, shift));
      }
      EXPECT_EQ(replayed->scores({flat, 0, 2}, unit).delta,
                plain->scores({flat, 0, 2}, unit).delta);
    }
  }
}

TEST(AtenReplay, EqualsUnrecordedCallsBitForBit) {
  expect_replays_bits(-1);
}

// More shapes than are kept, round and round, from several threads that meet on the same ones.
void expect_shared_replays(int device_index) {
  ThreadPool pool(3, use_one_thread_per_worker);
  const NetworkConfig config = mixed_network(Aggregation::sum);
  const Network network(config, kLayoutConfigFeatures, -1, pool);
  const NetworkLayout layout(config, kLayoutConfigFeatures);
  const auto plain = make_aten_executor(layout, config.output_scale, device_index),
             replayed = make_aten_executor(layout, config.output_scale, device_index, true);
  const AlignedFloats flat = test::random_parameters(network, 2, 1);
  std::vector<UnitInput> units;
  std::vector<CallResult> expected;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    units.push_back(units_of(network, seed, 1)[0]);
    expected.push_back(call(*plain, layout, flat, 2, units.back()));
  }
  std::vector<CallResult> results(120);
  const auto unit_of = [&](std::int64_t i) { return i % 3 == 0 ? i % 10 : i % 2; };
  pool.parallel_for(results.size(), [&](std::int64_t i) {
    results[i] = call(*replayed, layout, flat, 2, units[unit_of(i)]);
  });
  for (std::size_t i = 0; i < results.size(); ++i)
    expect_same_bits(results[i], expected[unit_of(i)]);
}

TEST(AtenReplay, ThreadsShareRecordedCalls) {
  expect_shared_replays(-1);
}

// The same on a device. Sums of few small integers are exact in any order; the networks' products
// are not.
class AtenOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU";
  }
  const at::Device gpu_ = at::Device(at::kCUDA, 0);
};

TEST_F(AtenOnGpu, KernelsEqualAten) {
  for (const SparseCase& made : sparse_cases()) {
    const std::int64_t replicas = made.matrix.replicas;
    const DeviceSparseMatrix cpu = on_device(made.matrix, at::kCPU),
                             gpu = on_device(made.matrix, gpu_);
    const at::Tensor x = made.x.to(gpu_), best = spmm_max(gpu.forward, replicas, x);
    expect_equal(spmm(gpu.forward, replicas, x), spmm_by_aten(cpu.forward, replicas, made.x));
    expect_equal(spmm(gpu.forward, replicas, x, at::kBFloat16),
                 spmm_by_aten(cpu.forward, replicas, made.x).to(at::kBFloat16));
    expect_equal(best, spmm_max_by_aten(cpu.forward, replicas, made.x));
    expect_close(spmm_max_backward(gpu, x, best, made.gradient.to(gpu_)),
                 spmm_max_backward_by_aten(cpu, made.x, best.cpu(), made.gradient));
  }
}

// Rounding after the sum and rounding in the kernel; rows that are not aligned take narrow loads.
TEST_F(AtenOnGpu, KernelsRoundAndAlignAlike) {
  for (const SparseCase& made : sparse_cases()) {
    const std::int64_t replicas = made.matrix.replicas;
    const DeviceSparseMatrix gpu = on_device(made.matrix, gpu_);
    const at::Tensor x = (made.x / 3).to(gpu_), sum = spmm(gpu.forward, replicas, x);
    expect_equal(spmm(gpu.forward, replicas, x, at::kBFloat16), sum.to(at::kBFloat16));
    const at::Tensor moved =
        at::cat({at::zeros({1}, x.options()), x.flatten()}).narrow(0, 1, x.numel());
    expect_equal(spmm(gpu.forward, replicas, moved.view_as(x)), sum);
    expect_equal(spmm_max(gpu.forward, replicas, moved.view_as(x)),
                 spmm_max(gpu.forward, replicas, x));
  }
}

TEST_F(AtenOnGpu, NanGoesThroughAMaxAsOnTheCpu) {
  SparseCase made = sparse_case(2, 40, 33, 3, 8, 200);
  made.x.index_put_({made.matrix.forward.source[1] * 3 + 1, 2},
                    std::numeric_limits<float>::quiet_NaN());
  const DeviceSparseMatrix cpu = on_device(made.matrix, at::kCPU),
                           gpu = on_device(made.matrix, gpu_);
  const at::Tensor best = spmm_max(cpu.forward, 3, made.x),
                   on_gpu = spmm_max(gpu.forward, 3, made.x.to(gpu_));
  EXPECT_TRUE(at::equal(on_gpu.cpu().isnan(), best.isnan()));
  expect_close(spmm_max_backward(gpu, made.x.to(gpu_), on_gpu, made.gradient.to(gpu_)),
               spmm_max_backward(cpu, made.x, best, made.gradient));
}

TEST_F(AtenOnGpu, ExecutorEqualsTheCpuExecutor) {
  for (const Aggregation aggregation : {Aggregation::mean, Aggregation::sum, Aggregation::max}) {
    expect_cpu_results(aggregation, Precision::fp32, 1e-4, 0);
    expect_cpu_results(aggregation, Precision::bf16, 2e-2, 0);
  }
}

TEST_F(AtenOnGpu, ReplayEqualsUnrecordedCallsBitForBit) {
  expect_replays_bits(0);
}

TEST_F(AtenOnGpu, ThreadsShareRecordedCalls) {
  expect_shared_replays(0);
}

}  // namespace
}  // namespace tpudist
