#include "results/report/variant_rankings.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <tuple>

#include "core/means.hpp"
#include "core/random.hpp"
#include "data/schema/model_family.hpp"
#include "results/scores/joined_predictions.hpp"
#include "results/scores/score_table.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostRows = 2000;
constexpr int kSubsets = 24;

// All sizes up to ten, then about as many as fit into a chart.
std::vector<int> sizes_up_to(int members) {
  std::vector<int> sizes;
  for (int size = 1; size < members; size += std::max(1, size / 8)) sizes.push_back(size);
  sizes.push_back(members);
  return sizes;
}

std::vector<double> thinned(std::span<const double> values, std::size_t count) {
  std::vector<double> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(values[i * values.size() / count]);
  return kept;
}

using Values = std::vector<double>;

RankedGraph rank_graph(const std::string& collection, const PredictionEntry& entry,
                       const Values& combined, const PredictionRows& rows, bool ceilings) {
  RankedGraph graph{entry, model_family(entry.name)};
  const Values targets = rows.targets();
  graph.score = primary_metric(collection).of(combined, targets);
  SlowdownsAtTops at;
  for (std::size_t top = 0; top < kTops.size(); ++top)
    at[top] = slowdown_at(combined, targets, kTops[top]);
  graph.slowdowns = graph_slowdowns(entry, at);
  if (ceilings) graph.limits = score_limits(collection, combined, rows);
  return graph;
}

}  // namespace

void EnsembleSizes::draw_subsets() {
  sizes_ = sizes_up_to(members_);
  for (std::size_t s = 0; s < sizes_.size(); ++s) {
    std::set<std::vector<int>> drawn;
    // Few members have few subsets, so the number of attempts is limited.
    for (int draw = 0; draw < 8 * kSubsets && std::ssize(drawn) < kSubsets; ++draw) {
      std::vector<int> order(static_cast<std::size_t>(members_));
      for (int m = 0; m < members_; ++m) order[static_cast<std::size_t>(m)] = m;
      CounterRng random(mix_key({static_cast<std::uint64_t>(members_), s}),
                        static_cast<std::uint64_t>(draw));
      random.shuffle(std::span(order));
      order.resize(static_cast<std::size_t>(sizes_[s]));
      std::ranges::sort(order);
      if (drawn.insert(order).second) subsets_.push_back({s, order, 0});
    }
  }
}

bool EnsembleSizes::add_graph(std::span<const std::vector<double>> scores,
                              std::span<const double> targets) {
  if (members_ == 0) {
    members_ = static_cast<int>(scores.size());
    without_.assign(scores.size(), 0.0);
    draw_subsets();
  }
  if (std::ssize(scores) != members_ || targets.empty()) return false;
  const std::size_t rows = std::min(kMostRows, targets.size());
  const std::vector<double> kept_targets = thinned(targets, rows);
  std::vector<std::vector<double>> kept;
  for (const auto& own : scores) kept.push_back(thinned(own, rows));
  const auto score_of = [&](const std::vector<int>& chosen) {
    std::vector<double> sum(rows, 0.0);
    for (const int member : chosen) {
      for (std::size_t r = 0; r < rows; ++r) sum[r] += kept[static_cast<std::size_t>(member)][r];
    }
    return primary_metric(collection_).of(sum, kept_targets);
  };
  std::vector<double> values, without;
  for (const Subset& subset : subsets_) values.push_back(score_of(subset.members));
  for (int left_out = 0; left_out < members_ && members_ > 1; ++left_out) {
    std::vector<int> others;
    for (int member = 0; member < members_; ++member) {
      if (member != left_out) others.push_back(member);
    }
    without.push_back(score_of(others));
  }
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (std::ranges::any_of(values, is_nan) || std::ranges::any_of(without, is_nan)) return false;
  for (std::size_t i = 0; i < values.size(); ++i) subsets_[i].sum += values[i];
  for (std::size_t m = 0; m < without.size(); ++m) without_[m] += without[m];
  ++graphs_;
  return true;
}

std::vector<double> EnsembleSizes::without() const {
  if (graphs_ == 0 || members_ < 2) return {};
  std::vector<double> means;
  for (const double sum : without_) means.push_back(sum / graphs_);
  return means;
}

std::vector<EnsembleSizes::Size> EnsembleSizes::result() const {
  std::vector<EnsembleSizes::Size> list;
  if (graphs_ == 0 || members_ < 2) return list;
  for (std::size_t s = 0; s < sizes_.size(); ++s) {
    double sum = 0, squares = 0, count = 0;
    for (const Subset& subset : subsets_) {
      if (subset.size == s) sum += subset.sum / graphs_, ++count;
    }
    const double mean = sum / count;
    for (const Subset& subset : subsets_) {
      if (subset.size == s) squares += std::pow(subset.sum / graphs_ - mean, 2);
    }
    const double share = static_cast<double>(sizes_[s]) / members_;
    const bool told = count > 1 && share <= 0.5;
    list.push_back({sizes_[s], static_cast<int>(count), mean,
                    told ? std::sqrt(squares / (count - 1) / (1 - share)) : kNone});
  }
  return list;
}

VariantRankings rank_variant(std::span<const RunRecord> runs, bool ceilings) {
  VariantRankings rankings;
  std::vector<std::shared_ptr<const PredictionsFile>> files;
  for (const RunRecord& run : runs) {
    if (run.predictions) {
      files.push_back(run.predictions);
    } else {
      rankings.missing.push_back(run.label);
    }
  }
  if (files.empty()) return rankings;
  const JoinedPredictions joined(std::move(files));
  const PredictionsHeader& header = joined.header();
  const Combination combination = header.combination.value_or(Combination{});
  EnsembleSizes sizes(header.collection);
  each_unseen_graph(
      joined, [&](const PredictionEntry& entry, const PredictionRows& rows, const Values& weights) {
        const Values combined = combine_scored(rows.scores, combination, weights);
        if (combined.empty()) return;
        RankedGraph ranked = rank_graph(header.collection, entry, combined, rows, ceilings);
        std::vector<Values> forms;
        for (std::size_t m = 0; m < weights.size(); ++m) {
          if (weights[m] > 0) forms.push_back(averaged_form(rows.scores[m], combination));
        }
        ranked.members = static_cast<int>(forms.size());
        if (entry.fold < 0) ranked.sized = sizes.add_graph(forms, rows.targets());
        rankings.graphs.push_back(std::move(ranked));
      });
  std::ranges::sort(rankings.graphs, {}, [](const RankedGraph& graph) {
    return std::tuple(graph.split != "valid", graph.name);
  });
  rankings.sizes = sizes.result();
  rankings.without = sizes.without();
  rankings.sized_members = sizes.members();
  rankings.sized_graphs = sizes.graphs();
  return rankings;
}

}  // namespace tpudist
