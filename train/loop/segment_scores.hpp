#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dist/collectives/communicator.hpp"
#include "train/units/batch_plan.hpp"
#include "train/units/unit_builder.hpp"

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

// The scores of segments within a step, where graphs are cut: each becomes the score of its graph by
// a SegmentTable, and at the end of the step they go into the table.
class SegmentScores {
 public:
  // `configs`: most of a slate.
  SegmentScores(int members, int configs)
      : members_(static_cast<std::size_t>(members)), configs_(static_cast<std::size_t>(configs)) {}

  // Begins a step of so many slates. Borrows the table until update(). If it is empty, no graph is
  // cut, and mix() is not called.
  void begin(std::size_t slates, const SegmentTable& table);
  bool cut() const { return table_ != nullptr && !table_->empty(); }

  // Keeps a member's scores [K] of a segment, of slate `own` of a unit and number `slate` of the
  // batch, and makes them those of the graph. Thread-safe for different slates or members.
  void mix(const Unit& unit, std::size_t own, std::size_t slate, int member,
           std::span<double> scores);

  // Takes what all ranks kept into the table, slate by slate, of the members that took the step
  // [M]. Collective.
  void update(const BatchPlan& batch, const std::vector<bool>& stepped, Communicator& world,
              SegmentTable& table);

 private:
  std::size_t length() const { return 2 + 2 * configs_; }  // of a record
  std::span<double> record(std::size_t slate, std::size_t member);

  std::size_t members_, configs_;
  const SegmentTable* table_ = nullptr;  // as before the step
  // [slates, M, 2 + 2 K]: the segment, the number of configurations, their rows and their scores; 0
  // where another rank computes them.
  std::vector<double> records_;
};

}  // namespace tpudist
