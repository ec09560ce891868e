#include "train/loop/recorded_folds.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "data/loading/fold_file.hpp"
#include "train/units/folds.hpp"

namespace tpudist {
namespace {

// The recorded fold of each graph of the table; nothing without a readable file.
std::optional<std::vector<int>> recorded(const RunFolder& run, const FoldTable& folds) {
  if (folds.folds == 0 || !std::filesystem::exists(run.folds())) return std::nullopt;
  try {
    const FoldFile file = FoldFile::read(run.folds());
    return file.folds_of(folds.graphs, file.folds());
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
    return std::nullopt;
  }
}

// "resnet50 in fold 0 then, in 1 now (and 3 more graphs)"; empty where all are equal.
std::string differences(const std::vector<int>& then, const FoldTable& now) {
  std::string first;
  int more = -1;
  for (std::size_t g = 0; g < then.size(); ++g) {
    const FoldedGraph& graph = now.graphs[g];
    if (then[g] == graph.fold) continue;
    if (++more == 0)
      first = fmt::format("{} in fold {} then, in {} now", graph.name, then[g], graph.fold);
  }
  return more > 0 ? fmt::format("{} (and {} more)", first, more) : first;
}

}  // namespace

void record_folds(const RunFolder& run, const FoldTable& folds) {
  if (folds.folds == 0) return;
  const auto then = recorded(run, folds);
  if (then && differences(*then, folds).empty()) return;
  write_file_atomically(run.folds(), fold_file_text(folds));
}

void require_recorded_folds(const RunFolder& run, const FoldTable& folds) {
  const auto then = recorded(run, folds);
  const std::string changes = then ? differences(*then, folds) : "";
  if (changes.empty()) return;
  throw ConfigError(
      fmt::format("{}: the run has other folds: {}; give ensemble.fold_file={} to train with the "
                  "folds of then, or start a new run with --run-dir",
                  run.folds().string(), changes, run.folds().string()));
}

void require_same_folds(const CheckpointSummary& checkpoint, const std::filesystem::path& path,
                        const RunFolder& run, const FoldTable& folds, const Dataset& training) {
  const std::optional<std::uint64_t> hash = training_folds_hash(folds, training);
  if (checkpoint.fold_hash == hash) return;
  if (!checkpoint.fold_hash) {
    throw ConfigError(fmt::format(
        "{}: was written by an older tpudist, whose folds counted every graph alike where nodes "
        "count now, so that members would train on graphs that they hold out; start a new run with "
        "--run-dir",
        path.string()));
  }
  require_recorded_folds(run, folds);
  throw ConfigError(
      fmt::format("{}: was trained with other folds; give the folds of then with "
                  "ensemble.fold_file, or start a new run with --run-dir",
                  path.string()));
}

}  // namespace tpudist
