#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/colour_table.hpp"
#include "models/plans/pair_table.hpp"

namespace tpudist {

// Numbers partitions of K configurations into classes. Equal partitions get equal numbers. The
// common refinement of two partitions is computed once and then looked up. The nodes of a graph
// have few different partitions, so the cost depends on the number of classes and hardly on K.
// Number 0 is the partition with one class. Not thread-safe.
class ConfigPartitions {
 public:
  explicit ConfigPartitions(std::int64_t configs);

  // Returns the partition that puts configurations with equal `labels` [K] into one class.
  std::int32_t of_labels(std::span<const std::int32_t> labels);

  // Returns the common refinement: configurations are in one class if they are in both partitions.
  std::int32_t refine(std::int32_t a, std::int32_t b) {
    if (a == b || b == 0) return a;
    return a == 0 ? b : refine_further(a, b);
  }

  std::int32_t classes(std::int32_t partition) const {
    return static_cast<std::int32_t>(first_begin_[partition + 1] - first_begin_[partition]);
  }
  // [K] class of each configuration, numbered by first occurrence.
  std::span<const std::int32_t> class_of_config(std::int32_t partition) const {
    const auto* const all = reinterpret_cast<const std::int32_t*>(contents_.key(0).data());
    return {all + partition * configs_, static_cast<std::size_t>(configs_)};
  }
  // [classes] first configuration of each class.
  std::span<const std::int32_t> first_config(std::int32_t partition) const {
    return {first_config_.data() + first_begin_[partition],
            static_cast<std::size_t>(classes(partition))};
  }

 private:
  std::int32_t intern(std::span<const std::int32_t> classes);
  std::int32_t refine_further(std::int32_t a, std::int32_t b);
  void number_pairs(std::int32_t a, std::int32_t b);

  std::int64_t configs_;
  ColourTable contents_;                      // [partitions] class of each configuration
  std::vector<std::int32_t> first_config_;    // first configurations, partition after partition
  std::vector<std::int64_t> first_begin_{0};  // [partitions + 1]
  PairTable by_pair_, pairs_;
  std::vector<std::int32_t> pair_result_;  // [by_pair_.size()]
  std::vector<std::int32_t> scratch_, table_, label_of_class_;
};

}  // namespace tpudist
