#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "core/thread_pool.hpp"
#include "models/network.hpp"
#include "models/network_layout.hpp"

namespace tpudist {

// Members first .. first + count - 1 of the flat parameters [M, P] of one unit's call.
struct MemberRange {
  std::span<const float> flat;
  int first = 0, count = 0;
};

// How a network computes: two implementations of the same formulas, on plans of any kind.
// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  // What the device keeps of a graph (GraphInput::device); null where there is no need.
  virtual std::shared_ptr<const void> upload(const GraphInput&) const { return nullptr; }
  // The unit's arrays as they go over to the device (UnitInput::staged); null likewise.
  virtual std::shared_ptr<const void> stage(const UnitInput&) const { return nullptr; }
  // Members of a call on this plan with which it takes the least time each.
  virtual int members_together(const Plan&) const { return std::numeric_limits<int>::max(); }
  virtual UnitScores scores(const MemberRange& members, const UnitInput& input) const = 0;
  virtual void gradient(const MemberRange& members, const UnitInput& input,
                        const Network::LossGradient& loss_gradient,
                        std::span<const std::span<float>> gradients, bool common) const = 0;
};

// Own row-block kernels and BLAS on the CPU. `layout` and `pool` must outlive it.
std::unique_ptr<Executor> make_cpu_executor(const NetworkLayout& layout, double output_scale,
                                            bool recompute, ThreadPool& pool);

// ATen operators on a device; -1 = CPU (for tests). One member after the other. `replay`: as
// NetworkOptions. `layout` must outlive it.
std::unique_ptr<Executor> make_aten_executor(const NetworkLayout& layout, double output_scale,
                                             int device_index, bool replay = false);

// Throws Error where plan, graphs, states, parameters and layers of a call do not fit together.
void check_call(const NetworkLayout& layout, const MemberRange& members, const UnitInput& input);

// Throws Error unless the loss gave one number for each score.
void check_score_gradient(const UnitScores& scores, const ScoreGradient& gradient);

// Sums the values of the last layer's rows over each configuration and over the common rows, times
// `scale`: one member's part of the scores, in double and in the order of the plan. Where only the
// needed rows' values are given, `common` is 0.
void pool_scores(const Readout& readout, std::span<const double> values, double scale,
                 std::span<double> delta, std::span<double> common);
// The transpose in two parts: d loss / d cell [cells] and d loss / d common sum [slates] from
// d loss / d score [configs], then d loss / d value of rows first .. first + gradient.size() - 1.
struct CellGradient {
  std::vector<double> cell, slate;
};
CellGradient spread_to_cells(const Readout& readout, std::span<const double> score_gradient,
                             double scale);
void spread_to_rows(const Readout& readout, const CellGradient& gradient, std::int64_t first,
                    std::span<float> rows);

}  // namespace tpudist
