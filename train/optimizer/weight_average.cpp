#include "train/optimizer/optimizer.hpp"

#include <algorithm>
#include <cmath>

namespace tpudist {
namespace {

constexpr std::int64_t kAddedFloats = std::int64_t{1}
                                      << 14;  // floats that one thread takes at a time

void add_point(float share, std::int64_t count, const float* __restrict weights,
               float* __restrict average) {
  for (std::int64_t i = 0; i < count; ++i) average[i] += share * (weights[i] - average[i]);
}

}  // namespace

AverageConfig AverageConfig::read(ConfigNode node) {
  AverageConfig config;
  const std::string kind = node.choice("kind", "none", {"none", "ema", "swa"});
  if (kind == "none") return config;
  config.kind = kind == "ema" ? AverageKind::ema : AverageKind::swa;
  if (config.kind == AverageKind::ema) {
    config.decay = node.number("decay", config.decay, {0, 1});
    if (config.decay >= 1) node.mistake("decay", "must be below 1; kind: swa is the plain mean");
  }
  config.from = node.number("from", config.kind == AverageKind::ema ? 0.0 : 0.75, {0, 1});
  if (config.from >= 1) node.mistake("from", "must be a share of all steps below 1");
  config.every = node.integer("every", 1, {1, std::int64_t{1} << 40});
  return config;
}

bool AverageConfig::takes(std::int64_t done, std::int64_t steps) const {
  return kind != AverageKind::none && done > std::llround(from * static_cast<double>(steps)) &&
         done % every == 0;
}

double AverageConfig::share(std::int64_t n) const {
  const auto count = static_cast<double>(n);
  if (kind == AverageKind::swa) return 1 / count;
  return (1 - decay) / (1 - std::pow(decay, count));
}

WeightAverage::WeightAverage(const AverageConfig& config, std::int64_t length, int members)
    : config_(config), length_(length) {
  if (!is_kept()) return;
  values_.resize(length * members);
  points_.resize(members);
}

std::vector<float> WeightAverage::begin_point(const std::vector<bool>& active, std::int64_t done,
                                              std::int64_t steps) {
  if (!config_.takes(done, steps)) return {};
  std::vector<float> shares(points_.size());
  for (std::size_t m = 0; m < points_.size(); ++m) {
    if (active[m]) shares[m] = static_cast<float>(config_.share(++points_[m]));
  }
  return shares;
}

void WeightAverage::add(std::span<const float> flat, const std::vector<bool>& active,
                        std::int64_t done, std::int64_t steps, ThreadPool& pool) {
  const std::vector<float> shares = begin_point(active, done, steps);
  if (shares.empty()) return;
  const std::int64_t blocks = (length_ + kAddedFloats - 1) / kAddedFloats;
  pool.parallel_for(blocks * static_cast<std::int64_t>(points_.size()), [&](std::int64_t index) {
    const std::int64_t member = index / blocks, begin = index % blocks * kAddedFloats;
    if (!active[member]) return;
    const std::int64_t at = member * length_ + begin;
    add_point(shares[member], std::min(kAddedFloats, length_ - begin), flat.data() + at,
              values_.data() + at);
  });
}

AlignedFloats averaged_weights(std::span<const float> flat, std::span<const float> values,
                               std::span<const std::int64_t> points) {
  AlignedFloats weights(flat.begin(), flat.end());
  if (points.empty()) return weights;
  const std::size_t length = flat.size() / points.size();
  for (std::size_t m = 0; m < points.size(); ++m) {
    if (points[m] > 0) std::ranges::copy(values.subspan(m * length, length), &weights[m * length]);
  }
  return weights;
}

}  // namespace tpudist
