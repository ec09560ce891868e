#include "train/units/feature_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>

#include "schema/tpugraphs.hpp"
#include "train/units/folds.hpp"

namespace tpudist {
namespace {

// Mean and sum of squared deviations of columns, which can be joined (Chan et al. 1983).
class Moments {
 public:
  explicit Moments(std::int64_t columns)
      : mean_(static_cast<std::size_t>(columns)), squares_(mean_.size()) {}

  void add(std::span<const float> row) {
    count_ += 1;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      const double difference = row[c] - mean_[c];
      mean_[c] += difference / count_;
      squares_[c] += difference * (row[c] - mean_[c]);
    }
  }
  void add(const Moments& other) {
    if (other.count_ == 0) return;
    const double sum = count_ + other.count_;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      const double difference = other.mean_[c] - mean_[c];
      mean_[c] += difference * other.count_ / sum;
      squares_[c] += other.squares_[c] + difference * difference * count_ * other.count_ / sum;
    }
    count_ = sum;
  }

  const std::vector<double>& mean() const { return mean_; }
  std::vector<double> scale() const {
    std::vector<double> scale;
    for (const double squares : squares_)
      scale.push_back(squares > 0 ? 1 / std::sqrt(squares / count_) : 0);
    return scale;
  }

 private:
  double count_ = 0;
  std::vector<double> mean_, squares_;
};

struct GraphMoments {
  Moments nodes, configs;
};

GraphMoments measure(const Dataset& data, int graph, std::int64_t config_features) {
  GraphMoments moments{Moments(kNodeFeatures), Moments(config_features)};
  const std::span<const float> features = data.graph(graph).node_features;
  for (std::size_t at = 0; at < features.size(); at += kNodeFeatures)
    moments.nodes.add(features.subspan(at, kNodeFeatures));

  std::vector<std::int64_t> rows;
  const std::int64_t count = data.rows(graph), wanted = std::min(count, kStatisticsRows);
  for (std::int64_t i = 0; i < wanted; ++i) rows.push_back(i * count / wanted);
  const Slate slate = data.slate(graph, rows);
  const std::span<const float> states = slate.local_states.empty()
                                            ? std::span<const float>(data.states(graph).features)
                                            : slate.local_states;
  for (const std::int32_t state : slate.states)
    moments.configs.add(states.subspan(state * config_features, config_features));
  return moments;
}

}  // namespace

std::vector<FeatureStatistics> member_statistics(const TrainingSetup& setup) {
  const std::int64_t config_features = setup.network.config_features();
  std::vector<GraphMoments> graphs;
  for (int g = 0; g < setup.data.size(); ++g)
    graphs.push_back(measure(setup.data, g, config_features));
  const std::vector<int> fold = graph_folds(setup.folds, setup.data);
  std::map<int, FeatureStatistics> of_fold;
  std::vector<FeatureStatistics> members;
  for (int m = 0; m < setup.experiment.ensemble.members; ++m) {
    const int held_out = fold.empty() ? -1 : setup.experiment.ensemble.held_out_fold(m);
    auto [known, fresh] = of_fold.emplace(held_out, FeatureStatistics{});
    if (fresh) {
      GraphMoments all{Moments(kNodeFeatures), Moments(config_features)};
      for (std::size_t g = 0; g < graphs.size(); ++g) {
        if (held_out >= 0 && fold[g] == held_out) continue;
        all.nodes.add(graphs[g].nodes);
        all.configs.add(graphs[g].configs);
      }
      known->second = {all.nodes.mean(), all.nodes.scale(), all.configs.mean(),
                       all.configs.scale()};
    }
    members.push_back(known->second);
  }
  return members;
}

}  // namespace tpudist
