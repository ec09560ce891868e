#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/numbers.hpp"
#include "data/schema/model_family.hpp"
#include "launch/sweep/sweep_data.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "statistics/intervals/comparison.hpp"
#include "statistics/intervals/family_variance.hpp"

namespace tpudist {
namespace {

std::string shift_text(double shift) {
  if (std::isinf(shift)) return "even 1,000 SD between trainings is not";
  return fmt::format("{:.{}f} SD between trainings is", shift, shift < 20 ? 1 : 0);
}

std::string training_line(int trainings, int variants, const SweepRecord& record) {
  if (trainings < 2) {
    return fmt::format(
        "with 1 training of each of {} variants no difference between them can be told "
        "from chance: give sweep.seeds\n",
        variants);
  }
  const int pairs = variants * (variants - 1) / 2;
  std::string text = fmt::format(
      "{} trainings of each of {} variants: on these graphs a difference of {} found in 8 of 10 "
      "sweeps{}\n",
      trainings, variants, shift_text(detectable_shift(variants, trainings)),
      pairs > 1 ? fmt::format(" (all {} pairs at once)", pairs) : "");
  if (record.choice != ChoiceScore::none)
    text += fmt::format("after the choice `collect` has the scores of what was chosen{}\n",
                        record.baseline ? ", compared with the first variant, on fresh seeds"
                                        : " on fresh seeds, and tests no pair");
  return text;
}

std::string family_line(const std::string& what, const std::vector<std::string>& graphs) {
  GraphValues design;  // any values: only the degrees of freedom matter
  for (const std::string& graph : graphs) design.families.push_back(model_family(graph));
  design.families = family_clusters(design.families).of;
  design.values.resize(graphs.size());
  std::map<std::string, double> families;  // their numbers of graphs
  for (const std::string& family : design.families) families[family] += 1;
  const auto n = static_cast<double>(families.size());
  double squares = 0;
  for (const auto& [family, own] : families) squares += own * own;
  const std::string start =
      fmt::format("{}: {} of {}: ", what, counted(std::ssize(graphs), "graph"),
                  counted(std::ssize(families), "family"));
  if (n < 2) return start + "nothing can be shown for other families\n";
  return start + fmt::format(
                     "two variants can be told apart on other families only if they differ by "
                     "more than about {:.1f} times the SD of this difference between families\n",
                     detectable(squares / std::pow(static_cast<double>(graphs.size()), 2),
                                family_variance({&design, 1}).degrees));
}

}  // namespace

std::string outlook_text(const SweepRecord& record) {
  std::map<int, int> variants;  // of each group
  for (const int group : record.variant_group) ++variants[group];
  std::set<std::string> lines;  // equal ones once
  std::string text;
  const auto add = [&](const std::string& line) {
    if (lines.insert(line).second) text += line;
  };
  for (const auto& [group, count] : variants) {
    if (count < 2) continue;
    std::set<std::optional<std::uint64_t>> seeds;
    const SweepRun* first = nullptr;
    for (const SweepRun& run : record.runs) {
      if (record.variant_group[run.variant] != group) continue;
      if (!first) first = &run;
      seeds.insert(run.seed);
    }
    if (!first) continue;
    add(training_line(static_cast<int>(seeds.size()), count, record));
    ConfigDocument document = ConfigDocument::parse(first->config, "sweep.json");
    const Experiment experiment = read_experiment(document);
    const FrozenData* data = find_data(record.data, experiment);
    if (!data || seeds.size() < 2) continue;
    const bool folds =
        record.choice == ChoiceScore::out_of_fold ||
        (record.choice == ChoiceScore::none && first->folds > 0 && experiment.predictions.wanted);
    std::vector<std::string> graphs;
    for (const GraphEntry& graph : chosen_graphs(*data, experiment, folds ? "train" : "valid"))
      graphs.push_back(graph.name);
    add(family_line(folds ? "training graphs, out of fold" : "validation graphs", graphs));
  }
  return text.empty() ? text : "what this can show:\n" + text;
}

}  // namespace tpudist
