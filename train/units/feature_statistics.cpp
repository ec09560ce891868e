#include "train/units/training_setup.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>

#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

// Mean, sum of squared deviations and range of columns. Moments can be joined (Chan et al. 1983).
class Moments {
 public:
  explicit Moments(std::int64_t columns)
      : mean_(static_cast<std::size_t>(columns)),
        squares_(mean_.size()),
        least_(mean_.size(), std::numeric_limits<double>::infinity()),
        most_(mean_.size(), -std::numeric_limits<double>::infinity()) {}

  void add(std::span<const float> row) {
    count_ += 1;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      widen(c, row[c], row[c]);
      const double difference = row[c] - mean_[c];
      mean_[c] += difference / count_;
      squares_[c] += difference * (row[c] - mean_[c]);
    }
  }
  // Adds the row to the range only.
  void widen(std::span<const float> row) {
    for (std::size_t c = 0; c < mean_.size(); ++c) widen(c, row[c], row[c]);
  }
  void add(const Moments& other) {
    if (other.count_ == 0) return;
    const double sum = count_ + other.count_;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      widen(c, other.least_[c], other.most_[c]);
      const double difference = other.mean_[c] - mean_[c];
      mean_[c] += difference * other.count_ / sum;
      squares_[c] += other.squares_[c] + difference * difference * count_ * other.count_ / sum;
    }
    count_ = sum;
  }

  // The values to subtract; then the factors (FeatureStatistics).
  std::vector<double> mean(FeatureTransform transform) const {
    return transform == FeatureTransform::min_max && count_ > 0 ? least_ : mean_;
  }
  std::vector<double> scale(FeatureTransform transform) const {
    std::vector<double> scale;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      const double width = transform == FeatureTransform::min_max ? most_[c] - least_[c]
                                                                  : std::sqrt(squares_[c] / count_);
      scale.push_back(width > 0 ? 1 / width : 0);
    }
    return scale;
  }

 private:
  void widen(std::size_t column, double least, double most) {
    least_[column] = std::min(least_[column], least);
    most_[column] = std::max(most_[column], most);
  }

  double count_ = 0;
  std::vector<double> mean_, squares_, least_, most_;
};

struct GraphMoments {
  Moments nodes, configs;
};

GraphMoments measure(const Dataset& data, int graph, const Network& network) {
  const FeatureSchema& schema = network.schema();
  const std::int64_t width = schema.node_features, config_features = schema.config_features;
  GraphMoments moments{Moments(width), Moments(config_features)};
  const std::span<const float> features = data.graph(graph).node_features;
  for (std::int64_t at = 0; at < std::ssize(features); at += width)
    moments.nodes.add(features.subspan(at, width));

  std::vector<std::int64_t> rows;
  const std::int64_t count = data.rows(graph), wanted = std::min(count, kStatisticsRows);
  for (std::int64_t i = 0; i < wanted; ++i) rows.push_back(i * count / wanted);
  const Slate slate = data.slate(graph, rows);
  const std::span<const float> states = slate.local_states.empty()
                                            ? std::span<const float>(data.states(graph).features)
                                            : slate.local_states;
  for (const std::int32_t state : slate.states)
    moments.configs.add(states.subspan(state * config_features, config_features));
  // A few rows suffice for a mean, but not for a range.
  if (network.config().encoder.config_transform != FeatureTransform::min_max) return moments;
  const auto widen = [&](std::span<const float> rows_of_states) {
    for (std::int64_t at = 0; at < std::ssize(rows_of_states); at += config_features)
      moments.configs.widen(rows_of_states.subspan(at, config_features));
  };
  const RowRules rules = data.options().rows();
  if (slate.local_states.empty() && rules.max_configs == 0 && rules.least_entropy == 0) {
    widen(data.states(graph).features);
    return moments;
  }
  constexpr std::int64_t kRowsAtOnce = 32;
  for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    rows.resize(std::min(kRowsAtOnce, count - begin));
    std::iota(rows.begin(), rows.end(), begin);
    const Slate some = data.slate(graph, rows);
    widen(some.local_states);
    if (!some.local_states.empty()) continue;
    for (const std::int32_t state : some.states)
      widen(states.subspan(state * config_features, config_features));
  }
  return moments;
}

}  // namespace

std::vector<FeatureStatistics> member_statistics(const TrainingSetup& setup) {
  const FeatureSchema& schema = setup.network.schema();
  std::vector<GraphMoments> graphs;
  for (int g = 0; g < setup.data.size(); ++g)
    graphs.push_back(measure(setup.data, g, setup.network));
  const std::vector<int> fold = graph_folds(setup.folds, setup.data);
  std::map<int, FeatureStatistics> of_fold;
  std::vector<FeatureStatistics> members;
  for (int m = 0; m < setup.experiment.ensemble.members; ++m) {
    const int held_out = fold.empty() ? -1 : setup.experiment.ensemble.held_out_fold(m);
    auto [known, fresh] = of_fold.emplace(held_out, FeatureStatistics{});
    if (fresh) {
      GraphMoments all{Moments(schema.node_features), Moments(schema.config_features)};
      for (std::size_t g = 0; g < graphs.size(); ++g) {
        if (held_out >= 0 && fold[g] == held_out) continue;
        all.nodes.add(graphs[g].nodes);
        all.configs.add(graphs[g].configs);
      }
      const EncoderConfig& encoder = setup.network.config().encoder;
      known->second = {
          all.nodes.mean(encoder.node_transform), all.nodes.scale(encoder.node_transform),
          all.configs.mean(encoder.config_transform), all.configs.scale(encoder.config_transform)};
    }
    members.push_back(known->second);
  }
  return members;
}

}  // namespace tpudist
