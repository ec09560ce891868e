#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/flat_index.hpp"

namespace tpudist {

// Partitions of K lanes (configurations) into classes, interned: equal partitions get equal
// numbers, and the common refinement of two is looked up once. Nodes of a graph share few
// partitions, so that refinement costs what the classes cost, not what the lanes cost. Number 0 is
// the partition with one class. Not thread-safe.
class LanePartitions {
 public:
  explicit LanePartitions(std::int64_t lanes);

  // The partition in which two lanes agree where `labels` [K] agree.
  std::int32_t of_labels(std::span<const std::int32_t> labels);

  // The common refinement: lanes agree where they agree in both.
  std::int32_t refine(std::int32_t a, std::int32_t b);

  std::int32_t classes(std::int32_t partition) const {
    return static_cast<std::int32_t>(first_begin_[partition + 1] - first_begin_[partition]);
  }
  // Class of each lane, numbered by first occurrence. [K]
  std::span<const std::int32_t> class_of_lane(std::int32_t partition) const {
    return {class_of_lane_.data() + partition * lanes_, static_cast<std::size_t>(lanes_)};
  }
  // First lane of each class. [classes]
  std::span<const std::int32_t> first_lane(std::int32_t partition) const {
    return {first_lane_.data() + first_begin_[partition],
            static_cast<std::size_t>(classes(partition))};
  }

 private:
  std::int32_t intern(std::span<const std::int32_t> classes);
  void number_pairs(std::int32_t a, std::int32_t b);

  std::int64_t lanes_;
  std::vector<std::int32_t> class_of_lane_;   // [partitions, K]
  std::vector<std::int32_t> first_lane_;      // of all partitions, one behind the other
  std::vector<std::int64_t> first_begin_{0};  // [partitions + 1]
  FlatIndex by_content_, by_pair_, pairs_;
  std::vector<std::int32_t> pair_a_, pair_b_, pair_result_;
  std::vector<std::int32_t> scratch_, table_;
};

}  // namespace tpudist
