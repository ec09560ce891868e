#include "results/sweep_intervals.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "results/comparison_text.hpp"
#include "results/system_scores.hpp"

namespace tpudist {
namespace {

// What there is to say of one variant.
struct Variant {
  std::string label;
  SystemScores valid, out_of_fold;
  std::string error;  // why there is nothing
};

std::vector<Variant> variants_of(const ResultSet& results) {
  std::vector<Variant> variants;
  if (!results.sweep) return variants;
  for (const std::string& label : results.sweep->labels) {
    std::vector<RunRecord> runs;
    for (const RunRecord& run : results.runs) {
      if (run.variant == label) runs.push_back(run);
    }
    if (runs.empty()) continue;
    Variant& variant = variants.emplace_back();
    variant.label = label;
    try {
      variant.valid = system_scores(runs, JudgedGraphs::valid, RunUnit::automatic);
      variant.out_of_fold = system_scores(runs, JudgedGraphs::out_of_fold, RunUnit::automatic);
    } catch (const Error& error) {
      variant.error = error.what();
    }
  }
  return variants;
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += "  ";
  }
  return result;
}

}  // namespace

std::string sweep_interval_text(const ResultSet& results) {
  std::string text;
  for (const Variant& variant : variants_of(results)) {
    text += variant.label + ", 95 % intervals\n";
    if (!variant.error.empty()) {
      text += "  not told: " + variant.error + "\n";
      continue;
    }
    const bool valid = !variant.valid.labels.empty(), folds = !variant.out_of_fold.labels.empty();
    if (valid || !folds) text += indented(system_text(variant.valid));
    if (folds) text += indented(system_text(variant.out_of_fold));
  }
  return text;
}

nlohmann::json sweep_interval_json(const ResultSet& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const Variant& variant : variants_of(results)) {
    nlohmann::json one = {{"variant", variant.label}};
    if (variant.error.empty()) {
      one["valid"] = system_json(variant.valid);
      one["out_of_fold"] = system_json(variant.out_of_fold);
    } else {
      one["error"] = variant.error;
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace tpudist
