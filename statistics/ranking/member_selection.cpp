#include "statistics/ranking/member_selection.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/family_variance.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

std::size_t check(std::span<const SelectionGraph> graphs) {
  if (graphs.empty()) throw Error(ErrorKind::failed, "members cannot be judged without a graph");
  const std::size_t members = graphs.front().scores.size();
  if (members == 0) throw Error(ErrorKind::failed, "there is no member to judge");
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    if (graphs[g].scores.size() != members)
      throw Error(ErrorKind::failed, fmt::format("graph {} has scores of {} members, graph 0 of {}",
                                                 g, graphs[g].scores.size(), members));
    for (const Values& scores : graphs[g].scores) {
      if (scores.size() != graphs[g].targets.size())
        throw Error(ErrorKind::failed, fmt::format("graph {} has {} scores for {} run times", g,
                                                   scores.size(), graphs[g].targets.size()));
    }
  }
  return members;
}

Values weighted_sum(const SelectionGraph& graph, std::span<const double> weights) {
  Values sum(graph.targets.size(), 0.0);
  for (std::size_t m = 0; m < weights.size(); ++m) {
    if (weights[m] == 0) continue;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weights[m] * graph.scores[m][k];
  }
  return sum;
}

double metric_of(const SelectionGraph& graph, std::span<const double> weights,
                 const RankingMetric& metric) {
  return metric(weighted_sum(graph, weights), graph.targets);
}

// [G]
Values metrics_of(std::span<const SelectionGraph> graphs, std::span<const double> weights,
                  const RankingMetric& metric) {
  Values values;
  for (const SelectionGraph& graph : graphs) values.push_back(metric_of(graph, weights, metric));
  return values;
}

// How often each member is selected, on the graphs of all families except `left_out`. Keeps the
// sums over the selected members: a round costs one addition and one metric per member and graph.
Values greedy_weights(std::span<const SelectionGraph> graphs, const std::string* left_out,
                      const RankingMetric& metric, int rounds) {
  std::vector<const SelectionGraph*> used;
  for (const SelectionGraph& graph : graphs) {
    if (!left_out || graph.family != *left_out) used.push_back(&graph);
  }
  const std::size_t members = graphs.front().scores.size();
  std::vector<Values> sums;
  for (const SelectionGraph* graph : used) sums.emplace_back(graph->targets.size(), 0.0);
  Values taken(members, 0.0), candidate;
  for (int round = 0; round < rounds; ++round) {
    std::size_t best = 0;
    double best_value = -std::numeric_limits<double>::infinity();
    for (std::size_t m = 0; m < members; ++m) {
      Values values;
      for (std::size_t g = 0; g < used.size(); ++g) {
        candidate = sums[g];
        for (std::size_t k = 0; k < candidate.size(); ++k) candidate[k] += used[g]->scores[m][k];
        values.push_back(metric(candidate, used[g]->targets));
      }
      const double value = mean_of_known(values);
      if (value > best_value) best = m, best_value = value;
    }
    ++taken[best];
    for (std::size_t g = 0; g < used.size(); ++g) {
      for (std::size_t k = 0; k < sums[g].size(); ++k) sums[g][k] += used[g]->scores[best][k];
    }
  }
  for (double& count : taken) count /= rounds;
  return taken;
}

// [G] each graph with the weights selected on the other families.
Values nested_metrics(std::span<const SelectionGraph> graphs, const std::set<std::string>& families,
                      const RankingMetric& metric, int rounds) {
  Values values(graphs.size());
  for (const std::string& family : families) {
    const Values weights = greedy_weights(graphs, &family, metric, rounds);
    for (std::size_t g = 0; g < graphs.size(); ++g) {
      if (graphs[g].family == family) values[g] = metric_of(graphs[g], weights, metric);
    }
  }
  return values;
}

// Sets standard error and threshold of the mean gain, and whether the gain exceeds the threshold.
void judge_gain(MemberSelection& selection, std::span<const SelectionGraph> graphs,
                std::span<const double> plain) {
  GraphValues gains;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const double gain = selection.nested_graphs[g] - plain[g];
    if (std::isnan(gain)) continue;
    gains.families.push_back(graphs[g].family);
    gains.values.push_back(gain);
  }
  selection.gain_error = selection.gain_noise = kNone;
  if (std::set(gains.families.begin(), gains.families.end()).size() < 2) return;
  const VarianceEstimate variance = family_variance({&gains, 1});
  selection.gain_error = std::sqrt(variance.variance);
  selection.gain_degrees = variance.degrees;
  selection.gain_noise = t_quantile(0.95, variance.degrees) * selection.gain_error;
  selection.takes_selection = mean(gains.values) > selection.gain_noise;
}

}  // namespace

MemberSelection select_members(std::span<const SelectionGraph> graphs, const RankingMetric& metric,
                               int rounds, std::span<const double> plain) {
  const std::size_t members = check(graphs);
  std::set<std::string> families;
  for (const SelectionGraph& graph : graphs) families.insert(graph.family);
  if (families.size() < 2)
    throw ConfigError(
        "members can be selected only where one family can be left out: the graphs are of one "
        "family; combine all members instead");
  if (!plain.empty() && plain.size() != graphs.size())
    throw Error(ErrorKind::failed, fmt::format("{} scores without a choice for {} graphs",
                                               plain.size(), graphs.size()));
  const Values equal(members, 1.0 / static_cast<double>(members));
  const Values without_choice =
      plain.empty() ? metrics_of(graphs, equal, metric) : Values(plain.begin(), plain.end());
  MemberSelection selection;
  selection.plain = mean_of_known(without_choice);
  selection.weights = greedy_weights(graphs, nullptr, metric, rounds);
  selection.in_sample = mean_of_known(metrics_of(graphs, selection.weights, metric));
  selection.nested_graphs = nested_metrics(graphs, families, metric, rounds);
  selection.nested = mean_of_known(selection.nested_graphs);
  judge_gain(selection, graphs, without_choice);
  if (!selection.takes_selection) selection.weights = equal;
  return selection;
}

}  // namespace tpudist
