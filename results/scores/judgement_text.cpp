#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text_table.hpp"
#include "results/scores/judgement.hpp"
#include "results/scores/score_table.hpp"
#include "results/scores/table_intervals.hpp"
#include "statistics/intervals/score_intervals.hpp"

namespace tpudist {
namespace {

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4f}", value);
}

std::string rejection_lines(const Judgement& judgement) {
  std::string text;
  for (std::size_t m = 0; m < judgement.failed.size(); ++m) {
    if (judgement.failed[m])
      text +=
          fmt::format("left out  {}: its loss or gradient was not finite\n", judgement.names[m]);
  }
  for (const Rejection& rejection : judgement.rejected) {
    text +=
        fmt::format("{}  {}: {}\n", judgement.keep_all ? "kept all the same" : "rejected",
                    judgement.names[static_cast<std::size_t>(rejection.member)], rejection.reason);
  }
  if (judgement.rejected.empty() && !judgement.names.empty())
    text += fmt::format("rejected  none of {}\n", counted(std::ssize(judgement.names), "member"));
  return text;
}

// Scores with and without rejected members, columns left out, flagged graphs.
std::string table_notes(const Judgement& judgement, const TableJudgement& table) {
  std::string text;
  if (!judgement.rejected.empty() && !judgement.keep_all && !std::isnan(table.kept)) {
    text += fmt::format("{}: members together {} with rejected members, {} without\n", table.title,
                        number(table.all), number(table.kept));
  }
  for (const std::string& line : table.left_out) text += fmt::format("left out  {}\n", line);
  for (const GraphEvaluation& graph : table.graphs) {
    if (!graph.suspicious) continue;
    text += fmt::format(
        "flagged  {}: members agree (tau {}) on a ranking that its run times contradict ({}); they "
        "may be corrupted; it counts all the same\n",
        graph.name, number(graph.agreement), number(graph.kept));
  }
  return text;
}

std::string column_lines(const TableJudgement& table, std::string_view metric) {
  TextTable lines({"member", right(metric, 11), right("gain", 8), right("weight", 8)});
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    lines.rows.push_back({table.columns[c], table.means[c], TableCell(table.gains[c], "{:+.4f}"),
                          TableCell(table.weights[c], "{:.3g}")});
  }
  return lines.to_text();
}

// Names the two scores: mean of members, and members together.
std::string means_text(const TableJudgement& table) {
  return fmt::format("members together  {}\nmean of members   {}\n", number(table.kept),
                     number(table.mean_of_members));
}

std::string table_text(const TableJudgement& table, std::string_view metric) {
  TextTable graphs({"graph", right("configs", 9), right(metric, 11), right("agreement")});
  for (const GraphEvaluation& graph : table.graphs)
    graphs.rows.push_back({graph.name, graph.rows, graph.kept, graph.agreement});
  for (const TableJudgement& part : table.parts) graphs.rows.push_back({part.title, "", part.kept});
  if (!table.parts.empty())
    graphs.rows.push_back({kMeanOfCollections, "", final_intervals({&table, 1}).score});
  graphs.rows.push_back({"mean", "", table.kept});
  std::string text = table.title + ", members together\n\n" + graphs.to_text();
  text += means_text(table) + "\n";
  text += limits_text(table.graphs, metric) + column_lines(table, metric) + "\n" +
          table_interval_text(table) + "\n";
  if (table.parts.empty()) return text;
  const std::string intervals = final_interval_text({&table, 1});
  if (!intervals.empty()) return text + fmt::format("{}, {}\n", kMeanOfCollections, intervals);
  const auto without = std::ranges::find_if(
      table.parts, [](const TableJudgement& part) { return std::isnan(part.kept); });
  return text + fmt::format("{}: undefined, since no graph of {} has a score\n\n",
                            kMeanOfCollections, without->title);
}

// The options that were fixed beforehand, and the members that they reject.
std::string rule_text(const Judgement& judgement) {
  std::string text = fmt::format("rule, fixed beforehand: combined by {}{}{}\n",
                                 name_of(judgement.combination.rule),
                                 judgement.combination.rule == CombinationRule::softmax
                                     ? fmt::format(" ({})", judgement.combination.temperature)
                                     : "",
                                 judgement.keep_all ? ", no member rejected (--keep-all)" : "");
  if (!judgement.recipes.empty()) text += fmt::format("note  {}\n", judgement.recipes);
  text += rejection_lines(judgement);
  for (const TableJudgement& table : judgement.tables) text += table_notes(judgement, table);
  return text;
}

}  // namespace

std::string limits_text(std::span<const GraphEvaluation> graphs, std::string_view metric) {
  const auto unknown = [](const GraphEvaluation& graph) { return std::isnan(graph.kept); };
  if (metric != "kendall_tau" || std::ranges::all_of(graphs, unknown)) return {};
  TextTable table({"graph", right(metric, 11), right("ceiling"), right("95 % interval", 15),
                   right("ties", 8), right("sampling SD")});
  using Note = std::pair<std::string_view, std::string>;
  std::map<Note, std::vector<std::string>> noted;  // graphs by what is said of them
  for (const GraphEvaluation& graph : graphs) {
    const NoiseCeiling& ceiling = graph.limits.ceiling;
    table.rows.push_back(
        {graph.name, graph.kept, ceiling.value,
         ceiling.value ? fmt::format("{:.3f} to {:.3f}", ceiling.low, ceiling.high) : "-",
         TableCell(100 * graph.limits.tied_share, "{:.2f} %"), graph.limits.sampling_deviation});
    if (!ceiling.value) noted[{"no ceiling", ceiling.reason}].push_back(graph.name);
    if (ceiling.normal_assumed)
      noted[{"ceiling", "noise assumed normal, too few configurations have six measurements"}]
          .push_back(graph.name);
  }
  std::string text = table.to_text();
  for (const auto& [note, names] : noted) {
    const std::string others =
        names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : std::string();
    text += fmt::format("{} of {}{}: {}\n", note.first, names.front(), others, note.second);
  }
  return text + "\n";
}

std::string judgement_text(const Judgement& judgement) {
  std::string text = judgement.collection + "\n";
  for (const TableJudgement& table : judgement.tables)
    text += table_text(table, primary_metric(judgement.collection).name);
  return text + rule_text(judgement);
}

std::string judgement_notes(const Judgement& judgement) {
  std::string text;
  for (const TableJudgement& table : judgement.tables) {
    text += limits_text(table.graphs, primary_metric(judgement.collection).name);
    if (table.columns.size() > 1 && !std::isnan(table.kept))
      text += column_lines(table, primary_metric(judgement.collection).name) + "\n";
    if (!std::isnan(table.kept)) text += table_interval_text(table) + "\n";
  }
  return text + rule_text(judgement);
}

nlohmann::json judgement_json(const Judgement& judgement) {
  nlohmann::json rejected = nlohmann::json::array(), tables = nlohmann::json::array();
  for (const Rejection& rejection : judgement.rejected) {
    rejected.push_back({{"member", judgement.names[static_cast<std::size_t>(rejection.member)]},
                        {"reason", rejection.reason}});
  }
  for (const TableJudgement& table : judgement.tables) {
    nlohmann::json columns = nlohmann::json::array(), graphs = nlohmann::json::array();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      columns.push_back({{"name", table.columns[c]},
                         {"score", finite_or_null(table.means[c])},
                         {"gain", finite_or_null(table.gains[c])},
                         {"weight", table.weights[c]}});
    }
    for (const GraphEvaluation& graph : table.graphs) {
      graphs.push_back({{"name", graph.name},
                        {"family", graph.family},
                        {"configs", graph.rows},
                        {"score", finite_or_null(graph.kept)},
                        {"agreement", finite_or_null(graph.agreement)},
                        {"suspicious", graph.suspicious}});
      graphs.back().update(limits_json(graph.limits));
    }
    nlohmann::json one = {{"title", table.title},
                          {"trained_on", table.trained_on},
                          {"columns", columns},
                          {"graphs", graphs},
                          {"score", finite_or_null(table.kept)},
                          {"score_of", "members together"},
                          {"mean_of_members", finite_or_null(table.mean_of_members)},
                          {"score_with_rejected", finite_or_null(table.all)},
                          {"intervals", table_interval_json(table)},
                          {"left_out", table.left_out}};
    for (const TableJudgement& part : table.parts) {
      one["collections"][part.title] = {{"score", finite_or_null(part.kept)},
                                        {"mean_of_members", finite_or_null(part.mean_of_members)},
                                        {"intervals", table_interval_json(part)}};
    }
    if (!table.parts.empty()) {
      const TableIntervals found = final_intervals({&table, 1});
      one["mean_of_collections"] = {{"score", finite_or_null(found.score)},
                                    {"intervals",
                                     {{"these_graphs", interval_json(found.these_graphs)},
                                      {"other_families", family_interval_json(found.families)}}}};
    }
    tables.push_back(std::move(one));
  }
  return {{"collection", judgement.collection},
          {"metric", primary_metric(judgement.collection).name},
          {"combine", name_of(judgement.combination.rule)},
          {"keep_all", judgement.keep_all},
          {"rejected", rejected},
          {"tables", tables}};
}

}  // namespace tpudist
