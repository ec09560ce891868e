#include "statistics/intervals/family_clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace tpudist {
namespace {

// `family`: a name from model_family.
bool is_bert(std::string_view family) {
  return family.starts_with("bert_l") || family == "bert" || family == "albert" ||
         family == "electra" || family == "talking_heads";
}

}  // namespace

FamilyClusters family_clusters(std::span<const std::string> families) {
  const std::set all(families.begin(), families.end());
  const auto berts = std::ranges::count_if(all, is_bert);
  const bool only_berts = berts == std::ssize(all);
  FamilyClusters clusters{{families.begin(), families.end()}, {}};
  if (!only_berts) std::ranges::replace_if(clusters.of, is_bert, "bert");
  if (berts > 1)
    clusters.note = fmt::format("{} of {} model families are BERTs: {}", berts, all.size(),
                                only_berts ? "\"other families\" are other BERTs"
                                           : "they score alike and count as one family");
  return clusters;
}

}  // namespace tpudist
