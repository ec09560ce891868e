#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dist/collectives/communicator.hpp"
#include "train/state/segment_table.hpp"
#include "train/units/batch_plan.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

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
