#include "sweep/sweep_outlook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "schema/model_family.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/permutation.hpp"
#include "statistics/intervals/power.hpp"
#include "sweep/sweep_data.hpp"

namespace tpudist {
namespace {

// The smallest two-sided p value of exchanging the labels of n and n runs.
double least_label_p(int n) {
  double splits = 1;
  for (int i = 1; i <= n; ++i) splits *= static_cast<double>(n + i) / i;
  return 2 / splits;
}

std::string training_line(int trainings, int variants, int pairs) {
  if (trainings < 2) {
    return fmt::format(
        "with 1 training of each of {} variants no difference between them can be told "
        "from chance: give sweep.seeds\n",
        variants);
  }
  const std::string holm = pairs > 1 ? fmt::format(", Holm over {} pairs", pairs) : std::string();
  std::string text = fmt::format(
      "{} trainings of each of {} variants: of two that differ by less than about {:.1f} SD "
      "between "
      "trainings it will not be seen which is better (power {:.0f} %{})\n",
      trainings, variants, detectable(2.0 / trainings, 2.0 * (trainings - 1), pairs), 100 * kPower,
      holm);
  const double p = std::min(1.0, least_label_p(trainings) * pairs);
  if (p > kSignificance) {
    text += fmt::format("exchanged labels of {} and {} trainings give p {:.2f} at best{}\n",
                        trainings, trainings, p, pairs > 1 ? ", by Holm" : "");
  }
  return text;
}

std::string family_line(const std::string& what, const std::vector<std::string>& graphs,
                        int pairs) {
  std::set<std::string> families;
  for (const std::string& graph : graphs) families.insert(model_family(graph));
  const auto n = static_cast<double>(families.size());
  const std::string start = fmt::format("{}: {} graph{} of {} famil{}: ", what, graphs.size(),
                                        graphs.size() == 1 ? "" : "s", families.size(),
                                        families.size() == 1 ? "y" : "ies");
  if (n < 2) return start + "nothing can be shown for other families\n";
  return start + fmt::format(
                     "for other families only differences above about {:.1f} times their SD "
                     "between families can be shown\n",
                     detectable(1 / n, n - 1, pairs));
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
      if (record.variant_group[static_cast<std::size_t>(run.variant)] != group) continue;
      if (!first) first = &run;
      seeds.insert(run.seed);
    }
    if (!first) continue;
    const int pairs = count * (count - 1) / 2;
    add(training_line(static_cast<int>(seeds.size()), count, pairs));
    ConfigDocument document = ConfigDocument::parse(first->config, "sweep.json");
    const Experiment experiment = read_experiment(document);
    const FrozenData* data = record.data ? find_data(*record.data, experiment) : nullptr;
    if (!data || seeds.size() < 2) continue;
    const bool folds =
        record.choice == ChoiceScore::out_of_fold ||
        (record.choice == ChoiceScore::none && first->folds > 0 && experiment.predictions.wanted);
    std::vector<std::string> graphs;
    for (const GraphEntry& graph : chosen_graphs(*data, experiment, folds ? "train" : "valid"))
      graphs.push_back(graph.name);
    add(family_line(folds ? "training graphs, out of fold" : "validation graphs", graphs, pairs));
  }
  return text.empty() ? text : "what this can show:\n" + text;
}

}  // namespace tpudist
