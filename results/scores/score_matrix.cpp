#include "results/scores/score_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/numbers.hpp"
#include "results/scores/joined_predictions.hpp"
#include "results/scores/member_columns.hpp"

namespace tpudist {
namespace {

[[noreturn]] void refuse(const RunRecord& a, const RunRecord& b, const std::string& what) {
  throw ConfigError(
      fmt::format("{} and {} cannot be compared: {}", a.path.string(), b.path.string(), what));
}

class MatrixBuilder {
 public:
  MatrixBuilder(std::span<const RunRecord> runs, MatrixRows kind) {
    matrix_.kind = kind;
    for (const RunRecord& run : runs) add_run(run);
  }

  ScoreMatrix build() {
    if (runs_.empty()) return std::move(matrix_);
    for (const RunRecord* run : runs_) check_alike(*run);
    list_graphs();
    if (matrix_.kind == MatrixRows::members) {
      for (const RunRecord* run : runs_) add_member_rows(*run);
    } else {
      add_trainings();
    }
    drop_undefined();
    return std::move(matrix_);
  }

 private:
  bool of_folds() const { return matrix_.kind == MatrixRows::out_of_fold; }

  // Whether graphs of this kind are among the matrix's.
  bool wanted(const GraphResult& graph) const {
    return of_folds() ? graph.fold >= 0 : graph.split == "valid" && graph.fold < 0;
  }

  void add_run(const RunRecord& run) {
    if (run.scores && std::ranges::any_of(run.scores->graphs, [&](const GraphResult& graph) {
          return wanted(graph);
        })) {
      runs_.push_back(&run);
    } else {
      matrix_.left_out.push_back(fmt::format(
          "{}: {}", run.label,
          run.state == RunState::failed ? "failed"
          : of_folds()
              ? "no out-of-fold scores (predictions.rows, with ensemble.folds, writes them)"
              : "no scores of validation graphs that its members never saw"));
    }
  }

  void check_alike(const RunRecord& run) {
    const RunRecord& first = *runs_.front();
    const MemberScores &a = *first.scores, &b = *run.scores;
    if (a.collection != b.collection) {
      refuse(first, run, fmt::format("one is of {}, the other of {}", a.collection, b.collection));
    }
    if (a.most_rows != b.most_rows) {
      refuse(first, run,
             fmt::format(
                 "one has {} of a graph, the other {}; score both with the same predictions.rows",
                 rows_text(a.most_rows), rows_text(b.most_rows)));
    }
    if (of_folds() && first.hashes && run.hashes &&
        first.hashes->fold_hash != run.hashes->fold_hash)
      refuse(first, run, "their graphs lie in other folds");
    matrix_.collection = a.collection;
    matrix_.metric = a.metric;
    if (a.metric == "tile_score") matrix_.lowest = -std::numeric_limits<double>::infinity();
    matrix_.most_rows = a.most_rows;
  }

  // All graphs that any run scored. Out of fold, a run may have only some of them.
  void list_graphs() {
    using Key = std::pair<std::string, std::string>;  // name and split: a name may be in two splits
    std::map<Key, std::pair<const GraphResult*, const RunRecord*>> found;
    for (const RunRecord* run : runs_) {
      for (const GraphResult& graph : run->scores->graphs) {
        if (!wanted(graph)) continue;
        const auto [at, fresh] = found.try_emplace({graph.name, graph.split}, &graph, run);
        const auto& [other, its_run] = at->second;
        if (other->rows != graph.rows || other->configs != graph.configs) {
          refuse(*its_run, *run,
                 fmt::format("{} has {} rows of {} configurations in one, {} of {} in the other; "
                             "the data differ",
                             graph.name, other->rows, other->configs, graph.rows, graph.configs));
        }
        if (other->data_hash != 0 && graph.data_hash != 0 && other->data_hash != graph.data_hash)
          refuse(*its_run, *run,
                 fmt::format("rows or run times of {} differ; the data differ", graph.name));
      }
    }
    std::map<std::string, int> splits;  // of each name
    for (const auto& [key, place] : found) ++splits[key.first];
    for (const auto& [key, place] : found) {
      const GraphResult& graph = *place.first;
      matrix_.entries.push_back(graph);
      matrix_.graphs.push_back(
          splits[graph.name] > 1 ? fmt::format("{} ({})", graph.name, graph.split) : graph.name);
      matrix_.families.push_back(graph.family);
      matrix_.scores.emplace_back();
      if (of_folds()) {
        matrix_.folds.push_back(graph.fold);
        continue;
      }
      for (const RunRecord* run : runs_) {
        if (!graph_of(*run, graph))
          refuse(*place.second, *run,
                 fmt::format("only the former scored {}; the validation graphs differ "
                             "(data.include, data.exclude or the data)",
                             graph.name));
      }
    }
  }

  bool same_graph(const GraphResult& scored, const PredictionEntry& graph) const {
    return scored.name == graph.name && scored.split == graph.split && wanted(scored);
  }

  const GraphResult* graph_of(const RunRecord& run, const PredictionEntry& graph) const {
    for (const GraphResult& scored : run.scores->graphs) {
      if (same_graph(scored, graph)) return &scored;
    }
    return nullptr;
  }

  static ScoreMatrix::Row row_of(const RunRecord& run) {
    return {.label = run.label,
            .variant = run.variant,
            .variant_hash = run.hashes ? recipe_hash(*run.hashes) : 0,
            .init_seed = run.init_seed,
            .order_seed = run.order_seed,
            .members = {}};
  }

  void add(ScoreMatrix::Row row, const std::vector<double>& scores) {
    if (std::ranges::all_of(scores, [](double score) { return std::isnan(score); })) {
      matrix_.left_out.push_back(row.label + ": it failed, or has no scores");
      return;
    }
    matrix_.rows.push_back(std::move(row));
    for (std::size_t g = 0; g < scores.size(); ++g) matrix_.scores[g].push_back(scores[g]);
  }

  // A member of a training, and its place among the members of its run.
  struct Part {
    const RunRecord* run = nullptr;
    std::size_t member = 0;
    bool ranks_nothing = false;  // no validation graph, and another member of its training does
    const PredictedMember& what() const { return run->scores->members[member]; }
    bool failed() const { return what().failed || ranks_nothing; }
  };
  struct Training {
    ScoreMatrix::Row row;
    std::vector<Part> parts;  // by number of the member
    bool in_one_run() const {
      return std::ranges::all_of(parts,
                                 [&](const Part& part) { return part.run == parts.front().run; });
    }
  };

  // Whether the metric is defined for a member on any graph that counts for the member; nothing if
  // no graph counts.
  std::optional<bool> ranks_any(const Part& part) const {
    std::optional<bool> found;
    for (const GraphResult& graph : part.run->scores->graphs) {
      if (!wanted(graph) || !graph.held_out[part.member]) continue;
      found = found.value_or(false) || !std::isnan(graph.members[part.member]);
    }
    return found;
  }

  // Not for out of fold: a training has one member per graph, so the graph may be the cause.
  void mark_members_that_rank_nothing(Training& training) const {
    if (of_folds() || std::ranges::none_of(training.parts, [&](const Part& part) {
          return ranks_any(part) == true;
        }))
      return;
    for (Part& part : training.parts) part.ranks_nothing = ranks_any(part) == false;
  }

  // Trainings in the order of their first runs.
  std::vector<Training> trainings() {
    using Key = std::tuple<std::string, std::uint64_t, std::int64_t, std::int64_t>;
    std::vector<Training> list;
    std::map<Key, std::size_t> places;
    for (const RunRecord* run : runs_) {
      const ScoreMatrix::Row row = row_of(*run);
      const auto [at, fresh] = places.try_emplace({row.variant_hash == 0 ? row.variant : "",
                                                   row.variant_hash, row.init_seed, row.order_seed},
                                                  list.size());
      if (fresh) list.push_back({row, {}});
      Training& training = list[at->second];
      for (std::size_t m = 0; m < run->scores->members.size(); ++m) {
        const Part part{run, m};
        const auto same = std::ranges::find(training.parts, part.what().number,
                                            [](const Part& other) { return other.what().number; });
        if (same != training.parts.end() && same->run != run) {
          matrix_.left_out.push_back(fmt::format("{}: member {} is in {} too", run->label,
                                                 part.what().number, same->run->label));
          continue;
        }
        training.parts.push_back(part);
      }
    }
    for (Training& training : list) {
      std::ranges::sort(training.parts, {}, [](const Part& part) { return part.what().number; });
      for (const Part& part : training.parts) training.row.members.push_back(part.what().number);
      training.row.member_count = static_cast<int>(training.parts.size());
      if (!training.in_one_run())
        training.row.label =
            fmt::format("{} {}", training.row.variant,
                        seeds_text(training.row.init_seed, training.row.order_seed));
      mark_members_that_rank_nothing(training);
      count_failed(training);
    }
    return list;
  }

  void count_failed(const Training& training) {
    const auto failed =
        std::ranges::count_if(training.parts, [](const Part& part) { return part.failed(); });
    matrix_.members += training.row.member_count;
    matrix_.failed_members += static_cast<int>(failed);
    if (failed > 0) matrix_.failed_in.push_back(training.row.label);
  }

  void add_member_rows(const RunRecord& run) {
    for (std::size_t m = 0; m < run.scores->members.size(); ++m) {
      std::vector<double> scores;
      for (const PredictionEntry& graph : matrix_.entries) {
        const GraphResult& scored = *graph_of(run, graph);
        scores.push_back(scored.held_out[m] ? scored.members[m] : kNone);
      }
      ScoreMatrix::Row row = row_of(run);
      row.members = {run.scores->members[m].number};
      if (run.scores->members.size() > 1 || runs_.size() == 1)
        row.label += fmt::format(" member {}", row.members.front());
      add(std::move(row), scores);
    }
  }

  // The mean score of the members that never saw the graph, without failed members. NaN if there is
  // none, or one of them has no score.
  double mean_of_members(const Training& training, const PredictionEntry& graph) const {
    double sum = 0;
    int count = 0;
    for (const Part& part : training.parts) {
      if (part.failed() || (of_folds() && part.what().fold != graph.fold)) continue;
      const GraphResult* scored = graph_of(*part.run, graph);
      if (!scored || !scored->held_out[part.member]) return kNone;
      sum += scored->members[part.member];
      ++count;
    }
    return count == 0 ? kNone : sum / count;
  }

  // The combined ranking of all members; over several runs it needs all their predictions.
  std::vector<double> together(const Training& training) {
    std::vector<double> scores;
    if (training.in_one_run()) {
      for (const PredictionEntry& graph : matrix_.entries)
        scores.push_back(graph_of(*training.parts.front().run, graph)->combined);
      return scores;
    }
    std::vector<std::shared_ptr<const PredictionsFile>> files;
    for (const Part& part : training.parts) {
      if (!part.run->predictions) {
        matrix_.left_out.push_back(
            training.row.label +
            ": its members are in several runs; predictions.rows is needed to put them together");
        return {};
      }
      if (std::ranges::find(files, part.run->predictions) == files.end())
        files.push_back(part.run->predictions);
    }
    const MemberScores joined = read_member_scores(JoinedPredictions(std::move(files)));
    for (const PredictionEntry& graph : matrix_.entries) {
      const auto at = std::ranges::find_if(
          joined.graphs, [&](const GraphResult& other) { return same_graph(other, graph); });
      scores.push_back(at == joined.graphs.end() ? kNone : at->combined);
    }
    return scores;
  }

  // The folds for which a training lacks a member, as text; empty if it lacks none.
  std::string missing_folds(Training& training, int folds) const {
    std::string missing;
    training.row.members.clear();
    for (int fold = 0; fold < folds; ++fold) {
      const auto part = std::ranges::find_if(training.parts, [&](const Part& other) {
        return other.what().fold == fold && !other.failed();
      });
      training.row.members.push_back(part == training.parts.end() ? -1 : part->what().number);
      if (part == training.parts.end())
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", fold);
    }
    return missing;
  }

  void add_trainings() {
    std::vector<Training> list = trainings();
    std::size_t most = 0;
    int folds = 0;
    for (const Training& training : list) {
      most = std::max(most, training.parts.size());
      for (const Part& part : training.parts) folds = std::max(folds, part.run->folds);
    }
    for (Training& training : list) {
      if (of_folds()) {
        const std::string missing = missing_folds(training, folds);
        if (!missing.empty()) {
          matrix_.left_out.push_back(
              fmt::format("{}: the member of fold {} failed, or has no scores yet",
                          training.row.label, missing));
          continue;
        }
      }
      if (training.parts.size() < most) {
        matrix_.left_out.push_back(fmt::format("{}: scores of {} of {} only", training.row.label,
                                               training.parts.size(),
                                               counted(static_cast<std::int64_t>(most), "member")));
        continue;
      }
      std::vector<double> scores;
      if (matrix_.kind == MatrixRows::together) {
        scores = together(training);
        if (scores.empty()) continue;
      } else {
        for (const PredictionEntry& graph : matrix_.entries)
          scores.push_back(mean_of_members(training, graph));
      }
      add(std::move(training.row), scores);
    }
  }

  // Drops graphs on which the metric is undefined for some row: they cannot be compared.
  void drop_undefined() {
    std::set<std::string> kept(matrix_.graphs.begin(), matrix_.graphs.end());
    for (std::size_t g = matrix_.graphs.size(); g-- > 0;) {
      const std::vector<double>& own = matrix_.scores[g];
      const auto lacking =
          std::ranges::find_if(own, [](double score) { return std::isnan(score); });
      if (lacking == own.end()) continue;
      matrix_.left_out.push_back(fmt::format(
          "{}: {} is undefined for {} (equal scores or equal run times throughout, or no score)",
          matrix_.graphs[g], matrix_.metric,
          matrix_.rows[static_cast<std::size_t>(lacking - own.begin())].label));
      kept.erase(matrix_.graphs[g]);
      matrix_.entries.erase(matrix_.entries.begin() + static_cast<std::ptrdiff_t>(g));
    }
    if (matrix_.rows.empty() || kept.empty())
      matrix_.rows.clear(), matrix_.entries.clear(), kept.clear();
    static_cast<RunScoreTable&>(matrix_) = on_graphs(matrix_, kept);
  }

  ScoreMatrix matrix_;
  std::vector<const RunRecord*> runs_;  // with scores
};

}  // namespace

std::string ScoreMatrix::failed_text() const {
  if (failed_members == 0) return {};
  const std::string others =
      failed_in.size() > 1 ? fmt::format(" and {} more", failed_in.size() - 1) : std::string();
  return fmt::format(
      "{} of {} failed ({}{}): the score and its intervals are of those that did not",
      failed_members, counted(members, "member"), failed_in.front(), others);
}

ScoreMatrix score_matrix(std::span<const RunRecord> runs, MatrixRows kind) {
  return MatrixBuilder(runs, kind).build();
}

ScoreMatrix members_of(ScoreMatrix members, const ScoreMatrix::Row& training) {
  for (std::size_t r = members.rows.size(); r-- > 0;) {
    const ScoreMatrix::Row& row = members.rows[r];
    if (std::tie(row.variant, row.variant_hash, row.init_seed, row.order_seed) ==
        std::tie(training.variant, training.variant_hash, training.init_seed, training.order_seed))
      continue;
    const auto at = static_cast<std::ptrdiff_t>(r);
    members.rows.erase(members.rows.begin() + at);
    for (std::vector<double>& scores : members.scores) scores.erase(scores.begin() + at);
  }
  return members;
}

}  // namespace tpudist
