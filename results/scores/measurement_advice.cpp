#include "results/scores/measurement_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "data/schema/model_family.hpp"
#include "results/records/run_folder.hpp"
#include "results/scores/joined_predictions.hpp"
#include "results/scores/member_scores.hpp"
#include "statistics/intervals/family_variance.hpp"

namespace tpudist {
namespace {

// The predictions of the runs by the weights that rank; `unknown` says what the first other run
// lacks.
std::vector<std::shared_ptr<const PredictionsFile>> open_predictions(
    std::span<const RankingRun> runs, std::string& unknown) {
  std::vector<std::shared_ptr<const PredictionsFile>> files;
  for (const RankingRun& run : runs) {
    const std::filesystem::path path = RunFolder(run.path).predictions();
    std::string lack;
    if (!std::filesystem::exists(path)) {
      lack = fmt::format(
          "{} has no predictions of graphs that its members never saw "
          "(predictions.rows)",
          run.path.string());
    } else {
      auto file = std::make_shared<PredictionsFile>(path);
      const auto& own = file->header().runs;
      if (own.size() == 1 && own.front().parameter_hash == run.parameter_hash)
        files.push_back(std::move(file));
      else
        lack = fmt::format("{} is of other weights than those that rank", path.string());
    }
    if (unknown.empty()) unknown = lack;
  }
  return files;
}

std::int64_t distinct_configs(const PredictionRows& rows) {
  if (rows.group.empty()) return std::ssize(rows.configs);
  return std::ssize(std::set<std::int32_t>(rows.group.begin(), rows.group.end()));
}

void learn(std::span<const RankingRun> runs, const Combination& combination,
           MeasurementAdvice& advice) {
  auto files = open_predictions(runs, advice.unknown);
  if (files.empty()) return;
  const JoinedPredictions joined(std::move(files));
  const PredictionsHeader& header = joined.header();
  advice.collection = header.collection;
  std::vector<bool> takes_part;
  for (const PredictedMember& member : header.members) {
    const auto run = std::ranges::find_if(runs, [&](const RankingRun& one) {
      return RunFolder(one.path).predictions().parent_path().string() ==
             header.runs[static_cast<std::size_t>(member.run)].source;
    });
    takes_part.push_back(run != runs.end() && run->used.contains(member.number));
  }
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& graph = header.graphs[g];
    if (graph.split == "test") continue;
    const PredictionRows rows = joined.read(static_cast<int>(g));
    std::vector<double> weights = held_out_weights(graph, rows);
    for (std::size_t m = 0; m < weights.size(); ++m) {
      if (!takes_part[m]) weights[m] = 0;
    }
    const std::vector<double> combined = combine_scored(rows.scores, combination, weights);
    if (combined.empty()) continue;
    const auto need = needed_measurements(combined, rows.targets(), advice.within, rows.group);
    if (!need) continue;
    advice.families.push_back(model_family(graph.name));
    advice.needed.push_back(*need);
    advice.longest = std::max(advice.longest, distinct_configs(rows));
  }
  FamilyClusters clusters = family_clusters(advice.families);
  advice.note = std::move(clusters.note);
  advice.families = std::move(clusters.of);
  advice.promise = promise_measurements(advice.families, advice.needed, advice.confidence);
  advice.unknown = advice.needed.empty() ? "no graph that members never saw has run times" : "";
}

std::string share_text(double share) {
  return fmt::format("{:.6g} %", 100 * share);
}

}  // namespace

std::string MeasurementAdvice::text(std::int64_t configs) const {
  if (!unknown.empty()) return "how many to measure is not known: " + unknown + "\n";
  const std::string kin = note.empty() ? "" : note + "\n";
  if (promise.count == 0)
    return fmt::format(
               "how many to measure is not known: {} of unseen graphs cannot promise {} "
               "confidence, "
               "{} can\n",
               counted(promise.families, "family"), share_text(confidence),
               promise.least_families) +
           kin;
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
         kin;
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
  if (!note.empty()) json["note"] = note;
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
