#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/plans/plan.hpp"
#include "models/plans/row_run.hpp"

namespace tpudist {

// Where the units of a joined plan have their rows of one kind: those at one depth, or the
// neighbourhoods of one edge set, the nodes, the states, the configurations. Rows outside all runs
// are padding. A run begins at a multiple of four rows, so that rows of floats lie as in a unit's
// own matrix, to 16 bytes.
struct UnitRows {
  std::int64_t rows = 0;                 // with padding
  std::vector<RowRun> runs;              // [blocks * slots], ascending; of a missing unit empty
  std::vector<std::int32_t> run_of_row;  // [rows]; of padding any run of its block
  Csr rows_of_run;                       // [blocks * slots] <- rows
};

// The units of a joined plan. They stand in slots, and the slots in blocks. A plan of one block
// serves all members of a call, and each member computes all of its units. In a plan of several
// blocks each block is one member's. All blocks have equally many rows of each kind, so that one
// product of equal matrices serves all members. The rows of a block are a multiple of kBlockRows:
// LibTorch adds up the channels of a row in another order where there are few rows.
struct JoinedUnits {
  static constexpr std::int64_t kBlockRows = 64;

  int blocks = 1, slots = 1;
  // All kinds of rows of which operators compute. Kinds of equally many rows have the same runs, so
  // that the number of rows of a matrix tells where its units lie.
  std::vector<std::shared_ptr<const UnitRows>> kinds;
  std::shared_ptr<const UnitRows> nodes, states, configs;  // three of them

  // The kind of which run r has counts[r] rows, [blocks * slots]; added to `kinds` if it is new.
  std::shared_ptr<const UnitRows> kind(const std::vector<std::int64_t>& counts);
  // The kind with this many rows. Throws Error if there is none.
  const UnitRows& of(std::int64_t rows) const;
  // The row of `states` that nodes of a unit without a state use: the last of the unit's run.
  std::int64_t none_state(std::size_t run) const {
    return states->runs[run].begin + states->runs[run].count - 1;
  }
};

// Joins the plans of units, which have one PlanShape: blocks[b][s] is the unit in slot s of block
// b, or null. All blocks have equally many slots. An operator computes on the joined plan the same
// numbers for each unit as on the unit's own plan. The joined plan has no replicas. The states of a
// unit have one row more than on its own plan (JoinedUnits::none_state). Its
// needed_counts count all rows: to run the needed part of units, join these parts. The plan lacks
// the transposes of states, which only fused layers use. Throws Error if an index does not fit 32 bits.
std::shared_ptr<const Plan> join_plans(const std::vector<std::vector<const Plan*>>& blocks);

}  // namespace tpudist
