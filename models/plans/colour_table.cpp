#include "models/plans/colour_table.hpp"

#include <algorithm>

namespace tpudist {
namespace {

constexpr std::int64_t kTablePerConfig = 16;  // entries of a table of pairs that is still cheap to
                                              // clear

}  // namespace

std::int32_t ColourTable::colour(std::span<const std::uint32_t> key, bool& fresh) {
  // One multiplication for two words; the finaliser distributes the low bits.
  std::uint64_t hash = key.size();
  const auto add = [&](std::uint64_t words) {
    hash = (hash ^ words) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  };
  std::size_t at = 0;
  for (; at + 1 < key.size(); at += 2) add(key[at] | static_cast<std::uint64_t>(key[at + 1]) << 32);
  if (at < key.size()) add(key[at]);
  hash = mix_hash(hash) & mask_;
  const std::int32_t known = index_.find(
      hash, [&](std::int32_t colour) { return std::ranges::equal(this->key(colour), key); });
  fresh = known < 0;
  if (!fresh) return known;
  const std::int32_t colour = size();
  index_.insert(hash, colour);
  words_.insert(words_.end(), key.begin(), key.end());
  begin_.push_back(static_cast<std::int64_t>(words_.size()));
  return colour;
}

ConfigPartitions::ConfigPartitions(std::int64_t configs) : configs_(configs) {
  scratch_.assign(configs, 0);
  intern(scratch_);
}

std::int32_t ConfigPartitions::of_labels(std::span<const std::int32_t> labels) {
  label_of_class_.clear();
  for (std::int64_t k = 0; k < configs_; ++k) {
    const auto known = std::find(label_of_class_.begin(), label_of_class_.end(), labels[k]);
    scratch_[k] = static_cast<std::int32_t>(known - label_of_class_.begin());
    if (known == label_of_class_.end()) label_of_class_.push_back(labels[k]);
  }
  return intern(scratch_);
}

std::int32_t ConfigPartitions::refine_further(std::int32_t a, std::int32_t b) {
  if (classes(a) == configs_) return a;
  if (classes(b) == configs_) return b;
  if (a > b) std::swap(a, b);
  bool fresh = false;
  const std::int32_t pair = by_pair_.number(a, b, fresh);
  if (!fresh) return pair_result_[pair];
  number_pairs(a, b);
  pair_result_.push_back(intern(scratch_));
  return pair_result_[pair];
}

// Labels the configurations by pairs of classes, numbered by first occurrence, in `scratch_`.
void ConfigPartitions::number_pairs(std::int32_t a, std::int32_t b) {
  const auto in_a = class_of_config(a), in_b = class_of_config(b);
  const std::int64_t columns = classes(b), pairs = classes(a) * columns;
  if (pairs <= kTablePerConfig * configs_) {
    std::int32_t next = 0;
    table_.assign(pairs, -1);
    for (std::int64_t k = 0; k < configs_; ++k) {
      std::int32_t& pair = table_[in_a[k] * columns + in_b[k]];
      if (pair < 0) pair = next++;
      scratch_[k] = pair;
    }
    return;
  }
  bool fresh = false;
  pairs_.clear();
  for (std::int64_t k = 0; k < configs_; ++k) scratch_[k] = pairs_.number(in_a[k], in_b[k], fresh);
}

std::int32_t ConfigPartitions::intern(std::span<const std::int32_t> classes) {
  // The same bits: classes are not negative.
  const std::span words(reinterpret_cast<const std::uint32_t*>(classes.data()), classes.size());
  bool fresh = false;
  const std::int32_t number = contents_.colour(words, fresh);
  if (!fresh) return number;
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
