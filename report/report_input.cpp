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
void try_to(ReportedVariant& variant, const std::function<void()>& make) {
  try {
    make();
  } catch (const Error& error) {
    variant.notes.push_back(error.what());
  }
}

void fill(ReportedVariant& variant, bool ceilings) {
  variant.metric =
      primary_metric_of(variant.collection) == "tile_score" ? "tile score" : "Kendall tau";
  try_to(variant, [&] { variant.members = score_matrix(variant.runs, MatrixRows::members); });
  try_to(variant,
         [&] { variant.out_of_fold = score_matrix(variant.runs, MatrixRows::out_of_fold); });
  try_to(variant, [&] { variant.rankings = rank_variant(variant.runs, ceilings); });
}

std::string title_of(const ReportedVariant& variant, bool several_variants,
                     bool several_collections) {
  const std::string& label = variant.runs.front().variant;
  if (several_variants && several_collections) return label + " on " + variant.collection;
  if (several_collections) return variant.collection;
  return several_variants ? label : "";
}

}  // namespace

std::size_t ReportInput::shown() const {
  return std::min(variants.size(), kMostShown);
}

ReportInput report_input(ResultSet results, bool ceilings) {
  ReportInput input;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  std::map<std::string, int> labels, collections;
  for (const RunRecord& run : results.runs) {
    const auto [at, fresh] =
        places.try_emplace({run.variant, run.collection}, input.variants.size());
    if (fresh) {
      input.variants.emplace_back();
      input.variants.back().collection = run.collection;
      ++labels[run.variant], ++collections[run.collection];
    }
    input.variants[at->second].runs.push_back(run);
  }
  for (std::size_t g = 0; g < input.variants.size(); ++g) {
    ReportedVariant& variant = input.variants[g];
    variant.title = title_of(variant, labels.size() > 1, collections.size() > 1);
    variant.file_end = input.variants.size() > 1 ? fmt::format("-{}", g + 1) : "";
    fill(variant, ceilings);
  }
  input.results = std::move(results);
  return input;
}

}  // namespace tpudist
