#include "statistics/intervals/family_variance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/error.hpp"
#include "core/means.hpp"

namespace tpudist {
namespace {

// `family`: a name from model_family.
bool is_bert(std::string_view family) {
  return family.starts_with("bert_l") || family == "bert" || family == "albert" ||
         family == "electra" || family == "talking_heads";
}

// The graphs of one family in one collection.
struct Cluster {
  double graphs = 0;     // n_fc
  double residuals = 0;  // their sum
};

struct CollectionClusters {
  double graphs = 0;                        // n_c
  std::map<std::string, Cluster> families;  // those with graphs here

  // w / sqrt(1 - n_fc / n_c), for C collections.
  double weight(const Cluster& cluster, double collections) const {
    return 1 / (collections * graphs * std::sqrt(1 - cluster.graphs / graphs));
  }
};

CollectionClusters clusters_of(const GraphValues& own, std::size_t number) {
  CollectionClusters result;
  result.graphs = static_cast<double>(own.values.size());
  const double centre = mean(own.values);
  for (std::size_t g = 0; g < own.values.size(); ++g) {
    Cluster& cluster = result.families[own.families[g]];
    cluster.graphs += 1;
    cluster.residuals += own.values[g] - centre;
  }
  if (result.families.size() < 2)
    throw Error(ErrorKind::failed,
                fmt::format("collection {} has graphs of {} families; at least 2 are needed to say "
                            "how families differ",
                            number, result.families.size()));
  return result;
}

// Sum over families of the product of their `value`s in two collections.
template <typename Value>
double dot(const CollectionClusters& a, const CollectionClusters& b, const Value& value) {
  double sum = 0;
  for (const auto& [family, cluster] : a.families) {
    const auto other = b.families.find(family);
    if (other != b.families.end()) sum += value(a, cluster) * value(b, other->second);
  }
  return sum;
}

// V = sum_f (g_f' y)^2, and its eigenvalues are those of the matrix of products g_f' g_h between
// families,
//   P = diagonal(d) - sum_c v_c v_c' / n_c,  d_f = sum_c weight^2 n_fc,  v_cf = weight n_fc,
// whose trace and squared Frobenius norm are taken without ever making it.
VarianceEstimate with_degrees(double variance, std::span<const CollectionClusters> collections) {
  const auto count = static_cast<double>(collections.size());
  const auto value = [&](const CollectionClusters& own, const Cluster& cluster) {
    return own.weight(cluster, count) * cluster.graphs;
  };
  std::map<std::string, double> diagonal;
  for (const CollectionClusters& own : collections) {
    for (const auto& [family, cluster] : own.families)
      diagonal[family] += own.weight(cluster, count) * value(own, cluster);
  }
  double trace = 0, squares = 0;
  for (const auto& [family, d] : diagonal) {
    trace += d;
    squares += d * d;
  }
  for (const CollectionClusters& a : collections) {
    for (const auto& [family, cluster] : a.families) {
      const double own = value(a, cluster);
      trace -= own * own / a.graphs;
      squares -= 2 * diagonal[family] * own * own / a.graphs;
    }
    for (const CollectionClusters& b : collections) {
      const double both = dot(a, b, value);
      squares += both * both / (a.graphs * b.graphs);
    }
  }
  return {variance, trace * trace / squares};
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

VarianceEstimate family_variance(std::span<const GraphValues> collections) {
  if (collections.empty()) throw Error(ErrorKind::failed, "there is no collection");
  std::vector<CollectionClusters> clusters;
  for (std::size_t c = 0; c < collections.size(); ++c)
    clusters.push_back(clusters_of(collections[c], c));
  std::map<std::string, double> sums;
  for (const CollectionClusters& own : clusters) {
    for (const auto& [family, cluster] : own.families)
      sums[family] += own.weight(cluster, static_cast<double>(clusters.size())) * cluster.residuals;
  }
  double variance = 0;
  for (const auto& [family, sum] : sums) variance += sum * sum;
  return with_degrees(variance, clusters);
}

}  // namespace tpudist
