#include "data/synth/synth.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <list>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/folder_lock.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/mutex.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "data/npz/npz_writer.hpp"
#include "data/synth/layouts.hpp"
#include "data/synth/presets.hpp"
#include "data/synth/program.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist::synth {
namespace {

enum GraphStream : std::uint64_t { kChoices = 1, kNoise };

constexpr NpzOptions kFastDeflate{.deflate_level = 1};
constexpr std::string_view kRecipeName = "synth.json";
// Increase this number when equal options give other files than before.
constexpr int kGeneration = 3;

Plan resolved(Plan plan, const SynthOptions& options) {
  if (!options.graphs.empty()) {
    if (options.graphs.size() != 3 || std::ranges::min(options.graphs) < 0) {
      throw ConfigError("graphs must be three numbers from 0 on: train, valid, test");
    }
    std::ranges::copy(options.graphs, plan.graphs.begin());
  }
  if (options.configs < 0) throw ConfigError("configs must be positive");
  if (options.configs) plan.configs = {options.configs, options.configs};
  return plan;
}

class Generator {
 public:
  Generator(const SynthOptions& options, const std::filesystem::path& root, ProgressSink& progress)
      : options_(options), root_(root), progress_(progress) {}

  std::vector<SynthFile> run() {
    collect_jobs();
    claim_folders();
    progress_.start("synth", std::ssize(jobs_), "graphs");
    // Largest first, so that no thread ends up alone with one.
    std::ranges::stable_sort(jobs_, std::greater<>{}, &Job::size);
    ThreadPool pool(options_.threads);
    pool.parallel_for(std::ssize(jobs_), [this](std::int64_t i) {
      jobs_[i].make();
      progress_.advance(1);
    });
    progress_.finish();
    const MutexLock lock(mutex_);
    std::ranges::sort(files_, {}, &SynthFile::path);
    return std::move(files_);
  }

 private:
  struct Job {
    std::int64_t size = 0;
    std::function<void()> make;
  };

  bool wants(std::string_view collection) const {
    return options_.collections.empty() ||
           std::ranges::find(options_.collections, collection, &Collection::name) !=
               options_.collections.end();
  }

  void collect_jobs() {
    const Preset preset = preset_named(options_.preset);
    add_layout_jobs(preset.xla, "xla");
    add_layout_jobs(preset.nlp, "nlp");
    if (preset.tile && wants("tile:xla")) {
      made_.insert("tile:xla");
      for (KernelSpec& job : tile_jobs(resolved(*preset.tile, options_), options_.seed)) {
        jobs_.push_back({job.configs, [this, job = std::move(job)] { make_tile(job); }});
      }
    }
    if (jobs_.empty()) {
      throw ConfigError(
          fmt::format("preset '{}' makes none of the collections asked for", options_.preset));
    }
  }

  void add_layout_jobs(const std::optional<Plan>& plan, const std::string& source) {
    const bool random = wants("layout:" + source + ":random");
    const bool searched = wants("layout:" + source + ":default");
    if (!plan || (!random && !searched)) return;
    if (random) made_.insert("layout:" + source + ":random");
    if (searched) made_.insert("layout:" + source + ":default");
    for (LayoutJob& job : layout_jobs(resolved(*plan, options_), source, options_.seed)) {
      jobs_.push_back({job.model.nodes * job.configs, [=, this, job = std::move(job)] {
                         make_layout(job, source, random, searched);
                       }});
    }
  }

  // What determines the files of a collection. The text is kept beside the files, so that a partly
  // made folder can be finished, and no other data set is overwritten or mixed with this one.
  std::string recipe() const {
    return fmt::format(
               R"({{"generation": {}, "preset": "{}", "seed": {}, "graphs": [{}], "configs": {}}})",
               kGeneration, options_.preset, options_.seed, fmt::join(options_.graphs, ", "),
               options_.configs) +
           "\n";
  }

  void claim_folders() {
    std::vector<std::filesystem::path> folders;
    for (const std::string& name : made_) {
      const auto folder = Collection::parse(name).folder();
      folders.push_back(root_ / folder);
      if (!options_.truth.empty()) folders.push_back(options_.truth / folder);
    }
    for (const auto& folder : folders) require_free(folder);
    for (const auto& folder : folders) {
      make_folder(folder);
      locks_.emplace_back(folder, "tpudist synth");
      std::error_code error;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
        if (is_left(entry.path())) std::filesystem::remove(entry.path(), error);
      }
      write_file_atomically(folder / kRecipeName, recipe());
    }
  }

  // Whether a killed run left the file.
  static bool is_left(const std::filesystem::path& file) {
    const std::string name = file.filename().string();
    return is_temporary_name(name, kRecipeName) || glob_match("*.npz.*.tmp*", name);
  }

  void require_free(const std::filesystem::path& folder) const {
    std::error_code error;
    if (std::filesystem::exists(folder / kRecipeName, error)) {
      const std::string there = read_text_file(folder / kRecipeName);
      if (there == recipe()) return;
      throw ConfigError(fmt::format(
          "{} holds synthetic data of other options or of another version, {}; take another "
          "folder, or remove this one",
          folder.string(), there.substr(0, std::min<std::size_t>(there.find('\n'), 200))));
    }
    std::filesystem::recursive_directory_iterator entries(folder, error);
    for (; !error && entries != end(entries); entries.increment(error)) {
      const auto& path = entries->path();
      if (entries->is_directory() || path.filename() == kLockName || is_left(path)) continue;
      throw ConfigError(fmt::format("{} holds other data, such as {}; take another folder",
                                    folder.string(), path.string()));
    }
  }

  // The folder layout/xla/random/train/ is made as a side effect.
  std::filesystem::path file_of(const std::filesystem::path& root, const Collection& collection,
                                std::size_t split, const std::string& name) const {
    const auto folder = root / collection.folder() / kSplits[split];
    make_folder(folder);
    return folder / (name + ".npz");
  }

  static void add_graph(const Graph& graph, NpzWriter& npz) {
    npz.add("node_feat", {graph.nodes, kNodeFeatures}, graph.node_features);
    npz.add("node_opcode", {graph.nodes}, graph.opcodes);
    npz.add("edge_index", {graph.edges, 2},
            std::vector<std::int64_t>(graph.edge_index.begin(), graph.edge_index.end()));
  }

  void make_layout(const LayoutJob& job, const std::string& source, bool random, bool searched) {
    const std::uint64_t key = mix_key({options_.seed, hash64(source), hash64(job.model.name)});
    const Program program = build_model(job.model);
    const Graph graph = to_graph(program, job.model.name, true);
    const LayoutSpace space(program);
    const LayoutCost cost(program, space.choices);
    for (const bool is_random : {true, false}) {
      if (is_random ? !random : !searched) continue;
      const std::uint64_t set_key = mix_key({key, is_random});
      const auto draw = is_random ? random_configs : search_configs;
      write_layout(
          job,
          Collection::parse(fmt::format("layout:{}:{}", source, is_random ? "random" : "default")),
          graph, space, draw(space, cost, job.configs, mix_key({set_key, kChoices})),
          noise_level(key), set_key);
    }
  }

  void write_layout(const LayoutJob& job, const Collection& collection, const Graph& graph,
                    const LayoutSpace& space, const LayoutConfigs& configs, double level,
                    std::uint64_t key) {
    std::vector<std::int64_t> runtime;
    std::vector<double> time;
    CounterRng rng(mix_key({key, kNoise}));
    for (const std::int32_t row : configs.rows) {
      time.push_back(configs.time[row]);
      runtime.push_back(measure(time.back(), level, rng));
    }
    corrupt(runtime, job.corrupt_share, key);
    const auto path = file_of(root_, collection, job.split, graph.name);
    NpzWriter npz(path, kFastDeflate);
    add_graph(graph, npz);
    npz.add("node_config_ids", {configs.nodes},
            std::vector<std::int64_t>(graph.config_nodes.begin(), graph.config_nodes.end()));
    npz.add_streamed<float>(
        "node_config_feat", {job.configs, configs.nodes, kLayoutConfigFeatures},
        [&](std::int64_t first, std::span<float> rows) { fill_rows(space, configs, first, rows); });
    npz.add("config_runtime", {job.configs}, hidden(job.split, runtime, 0));
    npz.add("node_splits", {1, std::ssize(graph.node_splits)}, graph.node_splits);
    npz.finish();
    write_truth(collection, job.split, graph.name, runtime, time, {});
    const std::vector<double> measured(runtime.begin(), runtime.end());
    add_file(path, graph, configs.nodes, job.configs, kendall_tau_b(time, measured));
  }

  static void fill_rows(const LayoutSpace& space, const LayoutConfigs& configs, std::int64_t first,
                        std::span<float> out) {
    for (std::size_t at = 0; at < out.size(); ++first) {
      const auto codes = configs.row(first);
      for (std::size_t j = 0; j < codes.size(); ++j, at += kLayoutConfigFeatures) {
        std::ranges::copy(space.choices[j].states[codes[j]].features,
                          out.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }

  void make_tile(const KernelSpec& job) {
    const Collection collection = Collection::parse("tile:xla");
    const Program kernel = build_kernel(job);
    const Graph graph = to_graph(kernel, job.name, false);
    const TileConfigs configs = tile_configs(job, kernel);
    const std::int64_t count = std::ssize(configs.time);
    const double level = noise_level(job.key);
    CounterRng rng(mix_key({job.key, kNoise}));
    std::vector<std::int64_t> runtime;
    for (const double time : configs.time) runtime.push_back(measure(time, level, rng));
    const std::vector<std::int64_t> normalizer(static_cast<std::size_t>(count),
                                               measure(configs.default_time, level, rng));
    const auto path = file_of(root_, collection, job.split, graph.name);
    NpzWriter npz(path);
    add_graph(graph, npz);
    npz.add("config_feat", {count, kTileConfigFeatures}, configs.features);
    npz.add("config_runtime", {count}, hidden(job.split, runtime, 0));
    npz.add("config_runtime_normalizers", {count}, hidden(job.split, normalizer, 1));
    npz.finish();
    write_truth(collection, job.split, graph.name, runtime, configs.time, normalizer);
    // One normalizer for all configurations does not change the score.
    const std::vector<double> measured(runtime.begin(), runtime.end());
    add_file(path, graph, 0, count, tile_score(configs.time, measured));
  }

  // `values` as in the file of a split, `instead` in a test split.
  static std::vector<std::int64_t> hidden(std::size_t split,
                                          const std::vector<std::int64_t>& values,
                                          std::int64_t instead) {
    return kSplits[split] == "test" ? std::vector<std::int64_t>(values.size(), instead) : values;
  }

  void write_truth(const Collection& collection, std::size_t split, const std::string& name,
                   const std::vector<std::int64_t>& runtime, const std::vector<double>& time,
                   const std::vector<std::int64_t>& normalizer) {
    if (options_.truth.empty() || kSplits[split] != "test") return;
    NpzWriter npz(file_of(options_.truth, collection, split, name));
    npz.add("config_runtime", {std::ssize(runtime)}, runtime);
    npz.add("config_time", {std::ssize(time)}, time);
    if (collection.is_tile()) {
      npz.add("config_runtime_normalizers", {std::ssize(normalizer)}, normalizer);
    }
    npz.finish();
  }

  void add_file(const std::filesystem::path& path, const Graph& graph, std::int64_t config_nodes,
                std::int64_t configs, double ceiling) {
    const SynthFile file{
        path.lexically_relative(root_),   graph.nodes, graph.edges, config_nodes, configs,
        std::filesystem::file_size(path), ceiling};
    const MutexLock lock(mutex_);
    files_.push_back(file);
  }

  const SynthOptions& options_;
  const std::filesystem::path& root_;
  ProgressSink& progress_;
  std::vector<Job> jobs_;
  std::set<std::string> made_;  // collections
  std::list<FolderLock> locks_;
  Mutex mutex_;
  std::vector<SynthFile> files_ TPUDIST_GUARDED_BY(mutex_);
};

// The program of a graph, from the options beside its collection.
Program program_of(const std::filesystem::path& npz) {
  const std::filesystem::path folder = npz.parent_path().parent_path();
  const std::string source = folder.parent_path().filename().string(), name = npz.stem().string();
  const auto fail = [&](const std::string& why) {
    throw ConfigError(
        fmt::format("{}: {}; give a layout graph of `tpudist synth`", npz.string(), why));
  };
  if (!std::filesystem::exists(folder / kRecipeName))
    fail(fmt::format("there is no {} two folders above", kRecipeName));
  SynthOptions options;
  try {
    const auto recipe = nlohmann::json::parse(read_text_file(folder / kRecipeName));
    if (recipe.at("generation") != kGeneration) fail("another version made it");
    options.preset = recipe.at("preset");
    options.seed = recipe.at("seed");
    options.graphs = recipe.at("graphs").get<std::vector<std::int64_t>>();
    options.configs = recipe.at("configs");
  } catch (const nlohmann::json::exception& error) {
    fail(json_fault(error.what()));
  }
  const Preset preset = preset_named(options.preset);
  if (const auto& plan = source == "nlp" ? preset.nlp : preset.xla) {
    for (const LayoutJob& job : layout_jobs(resolved(*plan, options), source, options.seed)) {
      if (job.model.name == name) return build_model(job.model);
    }
  }
  fail("its name is none of the graphs of these options");
  return {};
}

}  // namespace
}  // namespace tpudist::synth

namespace tpudist {

std::vector<SynthFile> synthesise(const SynthOptions& options, const std::filesystem::path& root,
                                  ProgressSink& progress) {
  return synth::Generator(options, root, progress).run();
}

std::vector<double> true_times(const std::filesystem::path& npz,
                               const std::vector<std::vector<LayoutState>>& configs) {
  const synth::Program program = synth::program_of(npz);
  const synth::LayoutSpace space(program);
  const synth::LayoutCost cost(program, space.choices);
  std::vector<double> times;
  for (const std::vector<LayoutState>& config : configs) {
    std::vector<std::uint8_t> codes;
    bool known = config.size() == space.choices.size();
    for (std::size_t j = 0; known && j < config.size(); ++j) {
      const auto& states = space.choices[j].states;
      const auto found = std::ranges::find(states, config[j], &synth::Choice::State::features);
      known = found != states.end();
      codes.push_back(static_cast<std::uint8_t>(found - states.begin()));
    }
    if (!known)
      throw DataError(
          fmt::format("{}: configuration {} has layouts that no operation of the graph "
                      "takes",
                      npz.string(), times.size()));
    times.push_back(cost.time(codes));
  }
  return times;
}

}  // namespace tpudist
