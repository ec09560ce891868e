// Slates per second of processor time: K = 10 random configurations of a graph with 400
// configurable nodes, read from memory, through the chunk cache and without one. Compare with
// BM_InflateChunk and BM_CopyBytes, the floor of each way, and with NumPy and h5py
// (bench/slates_against_h5py.py). The graphs are made for it, one that is coded and one that is
// not; TPUDIST_BENCH_SHARDS names a shard root with others, of layout:xla:random train.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "core/random.hpp"
#include "core/thread_pool.hpp"
#include "data/convert/converter.hpp"
#include "data/loading/dataset.hpp"
#include "data/loading/open_graph.hpp"
#include "data/loading/slate_order.hpp"
#include "data/npz/npz_writer.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kNodes = 5000, kConfigNodes = 400;
constexpr int kStates = 8, kSlate = 10;

const Collection& collection() {
  static const Collection layout = Collection::parse("layout:xla:random");
  return layout;
}

// Features that hardly ever repeat, so that coding does not pay.
void fill_uncoded_row(std::int64_t row, std::span<float> features) {
  CounterRng random(static_cast<std::uint64_t>(row));
  for (float& value : features) value = static_cast<float>(random.below(7)) - 1;
}

// Eight states of each node, told apart by their first two dimensions.
void fill_coded_row(std::int64_t row, std::span<float> features) {
  CounterRng random(static_cast<std::uint64_t>(row));
  for (std::size_t node = 0; node < kConfigNodes; ++node) {
    const auto state = random.below(kStates);
    for (std::size_t k = 0; k < 18; ++k)
      features[node * 18 + k] = k < 4 ? static_cast<float>(k) : -1;
    features[node * 18] = static_cast<float>(state % 4);
    features[node * 18 + 1] = static_cast<float>(state / 4);
  }
}

void write_npz(const std::filesystem::path& path, std::int64_t configs,
               void (*fill_row)(std::int64_t, std::span<float>)) {
  std::filesystem::create_directories(path.parent_path());
  NpzWriter npz(path, {.deflate_level = 1});
  std::vector<std::int64_t> edges, config_ids, runtime;
  for (std::int64_t i = 1; i < kNodes; ++i) edges.insert(edges.end(), {i, i - 1});
  for (std::int64_t i = 0; i < kConfigNodes; ++i) config_ids.push_back(i * 10);
  for (std::int64_t i = 0; i < configs; ++i) runtime.push_back(1'000'000 + i * 7919 % 10'007);
  npz.add("node_feat", {kNodes, 140}, std::vector<float>(kNodes * 140, 1));
  npz.add("node_opcode", {kNodes}, std::vector<std::uint8_t>(kNodes, 1));
  npz.add("edge_index", {kNodes - 1, 2}, edges);
  npz.add("node_config_ids", {kConfigNodes}, config_ids);
  npz.add("config_runtime", {configs}, runtime);
  npz.add_streamed<float>("node_config_feat", {configs, kConfigNodes, 18},
                          [&](std::int64_t first, std::span<float> rows) {
                            const std::size_t width = kConfigNodes * 18;
                            for (std::size_t i = 0; i < rows.size() / width; ++i)
                              fill_row(first + static_cast<std::int64_t>(i),
                                       rows.subspan(i * width, width));
                          });
  npz.finish();
}

// A shard root in a temporary folder, made once and removed at the end, or the one that was named.
class Shards {
 public:
  Shards() {
    if (const char* given = std::getenv("TPUDIST_BENCH_SHARDS")) {
      path_ = given;
      return;
    }
    const test::TempDir& root = root_.emplace();
    path_ = root / "shards";
    const auto folder = root / "npz" / collection().folder() / "train";
    write_npz(folder / "coded.npz", 20'000, fill_coded_row);
    write_npz(folder / "uncoded.npz", 2'000, fill_uncoded_row);
    NoProgress progress;
    ConvertOptions options;
    options.npz_root = root / "npz";
    options.shard_root = path_;
    convert(options, progress);
  }
  const std::filesystem::path& path() const { return path_; }

  Dataset open(CacheMode mode, std::uint64_t cache_bytes = 0) const {
    ThreadPool pool(2);
    DatasetOptions options;
    options.shards = path_;
    options.collection = collection();
    options.split = "train";
    options.cache = mode;
    options.cache_bytes = cache_bytes;
    return Dataset::open(options, pool);
  }

 private:
  std::optional<test::TempDir> root_;
  std::filesystem::path path_;
};

const Shards& shards() {
  static const Shards made;
  return made;
}

std::optional<int> find_graph(const Dataset& dataset, bool coded) {
  for (int i = 0; i < dataset.size(); ++i)
    if (dataset.coded(i) == coded) return i;
  return std::nullopt;
}

void draw_slates(benchmark::State& state, const Dataset& dataset, bool coded = true) {
  const auto graph = find_graph(dataset, coded);
  if (!graph) return state.SkipWithError("the shards hold no such graph");
  OrderOptions options;
  options.configs_per_slate = kSlate;
  options.seed = static_cast<std::uint64_t>(state.thread_index()) + 1;
  const SlateOrder order(options, {dataset.rows(*graph)}, dataset.selection_hash());
  for (std::int64_t step = 0; auto _ : state) {
    const Slate slate = dataset.slate(*graph, order.rows(order.item(step++, 0)));
    benchmark::DoNotOptimize(slate.states.data());
  }
  state.SetItemsProcessed(state.iterations());  // slates
}

void BM_SlateFromMemory(benchmark::State& state) {
  const Dataset dataset = shards().open(CacheMode::memory);
  draw_slates(state, dataset);
}
BENCHMARK(BM_SlateFromMemory);

// The cache holds this share of the inflated codes, in percent; 0: every slate inflates its chunks.
void BM_SlateFromChunks(benchmark::State& state) {
  const Dataset all = shards().open(CacheMode::stream);
  const int graph = find_graph(all, /*coded=*/true).value_or(0);
  const auto codes = all.entry(graph).configs * all.entry(graph).config_nodes;
  const auto share = static_cast<std::uint64_t>(codes * state.range(0) / 100);
  const Dataset dataset = shards().open(CacheMode::stream, share);
  draw_slates(state, dataset);
}
BENCHMARK(BM_SlateFromChunks)->Arg(0)->Arg(10)->Arg(50)->Arg(90)->Arg(100);

// Threads share the HDF5 lock, but not the inflating: slates per second of all of them.
void BM_SlateByThreads(benchmark::State& state) {
  const Dataset dataset = shards().open(CacheMode::stream);
  draw_slates(state, dataset);
}
BENCHMARK(BM_SlateByThreads)->UseRealTime()->Threads(1)->Threads(2);

// Configurations without codes: 7,200 values each.
void BM_UncodedSlateFromChunks(benchmark::State& state) {
  const Dataset dataset = shards().open(CacheMode::stream);
  draw_slates(state, dataset, /*coded=*/false);
}
BENCHMARK(BM_UncodedSlateFromChunks);

// The rows of an evaluation in their order, 1,000 at a time.
void BM_RowsInOrderFromChunks(benchmark::State& state) {
  const Dataset dataset = shards().open(CacheMode::stream, 4 << 20);
  std::vector<std::int64_t> rows(1000);
  for (std::int64_t first = 0; auto _ : state) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = first + static_cast<std::int64_t>(i);
    first = (first + 1000) % (dataset.rows(0) / 1000 * 1000);
    const Slate slate = dataset.slate(0, rows);
    benchmark::DoNotOptimize(slate.states.data());
  }
  state.SetItemsProcessed(state.iterations() * 1000);  // configurations
}
BENCHMARK(BM_RowsInOrderFromChunks);

void BM_InflateChunk(benchmark::State& state) {
  const auto entries = list_graphs(shards().path(), collection());
  const OpenGraph graph = OpenGraph::open(entries.at(0), {DuplicatesPolicy::keep});
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; auto _ : state) {
    const ConfigChunk chunk = graph.read_chunk(i++ % graph.chunk_count());
    bytes += static_cast<std::int64_t>(chunk.bytes());
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_InflateChunk);

// What a slate from memory cannot do without: the bytes of its states.
void BM_CopyBytes(benchmark::State& state) {
  const std::vector<std::int32_t> source(kSlate * kConfigNodes, 1);
  for (auto _ : state) {
    std::vector<std::int32_t> copy(source);
    benchmark::DoNotOptimize(copy.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_CopyBytes);

}  // namespace
}  // namespace tpudist
