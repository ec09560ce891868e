#include "results/scores/member_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "core/random.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

// Recipe, seed.init, seed.order.
using TrainingKey = std::tuple<std::uint64_t, std::int64_t, std::int64_t>;

std::string seeded_name(const PredictedRun& run) {
  return fmt::format("{} seed {}/{}", run.name, run.init_seed, run.order_seed);
}

// [runs] The name of each of several runs: its seeds, or its folder if another run with these seeds
// has a member of the same number.
std::vector<std::string> run_names(const PredictionsHeader& header) {
  const std::vector<std::set<int>> numbers = member_numbers(header);
  std::map<std::pair<std::string, int>, int> named;  // how often
  for (std::size_t r = 0; r < header.runs.size(); ++r) {
    for (const int number : numbers[r]) ++named[{seeded_name(header.runs[r]), number}];
  }
  std::vector<std::string> names;
  for (std::size_t r = 0; r < header.runs.size(); ++r) {
    const PredictedRun& run = header.runs[r];
    const bool alone = std::ranges::all_of(numbers[r], [&](int number) {
      return named[{seeded_name(run), number}] == 1;
    });
    names.push_back(alone                ? seeded_name(run)
                    : run.source.empty() ? fmt::format("{} (run {})", seeded_name(run), r)
                                         : run.source);
  }
  return names;
}

struct ColumnMembers {
  std::string run;
  int folds = 0;
  std::map<int, int> by_fold;  // member of each fold
};

// The key: training, and number of a column in that training.
std::map<std::pair<int, int>, ColumnMembers> members_by_column(const PredictionsHeader& header) {
  const std::vector<int> trainings = trainings_of(header);
  const std::vector<std::string> names = run_names(header);
  std::map<std::pair<int, int>, ColumnMembers> columns;
  for (std::size_t m = 0; m < header.members.size(); ++m) {
    const PredictedMember& member = header.members[m];
    const auto r = static_cast<std::size_t>(member.run);
    if (member.fold < 0) continue;
    ColumnMembers& column =
        columns[{trainings[r], member.number / std::max(header.runs[r].folds, 1)}];
    if (column.run.empty()) column.run = names[r];
    column.folds = header.runs[r].folds;
    column.by_fold[member.fold] = static_cast<int>(m);
  }
  return columns;
}

std::string column_name(int number, const ColumnMembers& column) {
  return fmt::format("{} members {}-{}", column.run, number * column.folds,
                     (number + 1) * column.folds - 1);
}

}  // namespace

int MemberColumn::member_for(const PredictionsHeader& header, const PredictionEntry& graph) const {
  if (members.size() == 1) return members.front();
  for (const int member : members) {
    if (header.members[static_cast<std::size_t>(member)].fold == graph.fold) return member;
  }
  return -1;
}

std::vector<std::set<int>> member_numbers(const PredictionsHeader& header) {
  std::vector<std::set<int>> numbers(header.runs.size());
  for (const PredictedMember& member : header.members)
    numbers[static_cast<std::size_t>(member.run)].insert(member.number);
  return numbers;
}

std::uint64_t recipe_hash(const PredictedRun& run) {
  return run.init_hash == 0 ? run.variant_hash : mix_key({run.variant_hash, run.init_hash});
}

bool other_first_weights(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b != 0 && a != b;
}

std::string several_recipes_text(const PredictionsHeader& header) {
  const std::vector<std::string> names = run_names(header);
  for (std::size_t r = 1; r < header.runs.size(); ++r) {
    for (std::size_t first = 0; first < r; ++first) {
      const PredictedRun &a = header.runs[first], &b = header.runs[r];
      if (a.variant_hash == b.variant_hash && recipe_hash(a) != recipe_hash(b))
        return fmt::format(
            "{} and {} have equal settings, but began from {} weights (train.init_from): they "
            "count as two recipes",
            names[first], names[r],
            other_first_weights(a.init_hash, b.init_hash) ? "other" : "other or unknown");
    }
  }
  return {};
}

std::vector<int> trainings_of(const PredictionsHeader& header) {
  struct Known {
    int training = 0;
    std::set<int> numbers;  // of members that it has so far
  };
  const std::vector<std::set<int>> numbers = member_numbers(header);
  std::map<TrainingKey, std::vector<Known>> known;
  std::vector<int> trainings;
  int count = 0;
  for (std::size_t r = 0; r < header.runs.size(); ++r) {
    const PredictedRun& run = header.runs[r];
    std::vector<Known>& alike = known[{recipe_hash(run), run.init_seed, run.order_seed}];
    auto own = std::ranges::find_if(alike, [&](const Known& one) {
      return std::ranges::none_of(numbers[r], [&](int n) { return one.numbers.contains(n); });
    });
    if (own == alike.end()) own = alike.insert(own, {count++, {}});
    own->numbers.insert(numbers[r].begin(), numbers[r].end());
    trainings.push_back(own->training);
  }
  return trainings;
}

std::vector<std::string> member_labels(const PredictionsHeader& header) {
  const std::vector<std::string> names = run_names(header);
  std::vector<std::string> labels;
  for (const PredictedMember& member : header.members) {
    labels.push_back(header.runs.size() == 1
                         ? fmt::format("member {}", member.number)
                         : fmt::format("{} member {}", names[static_cast<std::size_t>(member.run)],
                                       member.number));
  }
  return labels;
}

std::vector<MemberColumn> single_columns(const PredictionsHeader& header) {
  const std::vector<std::string> labels = member_labels(header);
  const std::vector<int> trainings = trainings_of(header);
  std::vector<MemberColumn> columns;
  for (std::size_t m = 0; m < header.members.size(); ++m) {
    columns.push_back({labels[m],
                       {static_cast<int>(m)},
                       trainings[static_cast<std::size_t>(header.members[m].run)]});
  }
  return columns;
}

std::vector<MemberColumn> fold_columns(const PredictionsHeader& header, int least,
                                       std::vector<std::string>& left_out) {
  std::vector<MemberColumn> columns;
  for (const auto& [key, members] : members_by_column(header)) {
    MemberColumn column{column_name(key.second, members), {}, key.first};
    std::vector<std::string> missing;
    for (int fold = 0; fold < members.folds; ++fold) {
      const auto at = members.by_fold.find(fold);
      if (at != members.by_fold.end())
        column.members.push_back(at->second);
      else
        missing.push_back(std::to_string(fold));
    }
    if (missing.empty()) {
      columns.push_back(std::move(column));
      continue;
    }
    const std::string what =
        fmt::format("{}: the member of fold {} is missing", column.name, join(missing, ", "));
    if (least == 0) {
      throw ConfigError(
          what + "; give its predictions too, or leave incomplete columns out with --min-members");
    }
    left_out.push_back(what);
  }
  if (static_cast<int>(columns.size()) < least) {
    throw ConfigError(fmt::format("complete over all folds: {}; but --min-members asks for {}",
                                  counted(std::ssize(columns), "column"), least));
  }
  return columns;
}

}  // namespace tpudist
