#include "results/scores/joined_predictions.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/means.hpp"
#include "results/scores/member_columns.hpp"
#include "results/scores/member_scores.hpp"

namespace tpudist {
namespace {

// Members of two files with equal keys are the same member of one ensemble.
auto key_of(const PredictedRun& run, const PredictedMember& member) {
  return std::tuple(recipe_hash(run), run.init_seed, run.order_seed, member.number);
}

// The run's folder for its predictions.h5; for a file with several runs also the run's number.
std::string source_of(const PredictionsFile& file, std::size_t run) {
  const std::filesystem::path& path = file.path();
  const std::string name = path.filename() == "predictions.h5" && path.has_parent_path()
                               ? path.parent_path().string()
                               : path.string();
  return file.header().runs.size() == 1 ? name : fmt::format("{} run {}", name, run);
}

// A member that was there before.
struct SeenMember {
  std::string path;
  std::uint64_t variant_hash = 0, parameter_hash = 0;
  std::set<int> numbers;  // of all members of its run, whose weights the hash is of
};

}  // namespace

JoinedPredictions::JoinedPredictions(std::vector<std::shared_ptr<const PredictionsFile>> files)
    : files_(std::move(files)) {
  check_alike();
  header_.collection = files_.front()->header().collection;
  header_.most_rows = files_.front()->header().most_rows;
  header_.combination = files_.front()->header().combination;
  for (const auto& file : files_) {
    if (file->header().combination != header_.combination) header_.combination.reset();
  }
  join_members();
  join_graphs();
}

void JoinedPredictions::check_alike() const {
  const PredictionsHeader& first = files_.front()->header();
  const std::string first_path = files_.front()->path().string();
  std::map<std::uint64_t, std::pair<std::int64_t, std::string>> steps;  // of each variant
  std::uint64_t folds = 0;
  std::string folds_path;
  for (const auto& file : files_) {
    const PredictionsHeader& header = file->header();
    const std::string path = file->path().string();
    if (header.collection != first.collection) {
      throw ConfigError(fmt::format("{} is of {}, {} of {}; combine predictions of one collection",
                                    first_path, first.collection, path, header.collection));
    }
    if (header.most_rows != first.most_rows) {
      throw ConfigError(
          fmt::format("{} has {} of a graph, {} has {}; write both with the same predictions.rows",
                      first_path, rows_text(first.most_rows), path, rows_text(header.most_rows)));
    }
    for (const PredictedRun& run : header.runs) {
      if (run.folds > 0 && folds != 0 && run.fold_hash != folds) {
        throw ConfigError(
            fmt::format("{} and {} were trained with other folds; combine runs of the same folds",
                        folds_path, path));
      }
      if (run.folds > 0 && folds == 0) folds = run.fold_hash, folds_path = path;
      const auto [at, fresh] = steps.try_emplace(run.variant_hash, run.step, path);
      if (!fresh && at->second.first != run.step) {
        throw ConfigError(fmt::format(
            "{} is of step {}, {} of step {}; combine runs of equal settings at equal steps",
            at->second.second, at->second.first, path, run.step));
      }
    }
  }
}

void JoinedPredictions::join_members() {
  std::map<std::tuple<std::uint64_t, std::int64_t, std::int64_t, int>, SeenMember> by_seeds;
  std::map<std::pair<std::uint64_t, int>, SeenMember> by_weights;  // and the member's number
  std::set<std::pair<std::string, std::string>> told;              // of two files each thing once
  for (const auto& file : files_) {
    const PredictionsHeader& header = file->header();
    const std::string path = file->path().string();
    const std::vector<std::set<int>> numbers = member_numbers(header);
    const int first_run = static_cast<int>(header_.runs.size());
    first_member_.push_back(static_cast<int>(header_.members.size()));
    for (std::size_t r = 0; r < header.runs.size(); ++r) {
      header_.runs.push_back(header.runs[r]);
      header_.runs.back().source = source_of(*file, r);
    }
    for (PredictedMember member : header.members) {
      const PredictedRun& run = header.runs[static_cast<std::size_t>(member.run)];
      const SeenMember own{path, run.variant_hash, run.parameter_hash,
                           numbers[static_cast<std::size_t>(member.run)]};
      const auto refuse = [&](const SeenMember& other, std::string_view why) {
        throw ConfigError(
            fmt::format("member {} of the seeds {} and {} is in {} and in {}{}; give it once",
                        member.number, run.init_seed, run.order_seed, other.path, path, why));
      };
      if (run.parameter_hash != 0) {
        const auto [same, fresh] = by_weights.try_emplace({run.parameter_hash, member.number}, own);
        if (!fresh && same->second.variant_hash == run.variant_hash)
          refuse(same->second, ", with the same weights");
        if (!fresh && told.emplace(same->second.path, path).second)
          spdlog::warn(
              "{} and {} have the same weights under two recipes: one training counts twice",
              same->second.path, path);
      }
      const auto [same, fresh] = by_seeds.try_emplace(key_of(run, member), own);
      // Different hashes mean different weights only if they cover the same member numbers.
      const bool other_weights = own.parameter_hash != 0 && same->second.parameter_hash != 0 &&
                                 own.numbers == same->second.numbers;
      if (!fresh && !other_weights) refuse(same->second, "");
      if (!fresh && told.emplace(same->second.path, path).second)
        spdlog::warn(
            "{} and {} have one recipe and equal seeds, but other weights: they count as two "
            "trainings",
            same->second.path, path);
      member.run += first_run;
      header_.members.push_back(member);
    }
  }
}

void JoinedPredictions::join_graphs() {
  std::map<std::pair<std::string, std::string>, std::size_t> index;  // by split and name
  for (std::size_t f = 0; f < files_.size(); ++f) {
    const PredictionsHeader& header = files_[f]->header();
    for (std::size_t g = 0; g < header.graphs.size(); ++g) {
      const PredictionEntry& graph = header.graphs[g];
      const auto [at, fresh] = index.try_emplace({graph.split, graph.name}, places_.size());
      if (fresh) {
        PredictionEntry joined = graph;
        joined.held_out.assign(header_.members.size(), false);
        header_.graphs.push_back(std::move(joined));
        places_.emplace_back(files_.size(), -1);
      }
      PredictionEntry& joined = header_.graphs[at->second];
      if (joined.configs != graph.configs || joined.rows != graph.rows) {
        throw ConfigError(fmt::format(
            "{}: {} has {} rows of {} configurations, elsewhere {} of {}; the data differ",
            files_[f]->path().string(), graph.name, graph.rows, graph.configs, joined.rows,
            joined.configs));
      }
      if (joined.fold < 0) joined.fold = graph.fold;
      places_[at->second][f] = static_cast<int>(g);
      for (std::size_t m = 0; m < graph.held_out.size(); ++m)
        joined.held_out[static_cast<std::size_t>(first_member_[f]) + m] = graph.held_out[m];
    }
  }
}

PredictionRows JoinedPredictions::read(int graph) const {
  const PredictionEntry& entry = header_.graphs.at(static_cast<std::size_t>(graph));
  PredictionRows joined;
  joined.scores.assign(header_.members.size(),
                       std::vector<double>(static_cast<std::size_t>(entry.rows), kNone));
  bool first = true;
  for (std::size_t f = 0; f < files_.size(); ++f) {
    const int place = places_[static_cast<std::size_t>(graph)][f];
    if (place < 0) continue;
    PredictionRows own = files_[f]->read(place);
    if (first) {
      joined.configs = own.configs;
      joined.runtime = own.runtime;
      joined.normalizer = own.normalizer;
      first = false;
    }
    if (joined.group.empty()) joined.group = std::move(own.group);
    if (own.configs != joined.configs || own.runtime != joined.runtime ||
        own.normalizer != joined.normalizer) {
      throw DataError(fmt::format(
          "{}: rows or run times of {} are not those of the other files; the data differ",
          files_[f]->path().string(), entry.name));
    }
    for (std::size_t m = 0; m < own.scores.size(); ++m)
      joined.scores[static_cast<std::size_t>(first_member_[f]) + m] = std::move(own.scores[m]);
  }
  return joined;
}

}  // namespace tpudist
