#include "results/scores/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/text.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/model_family.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

bool all_nan(const Values& values) {
  return std::ranges::all_of(values, [](double value) { return std::isnan(value); });
}

// Graphs of a source that are judged together, in the order of the header.
struct GraphSet {
  std::string title;
  bool out_of_fold = false;
  std::vector<int> graphs;
};

bool holds_out(const PredictionsHeader& header) {
  return std::ranges::any_of(header.members, [](const auto& member) { return member.fold >= 0; });
}

std::string title_of(const std::string& split, bool out_of_fold) {
  if (!out_of_fold) return split + " split";
  return split == "train" ? "training graphs, out of fold" : split + " split, out of fold";
}

// The sets of graphs to judge, one per split. If members hold folds out, a graph of a split that
// they train on counts only if a member holds it out.
std::vector<GraphSet> graph_sets(const PredictionsHeader& header) {
  std::map<std::string, GraphSet> sets;
  const bool folds = holds_out(header);
  std::set<std::string> trained_on{"train"};
  for (const PredictionEntry& graph : header.graphs) {
    if (graph.fold >= 0) trained_on.insert(graph.split);
  }
  for (std::size_t g = 0; g < header.graphs.size(); ++g) {
    const PredictionEntry& graph = header.graphs[g];
    const bool out_of_fold = folds && trained_on.contains(graph.split);
    if (out_of_fold && std::ranges::find(graph.held_out, true) == graph.held_out.end()) continue;
    GraphSet& set = sets[graph.split];
    set.out_of_fold = out_of_fold;
    set.title = title_of(graph.split, out_of_fold);
    set.graphs.push_back(static_cast<int>(g));
  }
  std::vector<GraphSet> result;
  for (auto& [split, set] : sets) result.push_back(std::move(set));
  return result;
}

// Whether the scores of a member on a graph count in this set.
bool counts(const GraphSet& set, const PredictionEntry& graph, std::size_t member) {
  return !set.out_of_fold || graph.held_out[member];
}

// [C][graphs] and [T][graphs]: the metric of the combination without one column or training.
struct Without {
  std::vector<Values> columns, trainings;

  explicit Without(const std::vector<MemberColumn>& all) : columns(all.size()) {
    int count = 0;
    for (const MemberColumn& column : all) count = std::max(count, column.training + 1);
    trainings.resize(static_cast<std::size_t>(count));
  }
};

class Judge {
 public:
  Judge(const PredictionSource& source, const JudgementOptions& options)
      : source_(source),
        header_(source.header()),
        options_(options),
        metric_(primary_metric(header_.collection)),
        is_tile_(Collection{header_.collection}.is_tile()),
        members_(header_.graphs.size()) {}

  Judgement run(bool tables) {
    result_.collection = header_.collection;
    result_.combination = options_.combination;
    result_.keep_all = options_.keep_all;
    result_.names = member_labels(header_);
    result_.recipes = several_recipes_text(header_);
    for (const PredictedMember& member : header_.members) result_.failed.push_back(member.failed);
    const std::vector<GraphSet> sets = graph_sets(header_);
    reject(sets);
    if (!tables) return std::move(result_);
    for (const GraphSet& set : sets) result_.tables.push_back(table_of(set));
    return std::move(result_);
  }

 private:
  // The facts by which the rule rejects members, from one set of graphs.
  std::vector<MemberRecord> records_of(const GraphSet& set) {
    std::vector<MemberRecord> records;
    for (const PredictedMember& member : header_.members)
      records.push_back(
          {!member.failed, member.first_loss, member.last_loss, {}, true, member.loss_margin});
    std::vector<bool> ranking(records.size());  // whether a member ranks any graph
    for (const int g : set.graphs) {
      const PredictionEntry& graph = header_.graphs[static_cast<std::size_t>(g)];
      const PredictionRows predictions = source_.read(g);
      const Values targets = predictions.targets();
      std::vector<std::size_t> alike;  // members that give all rows one score
      bool ranked = false;             // by a member that learned
      for (std::size_t m = 0; m < records.size(); ++m) {
        const Values& scores = predictions.scores[m];
        // All NaN means "not scored" only on graphs that the member trained on.
        const bool scored = counts(set, graph, m) && !result_.failed[m] && !scores.empty() &&
                            (graph.held_out[m] || !all_nan(scores));
        if (scored && !all_finite(scores)) {
          records[m].finite = false;
          unusable_[m] = true;
        }
        double metric = kNone;
        if (scored && records[m].finite && graph.split != "test")
          metric =
              predictions.metrics.empty() ? metric_.of(scores, targets) : predictions.metrics[m];
        if (scored && records[m].finite) {
          const auto [least, most] = std::ranges::minmax(scores);
          if (least == most)
            alike.push_back(m);
          else
            ranking[m] = true, ranked = ranked || !records[m].loss_did_not_fall();
        }
        records[m].scores.push_back(metric);
        members_[static_cast<std::size_t>(g)].push_back(metric);
      }
      if (!ranked) continue;
      for (const std::size_t m : alike) records[m].ranks = false;
    }
    for (std::size_t m = 0; m < records.size(); ++m)
      records[m].ranks = records[m].ranks || ranking[m];
    return records;
  }

  void reject(const std::vector<GraphSet>& sets) {
    unusable_ = result_.failed;
    std::map<int, std::string> reasons;  // the first that a member gave
    for (const GraphSet& set : sets) {
      for (Rejection& rejection : rejected_members(records_of(set)))
        reasons.emplace(rejection.member, std::move(rejection.reason));
    }
    for (auto& [member, reason] : reasons) {
      if (!result_.failed[static_cast<std::size_t>(member)])
        result_.rejected.push_back({member, std::move(reason)});
    }
    result_.used.assign(header_.members.size(), true);
    for (std::size_t m = 0; m < result_.used.size(); ++m) result_.used[m] = !unusable_[m];
    able_ = result_.used;
    if (!options_.keep_all) {
      for (const Rejection& rejection : result_.rejected)
        result_.used[static_cast<std::size_t>(rejection.member)] = false;
    }
    if (std::ranges::find(result_.used, true) == result_.used.end()) {
      throw ConfigError(fmt::format(
          "no member is left to combine: {} failed, {} rejected, the first because {}; --keep-all "
          "combines rejected members whose scores are finite",
          std::ranges::count(result_.failed, true), result_.rejected.size(),
          result_.rejected.empty() ? "its loss was not finite" : result_.rejected.front().reason));
    }
  }

  // Scores of the columns of a graph; empty for a column without scores, or whose member is not in
  // `which`.
  std::vector<Values> column_scores(const std::vector<MemberColumn>& columns, const GraphSet& set,
                                    const PredictionEntry& graph, const PredictionRows& predictions,
                                    const std::vector<bool>& which) const {
    std::vector<Values> scores(columns.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const int member = columns[c].member_for(header_, graph);
      if (member < 0) continue;
      const auto m = static_cast<std::size_t>(member);
      const Values& own = predictions.scores[m];
      if (which[m] && counts(set, graph, m) && !all_nan(own)) scores[c] = own;
    }
    return scores;
  }

  Values combined(const std::vector<Values>& scores, const Values& weights = {}) const {
    return combine_scored(scores, options_.combination, weights);
  }

  double metric_of(const Values& ranking, const Values& targets) const {
    return ranking.empty() ? kNone : metric_.of(ranking, targets);
  }

  // Judges the combination of the columns on a graph: its score, the members' agreement, the limits,
  // and the scores without each column and without each training.
  GraphEvaluation judge_graph(const std::vector<MemberColumn>& columns, const GraphSet& set, int g,
                              Without& without, bool& trained_on) const {
    const PredictionEntry& graph = header_.graphs[static_cast<std::size_t>(g)];
    const PredictionRows predictions = source_.read(g);
    const Values targets = predictions.targets();
    const std::vector<Values> kept = column_scores(columns, set, graph, predictions, result_.used);
    GraphEvaluation judged{graph, model_family(graph.name)};
    for (const MemberColumn& column : columns) {
      const int m = column.member_for(header_, graph);
      judged.columns.push_back(m >= 0 && able_[m] ? members_[static_cast<std::size_t>(g)][m]
                                                  : kNone);
      trained_on |= m >= 0 && !graph.held_out[m] && !std::isnan(judged.columns.back());
    }
    const Values consensus = combined(kept);
    judged.metrics = consensus.empty() ? GraphMetrics{} : score_graph(consensus, targets, is_tile_);
    judged.kept = primary_score(judged.metrics, is_tile_);
    judged.limits = score_limits(header_.collection, consensus, predictions);
    const auto without_those = [&](const auto& left_out) {
      Values rest(columns.size(), 1.0);
      for (std::size_t c = 0; c < rest.size(); ++c) {
        if (left_out(c)) rest[c] = 0;
      }
      return combined(kept, rest);
    };
    Values agreements;
    for (std::size_t c = 0; c < kept.size(); ++c) {
      const Values others =
          kept[c].empty() ? Values() : without_those([&](std::size_t i) { return i == c; });
      without.columns[c].push_back(kept[c].empty() ? judged.kept : metric_of(others, targets));
      if (!others.empty()) agreements.push_back(kendall_tau_b(kept[c], others));
    }
    for (std::size_t t = 0; t < without.trainings.size(); ++t) {
      without.trainings[t].push_back(metric_of(
          without_those([&](std::size_t c) { return columns[c].training == static_cast<int>(t); }),
          targets));
    }
    judged.agreement = mean_of_known(agreements);
    judged.suspicious =
        judged.agreement >= kAgreement && judged.metrics.kendall_tau < kContradiction;
    judged.all =
        able_ == result_.used
            ? judged.kept
            : metric_of(combined(column_scores(columns, set, graph, predictions, able_)), targets);
    return judged;
  }

  TableJudgement table_of(const GraphSet& set) {
    TableJudgement table;
    table.title = set.title;
    table.out_of_fold = set.out_of_fold;
    const std::vector<MemberColumn> columns =
        set.out_of_fold ? fold_columns(header_, options_.least_columns, table.left_out)
                        : single_columns(header_);
    for (const MemberColumn& column : columns) {
      const bool taken =
          std::ranges::any_of(column.members, [&](int m) { return result_.used[m]; });
      table.columns.push_back(column.name);
      table.weights.push_back(taken ? 1 : 0);
    }
    Without without(columns);
    for (const int g : set.graphs)
      table.graphs.push_back(judge_graph(columns, set, g, without, table.trained_on));
    if (table.trained_on) table.title += ", trained on";
    summarise(columns, without, table);
    add_parts(columns, without, table);
    return table;
  }

  static void add_parts(const std::vector<MemberColumn>& columns, const Without& without,
                        TableJudgement& table) {
    std::map<std::string_view, std::vector<std::size_t>> graphs_of;
    for (std::size_t g = 0; g < table.graphs.size(); ++g)
      graphs_of[collection_of_id(table.graphs[g].name)].push_back(g);
    if (graphs_of.size() < 2) return;
    for (const auto& [collection, graphs] : graphs_of) {
      TableJudgement part;
      part.title = collection;
      part.out_of_fold = table.out_of_fold;
      part.trained_on = table.trained_on;
      part.columns = table.columns;
      part.weights = table.weights;
      const auto some_of = [&](const auto& all) {
        std::remove_cvref_t<decltype(all)> some;
        for (const std::size_t g : graphs) some.push_back(all[g]);
        return some;
      };
      part.graphs = some_of(table.graphs);
      Without own(columns);
      for (std::size_t c = 0; c < own.columns.size(); ++c)
        own.columns[c] = some_of(without.columns[c]);
      for (std::size_t t = 0; t < own.trainings.size(); ++t)
        own.trainings[t] = some_of(without.trainings[t]);
      summarise(columns, own, part);
      table.parts.push_back(std::move(part));
    }
  }

  // Means over the graphs of a table.
  static void summarise(const std::vector<MemberColumn>& columns, const Without& without,
                        TableJudgement& table) {
    const auto mean_of = [&](const auto& value) {
      Values values;
      for (const GraphEvaluation& graph : table.graphs) values.push_back(value(graph));
      return mean_of_known(values);
    };
    // The combination without some columns has no mean if no other column ranks one of the graphs.
    const auto mean_without = [&](const Values& without) {
      for (std::size_t g = 0; g < without.size(); ++g) {
        if (std::isnan(without[g]) && !std::isnan(table.graphs[g].kept)) return kNone;
      }
      return mean_of_known(without);
    };
    table.all = mean_of([](const GraphEvaluation& graph) { return graph.all; });
    table.kept = mean_of([](const GraphEvaluation& graph) { return graph.kept; });
    for (std::size_t c = 0; c < columns.size(); ++c) {
      table.means.push_back(
          mean_of([&](const GraphEvaluation& graph) { return graph.columns[c]; }));
      table.gains.push_back(table.weights[c] > 0 ? table.kept - mean_without(without.columns[c])
                                                 : kNone);
    }
    Values trainings;
    for (std::size_t t = 0; t < without.trainings.size(); ++t) {
      trainings.push_back(mean_of([&](const GraphEvaluation& graph) {
        Values own;
        for (std::size_t c = 0; c < columns.size(); ++c) {
          if (columns[c].training == static_cast<int>(t)) own.push_back(graph.columns[c]);
        }
        return mean_of_known(own);
      }));
      bool taken = false;
      for (std::size_t c = 0; c < columns.size(); ++c)
        taken = taken || (columns[c].training == static_cast<int>(t) && table.weights[c] > 0);
      if (taken) table.without_training.push_back(mean_without(without.trainings[t]));
    }
    table.mean_of_members = mean_of_known(trainings);
  }

  const PredictionSource& source_;
  const PredictionsHeader& header_;
  const JudgementOptions& options_;
  Judgement result_;
  std::vector<bool> unusable_;  // [M] no scores, or some that are not finite
  std::vector<bool> able_;      // [M] that can be combined at all
  const ScoreColumn& metric_;
  const bool is_tile_;
  std::vector<Values> members_;  // [G][M] the metric of each member that counts
};

}  // namespace

Judgement judge(const PredictionSource& source, const JudgementOptions& options) {
  return Judge(source, options).run(/*tables=*/true);
}

Judgement judge_members(const PredictionSource& source, const JudgementOptions& options) {
  return Judge(source, options).run(/*tables=*/false);
}

}  // namespace tpudist
