#include "train/scores/final_score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/means.hpp"
#include "core/text.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

std::string number(double score) {
  return std::isnan(score) ? "undefined" : fmt::format("{:.4f}", score);
}

}  // namespace

double final_score(std::span<const CollectionScore> scores) {
  double sum = 0;
  for (const CollectionScore& score : scores) sum += score.score;
  return scores.empty() ? kNone : sum / static_cast<double>(scores.size());
}

std::string final_score_text(std::span<const CollectionScore> scores) {
  std::vector<std::string> covered, missing;
  for (const CollectionScore& score : scores)
    covered.push_back(fmt::format("{} {}", score.collection, number(score.score)));
  for (const std::string& name : Collection::tpugraphs_names()) {
    if (std::ranges::find(scores, name, &CollectionScore::collection) == scores.end())
      missing.push_back(name);
  }
  std::string text = fmt::format("final score {}, members together: mean of {} collections, {}",
                                 number(final_score(scores)), scores.size(), join(covered, ", "));
  if (!missing.empty()) text += fmt::format(" (without {})", join(missing, ", "));
  return text + "\n";
}

}  // namespace tpudist
