#include "train/state/segment_table.hpp"

#include <cstddef>

namespace tpudist {

SegmentTable::SegmentTable(int members,
                           const std::vector<std::pair<std::int64_t, std::int64_t>>& graphs) {
  for (const auto& [rows, segments] : graphs) {
    segments_.push_back(segments);
    begin_.push_back(begin_.back() + rows * segments);
  }
  values_.assign(static_cast<std::size_t>(members * begin_.back()), 0.0f);
}

bool SegmentTable::restore(const std::vector<float>& values) {
  if (values.size() != values_.size()) return false;
  values_ = values;
  return true;
}

std::size_t SegmentTable::place(int member, int graph, std::int64_t row, int segment) const {
  const auto g = static_cast<std::size_t>(graph);
  return static_cast<std::size_t>(member * begin_.back() + begin_[g] + row * segments_[g] +
                                  segment);
}

}  // namespace tpudist
