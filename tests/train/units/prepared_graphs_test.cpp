// Prepared graphs in files that the processes of a node share.

#include "train/units/prepared_graphs.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/support/expected_fault.hpp"
#include "tests/train/tiny_data.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// All arrays, byte for byte.
std::vector<std::vector<std::byte>> bytes_of(const PreparedArrays& graph) {
  std::vector<std::vector<std::byte>> all;
  PreparedArrays::for_each(graph, [&](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    all.emplace_back(bytes.begin(), bytes.end());
  });
  return all;
}

// Data and network of an experiment.
struct Opened {
  Opened(const Experiment& experiment, ThreadPool& pool, std::uint64_t most_bytes = 1 << 30)
      : data(Dataset::open(options_of(experiment, most_bytes), pool)),
        network(experiment.network, experiment.data.collection.schema, -1, pool) {}

  // What a process without files has.
  PreparedArrays expected(int graph, bool refined) const {
    PreparedArrays made = prepare_input(data, network, graph);
    const Graph& source = data.graph(graph);
    if (refined && data.options().reduction.draws(source.nodes))
      made.refined = RefinedArrays::empty(network.plan_shape());
    else if (refined)
      made.refined = refine_graph(source, made.node_class, network.plan_shape()).arrays();
    return made;
  }

  void expect_right(const PreparedFiles& files, bool refined) const {
    for (int g = 0; g < data.size(); ++g)
      EXPECT_EQ(bytes_of(files.read(g)), bytes_of(expected(g, refined))) << data.graph(g).name;
  }

  static DatasetOptions options_of(const Experiment& experiment, std::uint64_t most_bytes) {
    DatasetOptions options = experiment.data.training();
    options.node_cache.most_bytes = most_bytes;
    return options;
  }

  Dataset data;
  Network network;
};

class PreparedGraphsTest : public ::testing::Test {
 protected:
  void SetUp() override { set_up_logging(0, 1); }  // on standard error

  Experiment experiment(std::vector<std::string> overrides = {}) const {
    overrides.push_back("data.cache_dir=" + (place_ / "node").string());
    return tiny_experiment(std::move(overrides));
  }

  fs::path folder() const { return place_ / "node" / ("tpudist-" + std::to_string(::geteuid())); }

  // The files of prepared graphs.
  std::set<fs::path> files() const {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder())) {
      if (entry.path().filename().string().find(".prepared.") != std::string::npos)
        found.insert(entry.path());
    }
    return found;
  }

  void open_files(const Experiment& experiment, bool refined = true) {
    const Opened opened(experiment, pool_);
    const auto found = PreparedFiles::open(opened.data, opened.network, refined, pool_);
    ASSERT_TRUE(found);
    opened.expect_right(*found, refined);
  }

  // The warnings while `body` runs.
  static std::string warnings(const std::function<void()>& body) {
    ::testing::internal::CaptureStderr();
    body();
    spdlog::default_logger()->flush();
    return ::testing::internal::GetCapturedStderr();
  }

  TempDir place_;
  ThreadPool pool_{2, use_one_thread_per_worker};
};

TEST_F(PreparedGraphsTest, FilesHoldWhatAProcessPreparesForItself) {
  const std::vector<std::vector<std::string>> systems{
      {},
      {"model.preset=latenciaga_nlp"},
      {"data.reduce={keep: config_neighbours}"},
      {"data.reduce={max_nodes: 20}"},
      {"model.readout.widths=[4]"},
      {"model.encoder={code_width: 2}"},
      {"model.encoder={node_transform: raw, node_columns: 0-9}"},
      {"model.encoder={node_transform: standardised, join: late}",
       "model.blocks=[{layer: sage, width: 8}, {layer: join_config, width: 8}]"},
      {"data.collection=tile:xla", "model.preset=latenciaga_tile"},
  };
  for (const auto& overrides : systems) {
    for (const bool refined : {true, false}) {
      SCOPED_TRACE(overrides.empty() ? "preset" : overrides.front());
      const std::size_t before = fs::exists(folder()) ? files().size() : 0;
      EXPECT_EQ(warnings([&] { open_files(experiment(overrides), refined); }), "");  // makes it
      EXPECT_EQ(warnings([&] { open_files(experiment(overrides), refined); }), "");  // takes it
      // Without refinement the two presets for layouts take the same.
      EXPECT_EQ(files().size(), before + (overrides == systems[1] && !refined ? 0 : 1));
    }
  }
}

TEST_F(PreparedGraphsTest, NetworksThatTakeTheSameShareAFile) {
  open_files(experiment());
  open_files(experiment({"model.encoder={width: 16, opcode_width: 4}", "data.duplicates=mean"}));
  EXPECT_EQ(files().size(), 1u);
  open_files(experiment({"model.blocks=[{width: 24}]"}));  // fewer layers
  EXPECT_EQ(files().size(), 2u);
  open_files(experiment({"model.readout.widths=[4]"}));
  open_files(experiment({"model.readout.widths=[4]", "model.encoder={node_transform: raw}"}));
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(PreparedGraphsTest, WithoutASharedDataSetThereAreNoFiles) {
  const Opened opened(tiny_experiment(), pool_);
  EXPECT_EQ(PreparedFiles::open(opened.data, opened.network, true, pool_), nullptr);
  PreparedGraphs graphs(opened.data, opened.network);
  graphs.share(true, pool_);
  EXPECT_EQ(graphs.shared_bytes(), 0u);
  EXPECT_EQ(graphs.of(0).node_class, opened.expected(0, false).node_class);
}

// Where an address lies: the file that is mapped there, or nothing.
std::string mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    char hyphen = 0;
    std::string rights, offset, device, inode, path;
    words >> std::hex >> begin >> hyphen >> end >> rights >> offset >> device >> inode >> path;
    if (begin <= at && at < end) return path;
  }
  return "";
}

TEST_F(PreparedGraphsTest, AllLiesInTheFileAndNobodyCanWriteThere) {
  for (const bool general : {false, true}) {
    const Opened opened(
        experiment({general ? "model.readout.widths=[4]" : "model.readout.pool=sum"}), pool_);
    PreparedGraphs graphs(opened.data, opened.network);
    graphs.share(true, pool_);
    EXPECT_GT(graphs.shared_bytes(), 0u);
    const PreparedGraph& graph = graphs.of(1);
    const RefinedGraph& refined = graphs.refined(1);
    const float* features =
        general ? graph.input->raw_features().data() : graph.input->feature_rows();
    for (const void* address :
         {static_cast<const void*>(features), static_cast<const void*>(graph.node_class.data()),
          static_cast<const void*>(graph.input->opcode().data()),
          static_cast<const void*>(refined.adjacency(EdgeKind::producer_to_consumer).source.data()),
          static_cast<const void*>(refined.unreached(0).colour.data())})
      EXPECT_THAT(mapped_file(address), HasSubstr(folder().string()));
    TPUDIST_EXPECT_FAULT(const_cast<float*>(features)[0] = 1, "");
    // They outlive all else.
    const Array<std::int32_t> kept = graph.node_class;
    EXPECT_EQ(std::ssize(kept), opened.data.graph(1).nodes);
  }
}

TEST_F(PreparedGraphsTest, MakesADamagedFileAnew) {
  open_files(experiment());
  const fs::path path = *files().begin();
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  for (const std::int64_t at : {std::int64_t{20}, size / 3, size / 2, size - 5}) {
    {
      std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(at);
      const auto byte = static_cast<char>(stream.get() ^ 0x10);
      stream.seekp(at);
      stream.put(byte);
    }
    EXPECT_THAT(warnings([&] { open_files(experiment()); }), HasSubstr("it is made anew"));
  }
  fs::resize_file(path, static_cast<std::uintmax_t>(size / 2));
  EXPECT_THAT(warnings([&] { open_files(experiment()); }), HasSubstr("it is made anew"));
  fs::remove(path);
  EXPECT_EQ(warnings([&] { open_files(experiment()); }), "");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(PreparedGraphsTest, AFolderThatIsGoneIsAWarning) {
  const Opened opened(experiment(), pool_);
  fs::remove_all(place_ / "node");
  std::ofstream(place_ / "node") << "a file in place of the folder";
  PreparedGraphs graphs(opened.data, opened.network);
  EXPECT_THAT(warnings([&] { graphs.share(true, pool_); }),
              HasSubstr("this process keeps prepared graphs of its own"));
  EXPECT_EQ(graphs.shared_bytes(), 0u);
  EXPECT_EQ(graphs.of(0).node_class, opened.expected(0, false).node_class);
  EXPECT_THAT(mapped_file(graphs.of(0).node_class.data()), Not(HasSubstr(place_.path().string())));
}

TEST_F(PreparedGraphsTest, LittleRoomIsAWarning) {
  open_files(experiment());
  std::uint64_t held = 0;
  for (const auto& entry : fs::directory_iterator(folder())) held += entry.file_size();
  const fs::path path = *files().begin();
  const std::uint64_t own = fs::file_size(path);
  fs::remove(path);
  const Opened opened(experiment(), pool_, held - own + 1000);
  PreparedGraphs graphs(opened.data, opened.network);
  EXPECT_THAT(warnings([&] { graphs.share(true, pool_); }), HasSubstr("has no room for "));
  EXPECT_EQ(graphs.refined(0).nodes(), opened.data.graph(0).nodes);
}

// Processes that begin together take files of one graph each from each other's hands.
// The files do not depend on the limit, which holds for graphs that come from them as well.
TEST_F(PreparedGraphsTest, TheLimitOfSelfAttentionHoldsForGraphsFromFiles) {
  const auto take = [&](const char* most) {
    const Opened opened(
        experiment({std::string("model={blocks: [{layer: self_attention, width: 4, max_nodes: ") +
                    most + "}]}"}),
        pool_);
    PreparedGraphs graphs(opened.data, opened.network);
    graphs.share(false, pool_);
    graphs.of(0);
  };
  take("1000");
  EXPECT_FALSE(files().empty());
  EXPECT_THROW(take("2"), DataError);
}

TEST_F(PreparedGraphsTest, ProcessesThatBeginTogetherShareTheWork) {
  const Experiment shared = experiment();
  { const Opened first(shared, pool_); }  // the data
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool right = true;
      {
        ThreadPool own(1);
        const Opened opened(shared, own);
        const auto found = PreparedFiles::open(opened.data, opened.network, true, own, 1);
        for (int g = 0; found && g < opened.data.size(); ++g)
          right = right && bytes_of(found->read(g)) == bytes_of(opened.expected(g, true));
        right = right && found;
      }
      ::_exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files().size(), 5u);  // graphs
}

}  // namespace
}  // namespace tpudist::test
