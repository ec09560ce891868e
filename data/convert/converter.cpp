#include "data/convert/converter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/folder_lock.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/mutex.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/thread_pool.hpp"
#include "data/convert/conversion_plan.hpp"
#include "data/convert/folder_checks.hpp"
#include "data/convert/graph_converter.hpp"
#include "data/convert/memory_budget.hpp"
#include "data/convert/source_npz.hpp"
#include "data/schema/collection.hpp"
#include "data/shards/manifest.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

SourceFile source_of(const fs::path& file, const fs::path& npz_root) {
  return {file.lexically_relative(fs::absolute(npz_root)).generic_string(), fs::file_size(file),
          hash_file(file)};
}

// Converts one collection.
class CollectionConverter {
 public:
  CollectionConverter(const ConvertOptions& options, const Collection& collection,
                      const Manifest& earlier, ThreadPool& pool, ProgressSink& progress)
      : options_(options),
        collection_(collection),
        earlier_(earlier),
        pool_(pool),
        progress_(progress),
        memory_(options.memory_bytes),
        folder_(fs::absolute(options.shard_root) / collection.folder()) {
    result_.collection = collection;
  }

  ConvertedCollection convert() {
    plan_ = plan_shards(options_.npz_root, collection_);
    shards_.resize(plan_.size());
    std::uint64_t bytes = 0;
    for (const PlannedShard& shard : plan_) {
      bytes += shard.source_bytes;
      fs::create_directories(folder_ / shard.split);
    }
    // File sizes differ by a factor of a thousand, so bytes give the estimate of the time left.
    progress_.start("convert " + collection_.name, static_cast<std::int64_t>(bytes), "bytes");

    // The largest first, so that no large file is left for the end.
    std::vector<std::size_t> order(plan_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return plan_[a].source_bytes > plan_[b].source_bytes;
    });
    pool_.parallel_for(std::ssize(order), [&](std::int64_t i) { convert_shard(order[i]); });
    const MutexLock lock(mutex_);
    std::ranges::sort(result_.bad, {}, &Manifest::Skipped::source);
    const std::set<std::string> sources = sources_of(earlier_);
    const bool none_goes = std::ranges::none_of(
        result_.bad, [&](const Manifest::Skipped& bad) { return sources.contains(bad.source); });
    if (result_.bad.empty() || (options_.skip_bad && (options_.replace || none_goes))) publish();
    progress_.finish();
    return std::move(result_);
  }

 private:
  void convert_shard(std::size_t index) {
    const PlannedShard& plan = plan_[index];
    std::vector<SourceFile> sources;
    for (const fs::path& file : plan.sources) sources.push_back(source_of(file, options_.npz_root));
    auto kept = finished_shard(plan.file, plan, sources);
    if (!kept) kept = finished_shard(second_name(plan.file), plan, sources);
    if (kept) {
      const MutexLock lock(mutex_);
      result_.kept += std::ssize(kept->graphs);
      shards_[index] = std::move(kept);
      progress_.advance(static_cast<std::int64_t>(plan.source_bytes));
      return;
    }
    const std::string file = lists(earlier_, plan.file) ? second_name(plan.file) : plan.file;
    const fs::path path = folder_ / file;
    TemporaryFile temporary(path);
    std::size_t bad = 0;
    {
      ShardWriter shard(temporary.path(), collection_, plan.split, pool_);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        if (!convert_source(plan.sources[i], plan.split, sources[i], shard)) ++bad;
        progress_.advance(static_cast<std::int64_t>(sources[i].bytes),
                          plan.sources[i].stem().string());
      }
      shard.close();
    }
    if (bad == sources.size() || (bad > 0 && !options_.skip_bad)) return;
    temporary.commit();
    Manifest::Shard done{file, plan.split, fs::file_size(path), hash_file(path),
                         summarize_shard(path).graphs};
    const MutexLock lock(mutex_);
    result_.converted += std::ssize(done.graphs);
    shards_[index] = std::move(done);
  }

  // The existing shard, if it is complete and made from exactly these sources.
  std::optional<Manifest::Shard> finished_shard(const std::string& file, const PlannedShard& plan,
                                                const std::vector<SourceFile>& sources) const {
    const fs::path path = folder_ / file;
    if (!fs::is_regular_file(path)) return std::nullopt;
    try {
      ShardSummary shard = summarize_shard(path);
      std::vector<SourceFile> own;  // graphs of a tuning file share one
      for (const GraphSummary& graph : shard.graphs) {
        if (own.empty() || own.back() != graph.source) own.push_back(graph.source);
      }
      const bool same = shard.collection == collection_.name &&
                        shard.schema == collection_.schema && shard.split == plan.split &&
                        std::ranges::equal(own, sources);
      if (!same) return std::nullopt;
      Manifest::Shard kept{file, plan.split, fs::file_size(path), hash_file(path),
                           std::move(shard.graphs)};
      const auto old = std::ranges::find(earlier_.shards, file, &Manifest::Shard::file);
      if (old != earlier_.shards.end() && old->hash != kept.hash) return std::nullopt;  // damaged
      return kept;
    } catch (const DataError&) {
      return std::nullopt;
    }
  }

  bool convert_source(const fs::path& file, const std::string& split, const SourceFile& source,
                      ShardWriter& shard) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      const SourceNpz graphs(file, collection_);
      for (int i = 0; i < std::ssize(graphs.names()); ++i) {
        graphs.with_npz(i, [&](const fs::path& own) {
          const NpzReader npz(own);
          const std::uint64_t bytes = conversion_bytes(read_graph_sizes(npz, collection_),
                                                       collection_.schema, options_.limits);
          const MemoryBudget::Share share(memory_, bytes);
          convert_graph(npz, collection_, split, source, shard, options_.limits);
        });
      }
      if (const std::string left_out = graphs.left_out(); !left_out.empty())
        spdlog::info("{}", left_out);
      spdlog::debug("converted {} ({}) in {}", file.string(), format_bytes(source.bytes),
                    format_seconds(seconds_since(begin)));
      return true;
    } catch (const DataError& e) {
      spdlog::error("{}", e.what());
      const MutexLock lock(mutex_);
      result_.bad.push_back({source.path, e.what()});
      return false;
    }
  }

  void publish() TPUDIST_REQUIRES(mutex_) {
    Manifest manifest{collection_, {}, result_.bad};
    for (auto& shard : shards_) {
      if (shard) manifest.shards.push_back(std::move(*shard));
    }
    check_sources(manifest);
    for (const Manifest::Shard& shard : manifest.shards) {
      for (const GraphSummary& graph : shard.graphs) {
        ++result_.graphs;
        result_.float_bytes += graph.float_bytes;
        result_.memory_bytes += graph.memory_bytes;
        result_.stored_bytes += graph.stored_bytes;
      }
    }
    write_manifest(manifest, folder_ / kManifestName);
    remove_leftovers(manifest);
    result_.published = true;
  }

  // A graph can come as NPZ and in a tuning file, and one file can lie in two splits.
  static void check_sources(const Manifest& manifest) {
    std::map<std::pair<std::string, std::string>, std::string> source_of;
    std::map<std::uint64_t, std::pair<std::string, std::string>> last_of;  // by hash
    for (const Manifest::Shard& shard : manifest.shards) {
      for (const GraphSummary& graph : shard.graphs) {
        const std::pair own(shard.split, graph.source.path);
        const auto last =
            std::exchange(last_of.try_emplace(graph.source.hash, own).first->second, own);
        if (last.first != own.first)
          spdlog::warn("{} and {} have the same content: remove one", last.second, own.second);
        const auto [first, is_new] =
            source_of.try_emplace({shard.split, graph.name}, graph.source.path);
        if (is_new) continue;
        throw ConfigError(fmt::format("{} and {} both hold the graph {} of {}: remove one of them",
                                      first->second, graph.source.path, graph.name, shard.split));
      }
    }
  }

  // Shards that the manifest does not list, and temporary files of runs that were killed.
  void remove_leftovers(const Manifest& manifest) const {
    std::error_code error;
    for (const std::string_view split : kSplits) {
      for (const auto& entry : fs::directory_iterator(folder_ / split, error)) {
        const std::string name = entry.path().filename().string();
        if (is_shard_name(name) && !lists(manifest, fmt::format("{}/{}", split, name)))
          fs::remove(entry.path(), error);
      }
    }
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      if (is_temporary_name(entry.path().filename().string(), kManifestName))
        fs::remove(entry.path(), error);
    }
  }

  const ConvertOptions& options_;
  const Collection collection_;
  const Manifest& earlier_;
  ThreadPool& pool_;
  ProgressSink& progress_;
  MemoryBudget memory_;
  const fs::path folder_;
  std::vector<PlannedShard> plan_;
  Mutex mutex_;
  std::vector<std::optional<Manifest::Shard>> shards_;  // of plan_; each is set by its own task
  ConvertedCollection result_ TPUDIST_GUARDED_BY(mutex_);
};

std::vector<Collection> npz_collections(const ConvertOptions& options) {
  return find_collections(options.npz_root, [&](const Collection& collection) {
    return !plan_shards(options.npz_root, collection).empty();
  });
}

std::vector<Collection> chosen_collections(const ConvertOptions& options) {
  std::vector<Collection> chosen;
  for (const Collection& collection : options.collections) {
    if (std::ranges::count(options.collections, collection.name, &Collection::name) > 1)
      throw ConfigError(fmt::format("--collections: {} is named twice", collection.name));
    if (plan_shards(options.npz_root, collection).empty()) {
      throw ConfigError(fmt::format(
          "{} holds no NPZ files of {}{}", (options.npz_root / collection.folder()).string(),
          collection.name, what_is_there(collection.name, npz_collections(options))));
    }
    chosen.push_back(collection);
  }
  if (!options.collections.empty()) return chosen;
  chosen = npz_collections(options);
  if (chosen.empty()) {
    const fs::path root = root_with(options.npz_root, is_npz);
    throw ConfigError(
        fmt::format("{} holds no NPZ files: it must have layout/xla/random/train/*.npz, "
                    "tile/xla/train/*.npz and the like{}",
                    options.npz_root.string(),
                    root.empty() || root == fs::absolute(options.npz_root).lexically_normal()
                        ? ""
                        : fmt::format("; there are some in {}", root.string())));
  }
  return chosen;
}

// Locks only the folder of one collection, so that processes may convert different ones into the
// same root.
void lock_folder(const ConvertOptions& options, const Collection& collection,
                 std::list<FolderLock>& locks) {
  const fs::path folder = fs::absolute(options.shard_root) / collection.folder();
  make_folder(folder);
  locks.emplace_back(folder, "tpudist convert");
}

}  // namespace

std::vector<ConvertedCollection> convert(const ConvertOptions& options, ProgressSink& progress) {
  if (!converted_collections(options.npz_root).empty() && npz_collections(options).empty())
    throw ConfigError(fmt::format(
        "{}: these are shards already: give the folder to `tpudist inspect` or as data.shards; "
        "`tpudist convert` takes the NPZ files that they were made from",
        options.npz_root.string()));
  warn_of_unread(options.npz_root, options.collections);
  std::vector<Collection> collections = chosen_collections(options);
  require_separate_folders(options, collections);
  for (Collection& collection : collections)
    collection = with_source_schema(options.npz_root, std::move(collection));
  for (const Collection& own : collections) {
    if (own.schema != Collection{own.name}.schema)
      spdlog::info("{} has {}", own.name, to_text(own.schema));
  }
  std::list<FolderLock> locks;
  for (const Collection& collection : collections) lock_folder(options, collection, locks);
  std::vector<Manifest> earlier;
  for (const Collection& collection : collections)
    earlier.push_back(require_own_shards(options, collection));
  ThreadPool pool(options.jobs > 0 ? options.jobs : usable_cores());
  std::vector<ConvertedCollection> results;
  for (std::size_t i = 0; i < collections.size(); ++i) {
    try {
      results.push_back(
          CollectionConverter(options, collections[i], earlier[i], pool, progress).convert());
    } catch (const fs::filesystem_error& e) {
      throw IoError(fmt::format("cannot use {}: {}", e.path1().string(), e.code().message()));
    }
  }
  return results;
}

}  // namespace tpudist
