#include "report/report_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "ensemble/out_of_fold.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostShown = 6;

// What cannot be read or compared becomes a note.
void try_to(ReportGroup& group, const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    group.notes.push_back(error.what());
  }
}

void fill(ReportGroup& group, bool ceilings) {
  group.metric = primary_metric_of(group.collection) == "tile_score" ? "tile score" : "Kendall tau";
  try_to(group, [&] { group.members = score_matrix(group.runs, MatrixRows::members); });
  try_to(group, [&] { group.out_of_fold = score_matrix(group.runs, MatrixRows::out_of_fold); });
  try_to(group, [&] { group.rankings = rank_group(group.runs, ceilings); });
}

std::string title_of(const ReportGroup& group, bool several_variants, bool several_collections) {
  const std::string& variant = group.runs.front().variant;
  if (several_variants && several_collections) return variant + " on " + group.collection;
  if (several_collections) return group.collection;
  return several_variants ? variant : "";
}

}  // namespace

std::size_t ReportInput::shown() const {
  return std::min(groups.size(), kMostShown);
}

ReportInput report_input(ResultSet results, bool ceilings) {
  ReportInput input;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  std::map<std::string, int> variants, collections;
  for (const RunRecord& run : results.runs) {
    const auto [at, fresh] = places.try_emplace({run.variant, run.collection}, input.groups.size());
    if (fresh) {
      input.groups.emplace_back();
      input.groups.back().collection = run.collection;
      ++variants[run.variant], ++collections[run.collection];
    }
    input.groups[at->second].runs.push_back(run);
  }
  for (std::size_t g = 0; g < input.groups.size(); ++g) {
    ReportGroup& group = input.groups[g];
    group.title = title_of(group, variants.size() > 1, collections.size() > 1);
    group.file_end = input.groups.size() > 1 ? fmt::format("-{}", g + 1) : "";
    fill(group, ceilings);
  }
  input.results = std::move(results);
  return input;
}

}  // namespace tpudist
