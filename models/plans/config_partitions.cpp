#include "models/plans/config_partitions.hpp"

#include <algorithm>

namespace tpudist {
namespace {

constexpr std::int64_t kTablePerConfig = 16;  // entries of a table of pairs that is still cheap to
                                              // clear

}  // namespace

ConfigPartitions::ConfigPartitions(std::int64_t configs) : configs_(configs) {
  scratch_.assign(configs, 0);
  intern(scratch_);
}

std::int32_t ConfigPartitions::of_labels(std::span<const std::int32_t> labels) {
  std::vector<std::int32_t> label_of_class;
  std::vector<std::int32_t> numbered(configs_);
  for (std::int64_t k = 0; k < configs_; ++k) {
    const auto known = std::find(label_of_class.begin(), label_of_class.end(), labels[k]);
    numbered[k] = static_cast<std::int32_t>(known - label_of_class.begin());
    if (known == label_of_class.end()) label_of_class.push_back(labels[k]);
  }
  return intern(numbered);
}

std::int32_t ConfigPartitions::refine(std::int32_t a, std::int32_t b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (classes(a) == configs_) return a;
  if (classes(b) == configs_) return b;
  if (a > b) std::swap(a, b);
  const std::uint64_t hash =
      mix_hash((static_cast<std::uint64_t>(a) << 32) | static_cast<std::uint32_t>(b));
  const std::int32_t known =
      by_pair_.find(hash, [&](std::int32_t i) { return pair_a_[i] == a && pair_b_[i] == b; });
  if (known >= 0) return pair_result_[known];

  number_pairs(a, b);
  const std::int32_t result = intern(scratch_);
  by_pair_.insert(hash, static_cast<std::int32_t>(pair_a_.size()));
  pair_a_.push_back(a);
  pair_b_.push_back(b);
  pair_result_.push_back(result);
  return result;
}

// Labels the configurations by pairs of classes, numbered by first occurrence, in `scratch_`.
void ConfigPartitions::number_pairs(std::int32_t a, std::int32_t b) {
  const auto in_a = class_of_config(a), in_b = class_of_config(b);
  const std::int64_t columns = classes(b), pairs = classes(a) * columns;
  std::int32_t next = 0;
  if (pairs <= kTablePerConfig * configs_) {
    table_.assign(pairs, -1);
    for (std::int64_t k = 0; k < configs_; ++k) {
      std::int32_t& pair = table_[in_a[k] * columns + in_b[k]];
      if (pair < 0) pair = next++;
      scratch_[k] = pair;
    }
    return;
  }
  std::vector<std::int32_t> config_of_pair;  // first configuration with each pair
  pairs_.clear();
  for (std::int64_t k = 0; k < configs_; ++k) {
    const std::uint64_t hash =
        mix_hash((static_cast<std::uint64_t>(in_a[k]) << 32) | static_cast<std::uint32_t>(in_b[k]));
    std::int32_t pair = pairs_.find(hash, [&](std::int32_t i) {
      const std::int32_t config = config_of_pair[i];
      return in_a[config] == in_a[k] && in_b[config] == in_b[k];
    });
    if (pair < 0) {
      pair = next++;
      pairs_.insert(hash, pair);
      config_of_pair.push_back(static_cast<std::int32_t>(k));
    }
    scratch_[k] = pair;
  }
}

std::int32_t ConfigPartitions::intern(std::span<const std::int32_t> classes) {
  std::uint64_t hash = 0;
  for (const std::int32_t value : classes)
    hash = mix_hash(hash ^ static_cast<std::uint32_t>(value)) + 1;
  const std::int32_t known = by_content_.find(
      hash, [&](std::int32_t i) { return std::ranges::equal(class_of_config(i), classes); });
  if (known >= 0) return known;
  const auto number = static_cast<std::int32_t>(first_begin_.size() - 1);
  by_content_.insert(hash, number);
  class_of_config_.insert(class_of_config_.end(), classes.begin(), classes.end());
  std::int32_t next = 0;
  for (std::int64_t k = 0; k < configs_; ++k) {
    if (classes[k] != next) continue;
    first_config_.push_back(static_cast<std::int32_t>(k));
    ++next;
  }
  first_begin_.push_back(static_cast<std::int64_t>(first_config_.size()));
  return number;
}

}  // namespace tpudist
