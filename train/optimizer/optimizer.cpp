#include "train/optimizer/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Floats that one thread takes at a time; also the blocks of the norm, whose bits depend on it.
constexpr std::int64_t kBlock = std::int64_t{1} << 14;

std::int64_t block_count(std::int64_t length) {
  return (length + kBlock - 1) / kBlock;
}

// In eight parallel sums, which the compiler keeps in vector registers, added in fixed order.
double sum_of_squares(const float* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// The coefficients of one step of one member, rounded in torch's order: computed in double, used as
// float.
struct Coefficients {
  float gradient_scale;  // of the clip
  float shrink;          // adamw: 1 - rate * decay
  float l2;              // adam: decay
  float one_minus_beta1;
  float beta2, one_minus_beta2;
  float root_of_correction2;  // sqrt(1 - beta2^t)
  float eps;
  float minus_step_size;  // -rate / (1 - beta1^t)
};

void update(const Coefficients& c, std::int64_t count, const float* __restrict gradient,
            float* __restrict parameter, float* __restrict first, float* __restrict second) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float shrunk = parameter[i] * c.shrink;
    const float g = gradient[i] * c.gradient_scale + c.l2 * parameter[i];
    const float m = first[i] + c.one_minus_beta1 * (g - first[i]);
    const float v = second[i] * c.beta2 + c.one_minus_beta2 * g * g;
    first[i] = m;
    second[i] = v;
    const float denominator = std::sqrt(v) / c.root_of_correction2 + c.eps;
    parameter[i] = shrunk + c.minus_step_size * m / denominator;
  }
}

Coefficients coefficients(const OptimizerConfig& config, double rate, std::int64_t step,
                          double norm) {
  Coefficients c{};
  const double t = static_cast<double>(step);
  c.gradient_scale = config.clip_norm > 0
                         ? static_cast<float>(std::min(1.0, config.clip_norm / (norm + 1e-6)))
                         : 1.0f;
  c.one_minus_beta1 = static_cast<float>(1 - config.beta1);
  c.beta2 = static_cast<float>(config.beta2);
  c.one_minus_beta2 = static_cast<float>(1 - config.beta2);
  c.root_of_correction2 = static_cast<float>(std::sqrt(1 - std::pow(config.beta2, t)));
  c.eps = static_cast<float>(config.eps);
  c.minus_step_size = static_cast<float>(-rate / (1 - std::pow(config.beta1, t)));
  return c;
}

void set_decay(Coefficients& c, const OptimizerConfig& config, double rate, double decay) {
  const bool decoupled = config.name != "adam";
  c.shrink = decoupled ? static_cast<float>(1 - rate * decay) : 1.0f;
  c.l2 = decoupled ? 0.0f : static_cast<float>(decay);
}

void read_decay(ConfigNode node, OptimizerConfig& config) {
  using enum ParameterGroup;
  static constexpr std::pair<const char*, ParameterGroup> kTrained[] = {
      {"weights", weights}, {"biases", biases}, {"embeddings", embeddings},
      {"norms", norms},     {"output", output},
  };
  const double all = node.number("all", 0, {0, 1e6});
  for (const auto& [name, group] : kTrained)
    config.set_decay(group, node.number(name, all, {0, 1e6}));
}

}  // namespace

OptimizerConfig OptimizerConfig::read(ConfigNode node) {
  OptimizerConfig config;
  config.name = node.choice("name", config.name, {"adamw", "adam"});
  config.rate = node.number("lr", config.rate, {0, 1e6});
  config.beta1 = node.number("beta1", config.beta1, {0, 1});
  config.beta2 = node.number("beta2", config.beta2, {0, 1});
  config.eps = node.number("eps", config.eps, {1e-30, 1});  // padding divides 0 by it
  config.clip_norm = node.number("clip_norm", config.clip_norm, {0, 1e30});
  if (config.beta1 >= 1) node.mistake("beta1", "must be below 1");
  if (config.beta2 >= 1) node.mistake("beta2", "must be below 1");
  read_decay(node.child("decay"), config);
  return config;
}

FlatOptimizer::FlatOptimizer(const OptimizerConfig& config, const ParameterTable& table,
                             int members)
    : config_(config),
      length_(table.length()),
      first_(static_cast<std::size_t>(length_ * members)),
      second_(first_.size()),
      steps_(static_cast<std::size_t>(members)) {
  // An entry's range reaches to the next entry, padding included.
  const auto& entries = table.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].group == ParameterGroup::statistics) continue;
    const double decay = config.decay_of(entries[i].group);
    const std::int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : length_;
    const bool touches = !ranges_.empty() && ranges_.back().end == entries[i].offset;
    if (touches && ranges_.back().decay == decay) {
      ranges_.back().end = end;
    } else {
      ranges_.push_back({entries[i].offset, end, decay});
    }
    if (touches) {
      trained_.back().second = end;
    } else {
      trained_.emplace_back(entries[i].offset, end);
    }
  }
}

void FlatOptimizer::check_gradients(std::span<const float> gradients, std::int64_t stride) const {
  const std::int64_t needed = members() == 0 ? 0 : (members() - 1) * stride + length_;
  if (stride < length_ || static_cast<std::int64_t>(gradients.size()) < needed) {
    throw Error(ErrorKind::failed,
                fmt::format("optimizer: {} gradients in steps of {} are too few for {} members of "
                            "{} parameters",
                            gradients.size(), stride, members(), length_));
  }
}

std::vector<double> FlatOptimizer::gradient_norms(std::span<const float> gradients,
                                                  std::int64_t stride, ThreadPool& pool) const {
  check_gradients(gradients, stride);
  const std::int64_t blocks = block_count(length_);
  std::vector<double> sums(static_cast<std::size_t>(blocks * members()));
  pool.parallel_for(blocks * members(), [&](std::int64_t index) {
    const std::int64_t member = index / blocks, block_begin = index % blocks * kBlock;
    const std::int64_t block_end = std::min(block_begin + kBlock, length_);
    for (const auto& [trained_begin, trained_end] : trained_) {
      const std::int64_t begin = std::max(block_begin, trained_begin);
      const std::int64_t end = std::min(block_end, trained_end);
      if (begin < end)
        sums[index] += sum_of_squares(gradients.data() + member * stride + begin, end - begin);
    }
  });
  std::vector<double> norms;
  for (int member = 0; member < members(); ++member) {
    double sum = 0;
    for (std::int64_t block = 0; block < blocks; ++block) sum += sums[member * blocks + block];
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

void FlatOptimizer::step(std::span<float> flat, std::span<const float> gradients,
                         std::int64_t stride, std::span<const double> norms,
                         const std::vector<bool>& active, double rate_factor, ThreadPool& pool) {
  check_gradients(gradients, stride);
  if (flat.size() != first_.size() || active.size() != steps_.size() ||
      (config_.clip_norm > 0 && norms.size() != steps_.size())) {
    throw Error(ErrorKind::failed,
                fmt::format("optimizer: {} parameters, {} norms and {} active flags do not fit {} "
                            "members of {} parameters",
                            flat.size(), norms.size(), active.size(), members(), length_));
  }
  const double rate = config_.rate * rate_factor;
  std::vector<Coefficients> of_member(steps_.size());
  for (std::size_t m = 0; m < steps_.size(); ++m) {
    if (!active[m]) continue;
    ++steps_[m];
    of_member[m] = coefficients(config_, rate, steps_[m], config_.clip_norm > 0 ? norms[m] : 0);
  }

  const std::int64_t blocks = block_count(length_);
  pool.parallel_for(blocks * members(), [&](std::int64_t index) {
    const std::int64_t member = index / blocks;
    if (!active[member]) return;
    const std::int64_t block_begin = index % blocks * kBlock;
    const std::int64_t block_end = std::min(block_begin + kBlock, length_);
    Coefficients c = of_member[member];
    for (const Range& range : ranges_) {
      const std::int64_t begin = std::max(block_begin, range.begin);
      const std::int64_t end = std::min(block_end, range.end);
      if (begin >= end) continue;
      set_decay(c, config_, rate, range.decay);
      const std::int64_t at = member * length_ + begin;
      update(c, end - begin, gradients.data() + member * stride + begin, flat.data() + at,
             first_.data() + at, second_.data() + at);
    }
  });
}

}  // namespace tpudist
