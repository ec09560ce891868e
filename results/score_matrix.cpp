#include "results/score_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string rows_text(std::int64_t most_rows) {
  return most_rows == 0 ? "all rows" : fmt::format("at most {} rows", most_rows);
}

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
    if (matrix_.kind == MatrixRows::out_of_fold) {
      add_columns();
    } else {
      for (const RunRecord* run : runs_) add_rows(*run);
    }
    drop_undefined();
    if (matrix_.rows.empty()) matrix_.graphs.clear();
    return std::move(matrix_);
  }

 private:
  bool of_folds() const { return matrix_.kind == MatrixRows::out_of_fold; }

  // Whether graphs of this kind are among the matrix's.
  bool wanted(const ScoredGraph& graph) const {
    return of_folds() ? graph.fold >= 0 : graph.split == "valid" && graph.fold < 0;
  }

  void add_run(const RunRecord& run) {
    if (run.scores && std::ranges::any_of(run.scores->graphs, [&](const ScoredGraph& graph) {
          return wanted(graph);
        })) {
      runs_.push_back(&run);
    } else {
      matrix_.left_out.push_back(fmt::format(
          "{}: {}", run.label,
          of_folds() ? "no out-of-fold scores (predictions.rows, with ensemble.folds, writes them)"
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
             fmt::format("one has {} of a graph, the other {}; score both with the same "
                         "predictions.rows",
                         rows_text(a.most_rows), rows_text(b.most_rows)));
    }
    if (of_folds() && first.hashes && run.hashes &&
        first.hashes->fold_hash != run.hashes->fold_hash)
      refuse(first, run, "their graphs lie in other folds");
    matrix_.collection = a.collection;
    matrix_.metric = a.metric;
    matrix_.most_rows = a.most_rows;
  }

  // All graphs that any run scored. Out of fold a run has some of them only.
  void list_graphs() {
    std::map<std::string, std::pair<const ScoredGraph*, const RunRecord*>> found;
    for (const RunRecord* run : runs_) {
      for (const ScoredGraph& graph : run->scores->graphs) {
        if (!wanted(graph)) continue;
        const auto [at, fresh] = found.try_emplace(graph.name, &graph, run);
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
    for (const auto& [name, place] : found) {
      const ScoredGraph& graph = *place.first;
      matrix_.graphs.push_back(
          {name, graph.family, graph.split, graph.rows, of_folds() ? graph.fold : -1});
      if (of_folds()) continue;
      for (const RunRecord* run : runs_) {
        if (!graph_of(*run, name))
          refuse(
              *place.second, *run,
              fmt::format("only the former scored {}; the validation graphs differ (data.include, "
                          "data.exclude or the data)",
                          name));
      }
    }
  }

  const ScoredGraph* graph_of(const RunRecord& run, const std::string& name) const {
    for (const ScoredGraph& graph : run.scores->graphs) {
      if (graph.name == name && wanted(graph)) return &graph;
    }
    return nullptr;
  }

  static MatrixRow row_of(const RunRecord& run) {
    return {.label = run.label,
            .variant = run.variant,
            .variant_hash = run.hashes ? run.hashes->variant_hash : 0,
            .init_seed = run.init_seed,
            .order_seed = run.order_seed,
            .members = {}};
  }

  void add(MatrixRow row, std::vector<double> scores) {
    if (std::ranges::all_of(scores, [](double score) { return std::isnan(score); })) {
      matrix_.left_out.push_back(row.label + ": it failed, or has no scores");
      return;
    }
    matrix_.rows.push_back(std::move(row));
    matrix_.scores.push_back(std::move(scores));
  }

  void add_rows(const RunRecord& run) {
    if (matrix_.kind == MatrixRows::runs) {
      std::vector<double> scores;
      for (const MatrixGraph& graph : matrix_.graphs)
        scores.push_back(graph_of(run, graph.name)->combined);
      MatrixRow row = row_of(run);
      row.members = {-1};
      add(std::move(row), std::move(scores));
      return;
    }
    for (std::size_t m = 0; m < run.scores->members.size(); ++m) {
      std::vector<double> scores;
      for (const MatrixGraph& graph : matrix_.graphs) {
        const ScoredGraph& scored = *graph_of(run, graph.name);
        scores.push_back(scored.out_of_fold[m] ? scored.members[m] : kNone);
      }
      MatrixRow row = row_of(run);
      row.members = {run.scores->members[m].number};
      if (run.scores->members.size() > 1 || runs_.size() == 1)
        row.label += fmt::format(" member {}", row.members.front());
      add(std::move(row), std::move(scores));
    }
  }

  // Member number n belongs to the column n / folds of its variant and seeds.
  void add_columns() {
    using Key = std::tuple<std::string, std::uint64_t, std::int64_t, std::int64_t, int>;
    struct Part {
      const RunRecord* run = nullptr;
      std::size_t member = 0;
      int number = 0;
    };
    std::map<Key, std::map<int, Part>> columns;  // parts by fold
    int folds = 0;
    for (const RunRecord* run : runs_) {
      folds = std::max(folds, run->folds);
      for (std::size_t m = 0; m < run->scores->members.size(); ++m) {
        const PredictedMember& member = run->scores->members[m];
        if (member.fold < 0 || member.failed) continue;
        const Key key{run->variant, run->hashes ? run->hashes->variant_hash : 0, run->init_seed,
                      run->order_seed, member.number / std::max(run->folds, 1)};
        if (!columns[key].try_emplace(member.fold, run, m, member.number).second) {
          matrix_.left_out.push_back(
              fmt::format("{}: member {} is there twice", run->label, member.number));
        }
      }
    }
    for (const auto& [key, parts] : columns) {
      MatrixRow row = row_of(*parts.begin()->second.run);
      row.label = fmt::format("{} seed {}", row.variant, row.init_seed);
      if (row.order_seed != row.init_seed) row.label += fmt::format("/{}", row.order_seed);
      if (std::get<4>(key) > 0) row.label += fmt::format(" column {}", std::get<4>(key));
      std::string missing;
      for (int fold = 0; fold < folds; ++fold) {
        const auto part = parts.find(fold);
        row.members.push_back(part == parts.end() ? -1 : part->second.number);
        if (part == parts.end()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", fold);
      }
      if (!missing.empty()) {
        matrix_.left_out.push_back(
            fmt::format("{}: the member of fold {} has no scores yet", row.label, missing));
        continue;
      }
      std::vector<double> scores;
      for (const MatrixGraph& graph : matrix_.graphs) {
        const Part& part = parts.at(graph.fold);
        const ScoredGraph* scored = graph_of(*part.run, graph.name);
        scores.push_back(scored && scored->out_of_fold[part.member] ? scored->members[part.member]
                                                                    : kNone);
      }
      add(std::move(row), std::move(scores));
    }
  }

  // Of graphs that a row lacks: where the metric is undefined for some row it says nothing of any.
  void drop_undefined() {
    for (std::size_t g = matrix_.graphs.size(); g-- > 0;) {
      const auto lacking = std::ranges::find_if(
          matrix_.scores, [&](const auto& scores) { return std::isnan(scores[g]); });
      if (lacking == matrix_.scores.end()) continue;
      matrix_.left_out.push_back(fmt::format(
          "{}: {} is undefined for {} (equal scores or equal run times throughout, or no score)",
          matrix_.graphs[g].name, matrix_.metric,
          matrix_.rows[static_cast<std::size_t>(lacking - matrix_.scores.begin())].label));
      matrix_.graphs.erase(matrix_.graphs.begin() + static_cast<std::ptrdiff_t>(g));
      for (auto& scores : matrix_.scores)
        scores.erase(scores.begin() + static_cast<std::ptrdiff_t>(g));
    }
    if (matrix_.graphs.empty()) matrix_.rows.clear(), matrix_.scores.clear();
  }

  ScoreMatrix matrix_;
  std::vector<const RunRecord*> runs_;  // with scores
};

}  // namespace

std::vector<double> ScoreMatrix::row_means() const {
  std::vector<double> means;
  for (const auto& row : scores) {
    double sum = 0;
    for (const double score : row) sum += score;
    means.push_back(sum / static_cast<double>(row.size()));
  }
  return means;
}

std::vector<int> ScoreMatrix::family_numbers() const {
  std::map<std::string, int> numbers;
  std::vector<int> list;
  for (const MatrixGraph& graph : graphs)
    list.push_back(
        numbers.try_emplace(graph.family, static_cast<int>(numbers.size())).first->second);
  return list;
}

ScoreMatrix score_matrix(std::span<const RunRecord> runs, MatrixRows kind) {
  return MatrixBuilder(runs, kind).build();
}

}  // namespace tpudist
