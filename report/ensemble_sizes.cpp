#include "report/ensemble_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/means.hpp"
#include "core/random.hpp"
#include "train/scores/score_table.hpp"

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

std::vector<EnsembleSize> EnsembleSizes::result() const {
  std::vector<EnsembleSize> list;
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

}  // namespace tpudist
