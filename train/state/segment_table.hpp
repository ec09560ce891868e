#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tpudist {

// The last known score of each segment of each row that is trained on, by each member: the table of
// stale embeddings of Graph Segment Training, for networks whose score is a sum over nodes, so that a
// segment's embedding is one number. 0 until a step has computed it. The same on all ranks.
class SegmentTable {
 public:
  SegmentTable() = default;  // of graphs that are not cut
  // `graphs`: for each its number of rows (Dataset::rows) and of segments with a configurable node;
  // none: no graph is cut.
  SegmentTable(int members, const std::vector<std::pair<std::int64_t, std::int64_t>>& graphs);

  bool empty() const { return values_.empty(); }
  float& score(int member, int graph, std::int64_t row, int segment) {
    return values_[place(member, graph, row, segment)];
  }
  float score(int member, int graph, std::int64_t row, int segment) const {
    return values_[place(member, graph, row, segment)];
  }

  // [M, scores], as a checkpoint keeps it.
  const std::vector<float>& values() const { return values_; }
  // Takes them; false, and nothing is changed, where their number is another.
  bool restore(const std::vector<float>& values);

 private:
  std::size_t place(int member, int graph, std::int64_t row, int segment) const;

  std::vector<std::int64_t> begin_{0};  // [graphs + 1] of a member's scores
  std::vector<std::int64_t> segments_;  // [graphs]
  std::vector<float> values_;
};

}  // namespace tpudist
