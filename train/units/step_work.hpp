#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/thread_pool.hpp"
#include "core/trace.hpp"
#include "train/units/batch_plan.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// A piece of work of one rank: one unit for some consecutive members.
struct UnitPass {
  int unit = 0, first_member = 0, members = 0;
  std::shared_ptr<const Unit> data;
};

// Units of one rank that its device computes in one pass, with the members that learn from them.
struct JoinedPass {
  std::vector<int> members;                       // [M], ascending
  std::vector<int> unit;                          // [M * slots]; -1: no leaf of this rank
  std::vector<std::shared_ptr<const Unit>> data;  // [M * slots]; null where there is no unit
  UnitInput input;                                // of Network::join
};

// The work of one rank in one step, with everything read and planned.
struct StepWork {
  BatchPlan batch;
  std::vector<UnitPass> passes;
  // The same work in as few passes as possible, where the device joins units. Only units in chunks
  // stay apart.
  std::vector<JoinedPass> joined;
  double work = 0;                            // of this rank (BatchPlanner::rank_work)
  double read_seconds = 0, plan_seconds = 0;  // to read slates and to plan units, of all threads
};

// Whether all members learn from the same slates. If not, each draws its rows of the same graphs.
bool shares_slates(const Experiment& experiment);

// The permutation of a graph's rows (SlateOrder::rows) that member `member` of this run uses: -1
// for the shared permutation, else the member's number.
int drawn_by(const Experiment& experiment, int member);

// Whether the members of a joined pass share a block, and so compute all of its units: if one of
// them learns from nearly all. `most`, `all`: rows (or work) of the member with most, and of all units.
// Otherwise each member has a block of its own, filled up to `most`.
bool share_a_block(double most, double all);

// The bytes of passes when they are joined: members share a block, or all blocks are filled up to the
// largest.
class JoinedBytes {
 public:
  // `leaf`: of one member (Network::leaf_bytes).
  void add(const UnitPass& pass, double leaf);
  double total() const;
  bool shares_block() const;

 private:
  struct Leaves {
    double bytes = 0, rows = 0;
  };
  Leaves most() const;  // of a member

  std::map<int, Leaves> of_member_;
  std::set<const Unit*> units_;
  Leaves all_;
};

// The slates of a unit, borrowed from the batch.
std::span<const SlateId> slates_of_unit(const BatchPlan& batch, int unit);

// The rows of a unit's slates, from the permutation of `drawn_by`.
std::vector<SlateRows> rows_of_unit(const BatchPlan& batch, const SlateOrder& order, int unit,
                                    int drawn_by);

// Prepares this rank's share of steps. Units are joined as long as the pass takes at most
// `most_pass_bytes` (JoinedBytes). Thread-safe: the prefetcher's threads call it.
class StepBuilder {
 public:
  StepBuilder(const Experiment& experiment, const BatchPlanner& planner, const SlateOrder& order,
              const UnitBuilder& units, ThreadPool& pool, int rank,
              double most_pass_bytes = std::numeric_limits<double>::infinity());
  // Reads and plans this rank's units of a step, for the members of this run with training[m]. The
  // pool's threads take whole units; the result does not depend on the number of threads. Calls
  // `on_unit` after each unit, in any thread; `trace` may be null. Throws DataError or IoError when
  // reading fails.
  StepWork build(std::int64_t step, const std::vector<bool>& training,
                 const std::function<void()>& on_unit = {}, Trace* trace = nullptr) const;
  StepWork build(std::int64_t step) const;  // for all members

 private:
  // A unit for members that share rows; `member` is the first of these members on this rank.
  struct OwnUnit {
    int unit = 0, member = 0;
    std::shared_ptr<const Unit> data;
  };
  std::vector<OwnUnit> own_units(const BatchPlan& batch) const;
  std::shared_ptr<const Unit> build_unit(const BatchPlan& batch, const OwnUnit& own,
                                         Trace* trace) const;
  void add_passes(StepWork& work, const OwnUnit& own) const;
  void join_passes(StepWork& work) const;
  JoinedPass joined(std::span<const UnitPass> passes) const;

  const Experiment& experiment_;
  const BatchPlanner& planner_;
  const SlateOrder& order_;
  const UnitBuilder& units_;
  ThreadPool& pool_;
  int rank_;
  double most_pass_bytes_;
};

}  // namespace tpudist
