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

// The last known score of each segment of each training row, by member: the table of stale
// embeddings of Graph Segment Training. A network's score must be a sum over nodes, so that a
// segment's embedding is one number. A score is 0 until a step computes it. The same on all ranks.
class SegmentTable {
 public:
  SegmentTable() = default;  // no graph is cut
  // `graphs`: the number of rows (Dataset::rows) and of segments with a configurable node of each
  // graph; empty: no graph is cut.
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
  // Sets the scores. Returns false, and changes nothing, if their number does not match.
  bool restore(const std::vector<float>& values);

 private:
  std::size_t place(int member, int graph, std::int64_t row, int segment) const;

  std::vector<std::int64_t> begin_{0};  // [graphs + 1] of a member's scores
  std::vector<std::int64_t> segments_;  // [graphs]
  std::vector<float> values_;
};

// The scores of segments within a step, if graphs are cut. A SegmentTable turns a segment's score
// into its graph's score; at the end of the step the scores go into the table.
class SegmentScores {
 public:
  // `configs`: most configurations of a slate.
  SegmentScores(int members, int configs)
      : members_(static_cast<std::size_t>(members)), configs_(static_cast<std::size_t>(configs)) {}

  // Begins a step of `slates` slates. Borrows the table until update(). Do not call mix() with an
  // empty table: no graph is cut.
  void begin(std::size_t slates, const SegmentTable& table);
  bool cut() const { return table_ != nullptr && !table_->empty(); }

  // Keeps a member's scores [K] of a segment and turns them into scores of the graph. `own`: index
  // of the slate in the unit; `slate`: in the batch. Thread-safe for different slates or members.
  void mix(const Unit& unit, std::size_t own, std::size_t slate, int member,
           std::span<double> scores);

  // Writes the kept scores of all ranks into the table, slate by slate, for members with
  // stepped[m]. Collective.
  void update(const BatchPlan& batch, const std::vector<bool>& stepped, Communicator& world,
              SegmentTable& table);

 private:
  std::size_t length() const { return 2 + 2 * configs_; }  // doubles of a record
  std::span<double> record(std::size_t slate, std::size_t member);

  std::size_t members_, configs_;
  const SegmentTable* table_ = nullptr;  // the table before the step
  // [slates, M, 2 + 2 K]: the segment, the number of configurations, their rows and their scores.
  // All 0 if another rank computes the record, so that all_reduce can carry integers as doubles.
  std::vector<double> records_;
};

}  // namespace tpudist
