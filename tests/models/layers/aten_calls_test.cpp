// What LibTorch is asked for while networks run: nothing whose bits depend on the number of threads
// or on the order in which threads come, and always with one thread inside an operation.

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "models/kernels/cpu_process.hpp"
#include "tests/models/layers/property_network.hpp"

namespace tpudist {
namespace {

using namespace test;

// What was called since clear(), by all threads.
struct Calls {
  std::mutex mutex;
  std::map<std::string, int> count;
  int with_several_threads = 0;
  std::set<std::thread::id> threads;
  void clear() {
    const std::lock_guard lock(mutex);
    count.clear();
    threads.clear();
    with_several_threads = 0;
  }
};

Calls& calls() {
  static Calls recorded;
  return recorded;
}

std::unique_ptr<at::ObserverContext> record(const at::RecordFunction& function) {
  const int threads = at::get_num_threads();
  const std::lock_guard lock(calls().mutex);
  ++calls().count[function.name()];
  calls().threads.insert(std::this_thread::get_id());
  if (threads != 1) ++calls().with_several_threads;
  return nullptr;
}

// Records all operations of all threads as long as it lives.
class Recording {
 public:
  Recording()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(record).scopes(
            {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
    calls().clear();
  }
  ~Recording() { at::removeCallback(handle_); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  at::CallbackHandle handle_;
};

// Operations that add rows in the order in which threads come, or whose work is cut by the number
// of threads so that sums or the tails of vectors come out otherwise.
bool depends_on_threads(const std::string& name) {
  for (const char* const part : {"index_add",
                                 "index_put",
                                 "scatter",
                                 "embedding_dense_backward",
                                 "index_select_backward",
                                 "IndexSelectBackward",
                                 "IndexBackward",
                                 "GatherBackward",
                                 "embedding_backward",
                                 "EmbeddingBackward",
                                 "index_reduce",
                                 "segment_reduce",
                                 "bincount",
                                 "histc",
                                 "put_",
                                 "native_layer_norm",
                                 "native_group_norm",
                                 "native_batch_norm",
                                 "native_dropout",
                                 "bernoulli",
                                 "aten::dropout"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

void run(const Network& network, const UnitInput& input, std::span<const float> flat) {
  std::vector<float> gradient(network.parameters().length());
  const std::vector<std::span<float>> spans{gradient};
  const std::vector<std::uint64_t> keys{3};
  const auto loss = [&](const UnitScores& scores) {
    ScoreGradient d;
    for (std::int64_t k = 0; k < scores.configs; ++k)
      d.values.push_back(static_cast<double>(k % 3) - 0.7);
    return d;
  };
  network.gradient(flat, 0, 1, input, loss, spans, true, keys);
  network.scores(flat, 0, 1, input, keys);
}

void expect_only_what_threads_leave_alone() {
  const std::lock_guard lock(calls().mutex);
  EXPECT_GT(calls().count.size(), 5u);
  EXPECT_EQ(calls().with_several_threads, 0);
  for (const auto& [name, count] : calls().count)
    EXPECT_FALSE(depends_on_threads(name)) << name << " was called " << count << " times";
}

// A unit whose plans are cut into several blocks of rows, so that workers call LibTorch too.
RepeatedUnit unit_of_blocks(bool tile) {
  CounterRng random(29, tile);
  RepeatedUnit unit;
  unit.graphs.push_back(random_graph(random, 40, 4, tile ? Configurable::tile : Configurable::few,
                                     tile ? kTileConfigFeatures : kLayoutConfigFeatures));
  unit.slates.push_back(random_configs(random, unit.graphs, 0, 9));
  return unit;
}

class AtenCalls : public EveryLayer {};

TEST_P(AtenCalls, DoNotDependOnThreads) {
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    // A thread that nobody has told to use one thread, and workers likewise: networks see to it
    // themselves.
    std::thread([&] {
      at::set_num_threads(3);
      const Recording recording;
      ThreadPool pool(3);
      const bool tile = variant == 2;
      const PropertyNetwork network(GetParam().yaml, variant, tile, pool);
      const RepeatedUnit unit = unit_of_blocks(tile);
      const UnitInput input = variant == 1 ? compact_unit(network.network(), unit)
                                           : dense_unit(network.network(), unit);
      run(network.network(), input, network.parameters(1, 11));
      expect_only_what_threads_leave_alone();
    }).join();
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, AtenCalls, ::testing::ValuesIn(layer_spellings()), name_of);

// The encoder's embeddings, statistics and late join, and a branch of configurations in the head.
TEST(AtenCallsOfNetworks, DoNotDependOnThreads) {
  const std::string blocks =
      "blocks: [{layer: linear, width: 12}, {layer: instance_norm}, {layer: residual, blocks: "
      "[{layer: sage, width: 12, activation: none}, {layer: channel_attention}, {layer: "
      "dropout}]}, "
      "{layer: activation, kind: gelu}, {layer: config_attention}]\n";
  for (const std::string encoder :
       {"{opcode_width: 4, node_columns: 0-133, node_width: 0, node_transform: standardised, "
        "code_width: 2, width: 12, activation: none}",
        "{opcode_width: 4, node_columns: 0-133, node_width: 5, node_transform: standardised, "
        "code_width: 2, width: 12, join: late, config_transform: standardised}"}) {
    const bool tile = encoder.find("late") != std::string::npos;
    std::thread([&] {
      at::set_num_threads(3);
      const Recording recording;
      ConfigDocument document = ConfigDocument::parse(
          "encoder: " + encoder + "\n" + blocks + "readout: {pool: max+mean, widths: [6]" +
              (tile ? ", config_widths: [5]" : "") + "}\n",
          "network.yaml");
      const FeatureSchema& schema = tile ? kTileSchema : kLayoutSchema;
      const NetworkConfig config = NetworkConfig::read(document.root(), schema);
      document.finish();
      ThreadPool pool(3);
      const Network network(config, schema, -1, pool);
      RepeatedUnit unit = unit_of_blocks(tile);
      for (float& feature : unit.graphs[0].features) feature = 1;  // in the code embedding's range
      AlignedFloats flat(network.parameters().length());
      network.initialise(flat, 7);
      run(network, dense_unit(network, unit), flat);
      expect_only_what_threads_leave_alone();
    }).join();
  }
}

// That the recording sees what it is to find, in the passes of autograd and in other threads.
TEST(Recording, SeesTheOperationsOfAllThreads) {
  const Recording recording;
  std::thread([] {
    at::set_num_threads(2);
    const at::Tensor x = at::ones({4, 3}, at::kDouble).set_requires_grad(true);
    const at::Tensor index = at::tensor({0, 1, 1}, at::kLong);
    const at::AutoGradMode with_graph(true);
    torch::autograd::grad({x.index_select(0, index).sum()}, {x});
    use_one_thread_per_worker();
  }).join();
  const std::lock_guard lock(calls().mutex);
  int found = 0;
  for (const auto& [name, count] : calls().count) found += depends_on_threads(name);
  EXPECT_GE(found, 1);
  EXPECT_GT(calls().with_several_threads, 0);
}

}  // namespace
}  // namespace tpudist
