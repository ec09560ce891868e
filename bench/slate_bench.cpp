// Slates per second: K = 10 random configurations of a graph with 400 configurable nodes, read from
// memory and through the chunk cache. Compare with BM_InflateChunk and BM_CopyBytes, the floor of
// each way.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

#include "core/random.hpp"
#include "core/thread_pool.hpp"
#include "data/converter.hpp"
#include "data/dataset.hpp"
#include "data/npz_writer.hpp"
#include "data/open_graph.hpp"
#include "data/slate_order.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kNodes = 5000, kConfigNodes = 400, kConfigs = 20'000;
constexpr int kStates = 8, kSlate = 10;

// Eight states of each node, told apart by their first two dimensions.
void fill_row(std::int64_t row, std::span<float> features) {
  CounterRng random(static_cast<std::uint64_t>(row));
  for (std::size_t node = 0; node < kConfigNodes; ++node) {
    const auto state = random.below(kStates);
    for (std::size_t k = 0; k < 18; ++k)
      features[node * 18 + k] = k < 4 ? static_cast<float>(k) : -1;
    features[node * 18] = static_cast<float>(state % 4);
    features[node * 18 + 1] = static_cast<float>(state / 4);
  }
}

void write_npz(const std::filesystem::path& path) {
  std::filesystem::create_directories(path.parent_path());
  NpzWriter npz(path, {.deflate_level = 1});
  std::vector<std::int64_t> edges, config_ids, runtime;
  for (std::int64_t i = 1; i < kNodes; ++i) edges.insert(edges.end(), {i, i - 1});
  for (std::int64_t i = 0; i < kConfigNodes; ++i) config_ids.push_back(i * 10);
  for (std::int64_t i = 0; i < kConfigs; ++i) runtime.push_back(1'000'000 + i * 7919 % 10'007);
  npz.add("node_feat", {kNodes, 140}, std::vector<float>(kNodes * 140, 1));
  npz.add("node_opcode", {kNodes}, std::vector<std::uint8_t>(kNodes, 1));
  npz.add("edge_index", {kNodes - 1, 2}, edges);
  npz.add("node_config_ids", {kConfigNodes}, config_ids);
  npz.add("config_runtime", {kConfigs}, runtime);
  npz.add_streamed<float>("node_config_feat", {kConfigs, kConfigNodes, 18},
                          [](std::int64_t first, std::span<float> rows) {
                            const std::size_t width = kConfigNodes * 18;
                            for (std::size_t i = 0; i < rows.size() / width; ++i)
                              fill_row(first + static_cast<std::int64_t>(i),
                                       rows.subspan(i * width, width));
                          });
  npz.finish();
}

// A shard root in a temporary folder, made once and removed at the end.
class Shards {
 public:
  Shards() {
    std::string name = (std::filesystem::temp_directory_path() / "tpudist-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    root_ = name;
    write_npz(root_ / "npz/layout/nlp/random/train/graph.npz");
    NoProgress progress;
    ConvertOptions options;
    options.npz_root = root_ / "npz";
    options.shard_root = path();
    convert(options, progress);
  }
  ~Shards() { std::filesystem::remove_all(root_); }
  std::filesystem::path path() const { return root_ / "shards"; }

  Dataset open(CacheMode mode, std::uint64_t cache_bytes = 0) const {
    ThreadPool pool(2);
    DatasetOptions options;
    options.shards = path();
    options.collection = Collection::parse("layout:nlp:random");
    options.split = "train";
    options.cache = mode;
    options.cache_bytes = cache_bytes;
    return Dataset::open(options, pool);
  }

 private:
  std::filesystem::path root_;
};

const Shards& shards() {
  static const Shards made;
  return made;
}

void draw_slates(benchmark::State& state, const Dataset& dataset) {
  OrderOptions options;
  options.configs_per_slate = kSlate;
  const SlateOrder order(options, {dataset.rows(0)}, dataset.selection_hash());
  for (std::int64_t step = 0; auto _ : state) {
    const Slate slate = dataset.slate(0, order.rows(order.item(step++, 0)));
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
  const auto share = static_cast<std::uint64_t>(state.range(0));
  const Dataset dataset = shards().open(CacheMode::stream, kConfigs * kConfigNodes * share / 100);
  draw_slates(state, dataset);
}
BENCHMARK(BM_SlateFromChunks)->Arg(0)->Arg(50)->Arg(90)->Arg(100);

// The rows of an evaluation in their order, 1,000 at a time.
void BM_RowsInOrderFromChunks(benchmark::State& state) {
  const Dataset dataset = shards().open(CacheMode::stream, 4 << 20);
  std::vector<std::int64_t> rows(1000);
  for (std::int64_t first = 0; auto _ : state) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = first + static_cast<std::int64_t>(i);
    first = (first + 1000) % kConfigs;
    const Slate slate = dataset.slate(0, rows);
    benchmark::DoNotOptimize(slate.states.data());
  }
  state.SetItemsProcessed(state.iterations() * 1000);  // configurations
}
BENCHMARK(BM_RowsInOrderFromChunks);

void BM_InflateChunk(benchmark::State& state) {
  const auto entries = list_graphs(shards().path(), Collection::parse("layout:nlp:random"));
  const OpenGraph graph = OpenGraph::open(entries.at(0), Collection::parse("layout:nlp:random"),
                                          DuplicatesPolicy::keep);
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
