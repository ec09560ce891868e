#include "ensemble/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

// Variant, seed.init, seed.order, and which of the seed's columns.
using ColumnKey = std::tuple<std::uint64_t, std::int64_t, std::int64_t, int>;

struct ColumnMembers {
  std::string run;
  int folds = 0;
  std::map<int, int> by_fold;  // member of each fold
};

std::map<ColumnKey, ColumnMembers> members_by_column(const PredictionsHeader& header) {
  std::map<ColumnKey, ColumnMembers> columns;
  for (std::size_t m = 0; m < header.members.size(); ++m) {
    const PredictedMember& member = header.members[m];
    const PredictedRun& run = header.runs[static_cast<std::size_t>(member.run)];
    if (member.fold < 0) continue;
    ColumnMembers& column = columns[{run.variant_hash, run.init_seed, run.order_seed,
                                     member.number / std::max(run.folds, 1)}];
    column.run = run.name;
    column.folds = run.folds;
    column.by_fold[member.fold] = static_cast<int>(m);
  }
  return columns;
}

std::string column_name(const ColumnKey& key, const ColumnMembers& column) {
  const auto [variant, init, order, number] = key;
  return fmt::format("{} seed {}/{} members {}-{}", column.run, init, order, number * column.folds,
                     (number + 1) * column.folds - 1);
}

}  // namespace

int Column::member_for(const PredictionsHeader& header, const PredictedGraph& graph) const {
  if (members.size() == 1) return members.front();
  for (const int member : members) {
    if (header.members[static_cast<std::size_t>(member)].fold == graph.fold) return member;
  }
  return -1;
}

std::string member_label(const PredictionsHeader& header, int member) {
  const PredictedMember& entry = header.members[static_cast<std::size_t>(member)];
  if (header.runs.size() == 1) return fmt::format("member {}", entry.number);
  const PredictedRun& run = header.runs[static_cast<std::size_t>(entry.run)];
  return fmt::format("{} seed {}/{} member {}", run.name, run.init_seed, run.order_seed,
                     entry.number);
}

std::vector<Column> single_columns(const PredictionsHeader& header) {
  std::vector<Column> columns;
  for (int m = 0; m < static_cast<int>(header.members.size()); ++m)
    columns.push_back({member_label(header, m), {m}});
  return columns;
}

std::vector<Column> fold_columns(const PredictionsHeader& header, int least,
                                 std::vector<std::string>& left_out) {
  std::vector<Column> columns;
  for (const auto& [key, members] : members_by_column(header)) {
    Column column{column_name(key, members), {}};
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
      throw ConfigError(what +
                        "; give its predictions too, or leave incomplete columns out with "
                        "--min-members");
    }
    left_out.push_back(what);
  }
  if (static_cast<int>(columns.size()) < least) {
    throw ConfigError(
        fmt::format("{} columns are complete over all folds, but --min-members asks "
                    "for {}",
                    columns.size(), least));
  }
  return columns;
}

}  // namespace tpudist
