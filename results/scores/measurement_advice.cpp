#include "results/scores/measurement_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"
#include "data/schema/model_family.hpp"
#include "results/records/run_folder.hpp"
#include "results/scores/joined_predictions.hpp"
#include "results/scores/member_scores.hpp"
#include "statistics/intervals/family_variance.hpp"

namespace tpudist {
namespace {

std::int64_t distinct_configs(const PredictionRows& rows) {
  if (rows.group.empty()) return std::ssize(rows.configs);
  return std::ssize(std::set<std::int32_t>(rows.group.begin(), rows.group.end()));
}

void learn(std::span<const RankingRun> runs, const Combination& combination,
           MeasurementAdvice& advice) {
  const RankingPredictions predictions = ranking_predictions(runs);
  advice.unknown = predictions.lack;
  if (!predictions.source) return;
  advice.collection = predictions.source->header().collection;
  if (predictions.runs < std::ssize(runs))
    advice.note = fmt::format("learned from {} of {} runs: {}\n", predictions.runs, runs.size(),
                              predictions.lack);
  std::ptrdiff_t members = 0, fewest = std::numeric_limits<std::ptrdiff_t>::max();
  for (const RankingRun& run : runs) members += std::ssize(run.used);
  const auto add = [&](const PredictionEntry& graph, const PredictionRows& rows,
                       const std::vector<double>& weights) {
    const std::vector<double> combined = combine_scored(rows.scores, combination, weights);
    if (combined.empty()) return;
    const auto need = needed_measurements(combined, rows.targets(), advice.within, rows.group);
    if (!need) return;
    advice.families.push_back(model_family(graph.name));
    advice.needed.push_back(*need);
    advice.longest = std::max(advice.longest, distinct_configs(rows));
    fewest = std::min(fewest, std::ranges::count(weights, 1.0));
  };
  each_unseen_graph(*predictions.source, add, predictions.takes_part);
  if (fewest < members && !advice.needed.empty())
    advice.note += fmt::format(
        "learned from rankings by {} or more: of a graph in folds, few of the {} have not seen "
        "it\n",
        counted(fewest, "member"), counted(members, "member"));
  FamilyClusters clusters = family_clusters(advice.families);
  if (!clusters.note.empty()) advice.note += clusters.note + "\n";
  advice.families = std::move(clusters.of);
  advice.promise = promise_measurements(advice.families, advice.needed, advice.confidence);
  advice.unknown = advice.needed.empty() ? "no graph that members never saw has run times" : "";
}

std::string share_text(double share) {
  return fmt::format("{:.6g} %", 100 * share);
}

}  // namespace

RankingPredictions ranking_predictions(std::span<const RankingRun> runs) {
  RankingPredictions found;
  std::vector<std::shared_ptr<const PredictionsFile>> files;
  std::map<std::string, const std::set<int>*> used;  // by folder
  for (const RankingRun& run : runs) {
    const std::filesystem::path path = RunFolder(run.path).predictions();
    std::string lack;
    if (!std::filesystem::exists(path)) {
      lack = fmt::format(
          "{} has no predictions of graphs that its members never saw (predictions.rows)",
          run.path.string());
    } else {
      auto file = std::make_shared<PredictionsFile>(path);
      const auto& own = file->header().runs;
      if (own.size() == 1 && own.front().parameter_hash == run.parameter_hash) {
        files.push_back(std::move(file));
        used[path.parent_path().string()] = &run.used;
      } else {
        lack = fmt::format("{} is of other weights than those that rank", path.string());
      }
    }
    if (found.lack.empty()) found.lack = lack;
  }
  found.runs = static_cast<int>(files.size());
  if (files.empty()) return found;
  found.source = std::make_unique<const JoinedPredictions>(std::move(files));
  const PredictionsHeader& header = found.source->header();
  for (const PredictedMember& member : header.members) {
    const std::string& source = header.runs[static_cast<std::size_t>(member.run)].source;
    found.takes_part.push_back(used.at(source)->contains(member.number));
  }
  return found;
}

std::string MeasurementAdvice::text(std::int64_t configs) const {
  if (!unknown.empty()) return "cannot say how many to measure: " + unknown + "\n";
  if (promise.count == 0)
    return fmt::format(
               "cannot say how many to measure: {} confidence needs unseen graphs of {}; these "
               "runs have {}\n",
               share_text(confidence), counted(promise.least_families, "family"),
               promise.families) +
           note;
  return fmt::format(
             "measure {}: with {} confidence the best of them is within {} of the best "
             "configuration (from {}){}\n",
             promise.count >= configs ? fmt::format("all {}", configs)
                                      : fmt::format("the first {}", promise.count),
             share_text(confidence), share_text(within), counted(promise.families, "family"),
             configs > longest
                 ? fmt::format("; those lists have at most {}, so this one may take more",
                               counted(longest, "configuration"))
                 : "") +
         note;
}

nlohmann::ordered_json MeasurementAdvice::json() const {
  nlohmann::ordered_json json = {
      {"count", nullptr},         {"within", within},
      {"confidence", confidence}, {"families", promise.families},
      {"graphs", promise.graphs}, {"least_families", promise.least_families},
      {"longest_list", longest},  {"collection", collection}};
  for (std::size_t g = 0; g < needed.size(); ++g)
    json["needed"].push_back({{"family", families[g]}, {"count", needed[g]}});
  if (promise.count > 0) json["count"] = promise.count;
  if (!unknown.empty()) json["unknown"] = unknown;
  if (!note.empty()) json["note"] = std::string(trim(note));
  return json;
}

MeasurementAdvice advise_measurements(std::span<const RankingRun> runs,
                                      const Combination& combination, double within,
                                      double confidence) {
  MeasurementAdvice advice{.within = within, .confidence = confidence};
  try {
    learn(runs, combination, advice);
  } catch (const Error& error) {
    advice.promise = {};
    advice.unknown = error.what();
  }
  return advice;
}

}  // namespace tpudist
