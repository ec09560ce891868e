#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/hash.hpp"
#include "results/report/sections.hpp"

namespace tpudist {
namespace {

ReportFigure hashes_figure(const ReportInput& input) {
  ReportFigure figure;
  figure.heading = "Hashes";
  figure.sentence =
      "Equal hashes are equal bits: of the settings that decide numbers, of the same without seeds "
      "and members (variant), of which graph lies in which fold, of the scored rows and their run "
      "times (data), and of the weights. A run has them with its predictions (predictions.rows).";
  figure.table = {
      {"run", "settings", "variant", "folds", "data", "parameters", "step"}, {}, "hashes"};
  for (const RunRecord& run : input.results.runs) {
    if (!run.hashes) continue;
    const PredictedRun& hashes = *run.hashes;
    figure.table.rows.push_back({run.label, to_hex(hashes.settings_hash),
                                 to_hex(hashes.variant_hash),
                                 hashes.folds > 0 ? to_hex(hashes.fold_hash) : "-",
                                 run.scores ? to_hex(run.scores->data_hash) : "-",
                                 to_hex(hashes.parameter_hash), TableCell::count(hashes.step)});
  }
  return figure;
}

// The keys whose values differ between runs, in the order of their first appearance.
ReportFigure differences_figure(const ReportInput& input) {
  ReportFigure figure;
  figure.heading = "Settings that differ";
  figure.sentence = "Keys of config.yaml whose values are not the same in all runs.";
  figure.table = {{"run"}, {}, "settings-that-differ", true};
  std::vector<const RunRecord*> runs;
  for (const RunRecord& run : input.results.runs) {
    if (run.config.empty()) continue;
    runs.push_back(&run);
    figure.table.rows.push_back({run.label});
  }
  std::set<std::string> seen;
  for (const RunRecord* run : runs) {
    for (const ConfigEntry& entry : run->config) {
      if (!seen.insert(entry.key).second) continue;
      const auto differs = [&](const RunRecord* other) {
        return other->setting(entry.key) != entry.value;
      };
      if (std::ranges::none_of(runs, differs)) continue;
      figure.table.columns.push_back(entry.key);
      for (std::size_t r = 0; r < runs.size(); ++r)
        figure.table.rows[r].emplace_back(runs[r]->setting(entry.key));
    }
  }
  if (figure.table.columns.size() == 1) figure.table.rows.clear();
  return figure;
}

ReportFigure settings_figure(const ReportedVariant& variant, const RunRecord& run) {
  ReportFigure figure;
  figure.heading = "Settings" + (variant.title.empty() ? "" : ": " + variant.title);
  figure.sentence = fmt::format("All of config.yaml of {}.", run.label);
  figure.table = {{"key", "value"}, {}, "settings" + variant.file_end};
  for (const ConfigEntry& entry : run.config) figure.table.rows.push_back({entry.key, entry.value});
  // Open tables of a hundred lines would hide what follows.
  figure.folded = true;
  return figure;
}

}  // namespace

ReportSection configuration_section(const ReportInput& input) {
  ReportSection section{.id = "configuration", .title = "Configuration and hashes"};
  ReportFigure hashes = hashes_figure(input);
  if (hashes.table.rows.empty()) {
    section.missing.push_back("No run has predictions, which hold the hashes (predictions.rows).");
  } else {
    section.figures.push_back(std::move(hashes));
  }
  if (input.results.runs.size() > 1) {
    ReportFigure differences = differences_figure(input);
    if (!differences.table.rows.empty()) section.figures.push_back(std::move(differences));
  }
  for (std::size_t g = 0; g < input.shown(); ++g) {
    for (const RunRecord& run : input.variants[g].runs) {
      if (run.config.empty()) continue;
      section.figures.push_back(settings_figure(input.variants[g], run));
      break;
    }
  }
  return section;
}

}  // namespace tpudist
