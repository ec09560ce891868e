#include "train/optimizer/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Floats that one thread takes at a time; also the blocks of the norm, which decide its bits.
constexpr std::int64_t kBlock = std::int64_t{1} << 14;

std::int64_t block_count(std::int64_t length) {
  return (length + kBlock - 1) / kBlock;
}

// [begin, end) by blocks.
std::vector<NormPart> parts_of(std::int64_t begin, std::int64_t end) {
  std::vector<NormPart> parts;
  for (; begin < end; begin = parts.back().end) {
    const std::int64_t block = begin / kBlock;
    parts.push_back({begin, std::min(end, (block + 1) * kBlock), block});
  }
  return parts;
}

// The sum of squares of value(0), value(1), ..., as eight parallel sums, which the compiler keeps
// in vector registers, added in fixed order.
template <typename Value>
double sum_of_squares(std::int64_t count, const Value& value_at) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = value_at(i + lane);
      sums[lane] += value * value;
    }
  }
  for (; i < count; ++i) {
    const double value = value_at(i);
    sums[0] += value * value;
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Calls `take(member, block, sum)` with the sums over the parts of each block of each member.
template <typename OfPart, typename Take>
void add_squares(const std::vector<NormPart>& parts, int members, ThreadPool& pool,
                 const OfPart& of_part, const Take& take) {
  const auto count = std::ssize(parts);
  std::vector<double> sums(count * members);
  pool.parallel_for(std::ssize(sums), [&](std::int64_t index) {
    sums[index] = of_part(index / count, parts[index % count]);
  });
  double of_block = 0;
  for (std::int64_t i = 0; i < std::ssize(sums); ++i) {
    of_block += sums[i];
    const auto at = static_cast<std::size_t>(i % count);
    if (i % count + 1 < count && parts[at + 1].block == parts[at].block) continue;
    take(i / count, parts[at].block, of_block);
    of_block = 0;
  }
}

void update(const StepCoefficients& c, std::int64_t count, const float* __restrict gradient,
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

// Computed in double and used as float, rounded in torch's order. Without the decay.
StepCoefficients coefficients(const OptimizerConfig& config, double rate, std::int64_t step,
                              double norm) {
  StepCoefficients c;
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
  c.takes_step = 1;
  return c;
}

void set_decay(StepCoefficients& c, const OptimizerConfig& config, double rate, double decay) {
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
  config.decay_clipped = node.boolean("clipped", false);
  if (config.decay_clipped && (config.name != "adam" || config.clip_tensor_norm == 0))
    node.mistake("clipped",
                 "makes the decay a part of the gradient before it is clipped by tensor: give "
                 "name: adam and clip_tensor_norm, or leave it out");
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
  config.clip_tensor_norm = node.number("clip_tensor_norm", config.clip_tensor_norm, {0, 1e30});
  if (config.clip_norm > 0 && config.clip_tensor_norm > 0)
    node.mistake("clip_tensor_norm", "and clip_norm are two ways to clip: set one of them to 0");
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
  std::vector<std::pair<std::int64_t, std::int64_t>> trained;
  const auto& entries = table.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].group == ParameterGroup::statistics) continue;
    const std::int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : length_;
    const bool touches = !ranges_.empty() && ranges_.back().end == entries[i].offset;
    if (touches && config.clip_tensor_norm == 0 &&
        config.decay_of(ranges_.back().group) == config.decay_of(entries[i].group)) {
      ranges_.back().end = end;
    } else {
      ranges_.push_back({entries[i].offset, end, entries[i].group});
    }
    if (touches) {
      trained.back().second = end;
    } else {
      trained.emplace_back(entries[i].offset, end);
    }
  }
  for (const auto& [begin, end] : trained) {
    const std::vector<NormPart> parts = parts_of(begin, end);
    parts_.insert(parts_.end(), parts.begin(), parts.end());
  }
  if (config.clip_tensor_norm == 0) return;
  for (std::size_t r = 0; r < ranges_.size(); ++r) {
    for (NormPart part : parts_of(ranges_[r].begin, ranges_[r].end)) {
      part.block = static_cast<std::int64_t>(r);
      tensor_parts_.push_back(part);
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
  std::vector<double> totals(steps_.size());
  add_squares(
      parts_, members(), pool,
      [&](std::int64_t member, const NormPart& part) {
        const float* const values = gradients.data() + member * stride + part.begin;
        return sum_of_squares(part.end - part.begin, [&](std::int64_t i) { return values[i]; });
      },
      [&](std::int64_t member, std::int64_t, double sum) { totals[member] += sum; });
  for (double& total : totals) total = std::sqrt(total);
  return totals;
}

std::vector<StepCoefficients> FlatOptimizer::begin_step(std::span<const double> norms,
                                                        const std::vector<bool>& active,
                                                        double rate_factor) {
  if (active.size() != steps_.size() || (config_.clip_norm > 0 && norms.size() != steps_.size())) {
    throw Error(ErrorKind::failed,
                fmt::format("optimizer: {} norms and {} active flags do not fit {} members",
                            norms.size(), active.size(), members()));
  }
  const double rate = config_.rate * rate_factor;
  std::vector<StepCoefficients> all(steps_.size() * kParameterGroups);
  for (std::size_t m = 0; m < steps_.size(); ++m) {
    if (!active[m]) continue;
    ++steps_[m];
    const StepCoefficients c =
        coefficients(config_, rate, steps_[m], config_.clip_norm > 0 ? norms[m] : 0);
    for (int group = 0; group < kParameterGroups; ++group) {
      if (static_cast<ParameterGroup>(group) == ParameterGroup::statistics) continue;
      StepCoefficients& own = all[m * kParameterGroups + static_cast<std::size_t>(group)] = c;
      set_decay(own, config_, rate, config_.decay_of(static_cast<ParameterGroup>(group)));
    }
  }
  return all;
}

std::vector<float> FlatOptimizer::tensor_scales(std::span<const float> flat,
                                                std::span<const float> gradients,
                                                std::int64_t stride,
                                                const std::vector<bool>& active,
                                                ThreadPool& pool) const {
  const auto count = std::ssize(ranges_);
  std::vector<float> scales(count * members(), 1.0f);
  add_squares(
      tensor_parts_, members(), pool,
      [&](std::int64_t member, const NormPart& part) {
        if (!active[member]) return 0.0;
        const Range& range = ranges_[part.block];
        const float* const gradient = gradients.data() + member * stride + part.begin;
        const float* const parameter = flat.data() + member * length_ + part.begin;
        const float l2 =
            config_.decay_clipped ? static_cast<float>(config_.decay_of(range.group)) : 0.0f;
        return sum_of_squares(part.end - part.begin,
                              [&](std::int64_t i) { return gradient[i] + l2 * parameter[i]; });
      },
      [&](std::int64_t member, std::int64_t range, double sum) {
        scales[member * count + range] =
            static_cast<float>(std::min(1.0, config_.clip_tensor_norm / (std::sqrt(sum) + 1e-6)));
      });
  return scales;
}

TensorClip FlatOptimizer::tensor_clip() const {
  TensorClip clip;
  clip.largest = config_.clip_tensor_norm;
  clip.decay_clipped = config_.decay_clipped;
  clip.parts = tensor_parts_.data();
  clip.count = std::ssize(tensor_parts_);
  clip.tensors = tensor_parts_.empty() ? 0 : std::ssize(ranges_);
  return clip;
}

void FlatOptimizer::step(std::span<float> flat, std::span<const float> gradients,
                         std::int64_t stride, std::span<const double> norms,
                         const std::vector<bool>& active, double rate_factor, ThreadPool& pool) {
  check_gradients(gradients, stride);
  if (flat.size() != first_.size()) {
    throw Error(ErrorKind::failed,
                fmt::format("optimizer: {} parameters do not fit {} members of {} parameters",
                            flat.size(), members(), length_));
  }
  const std::vector<StepCoefficients> all = begin_step(norms, active, rate_factor);
  std::vector<float> scales;
  if (config_.clip_tensor_norm > 0) scales = tensor_scales(flat, gradients, stride, active, pool);
  const std::int64_t blocks = block_count(length_);
  pool.parallel_for(blocks * members(), [&](std::int64_t index) {
    const std::int64_t member = index / blocks;
    if (!active[member]) return;
    const std::int64_t block_begin = index % blocks * kBlock;
    const std::int64_t block_end = std::min(block_begin + kBlock, length_);
    for (std::size_t r = 0; r < ranges_.size(); ++r) {
      const Range& range = ranges_[r];
      const std::int64_t begin = std::max(block_begin, range.begin);
      const std::int64_t end = std::min(block_end, range.end);
      if (begin >= end) continue;
      const std::int64_t at = member * length_ + begin;
      StepCoefficients c = all[member * kParameterGroups + static_cast<int>(range.group)];
      if (!scales.empty()) {
        c.gradient_scale = scales[static_cast<std::size_t>(member) * ranges_.size() + r];
        if (config_.decay_clipped) c.l2 *= c.gradient_scale;
      }
      update(c, end - begin, gradients.data() + member * stride + begin, flat.data() + at,
             first_.data() + at, second_.data() + at);
    }
  });
}

}  // namespace tpudist
