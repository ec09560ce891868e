#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "core/thread_pool.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/network_layout.hpp"
#include "models/network/unit_scores.hpp"

namespace tpudist {

// Members first .. first + count - 1 of the flat parameters [M, P]: those of one call.
struct MemberRange {
  std::span<const float> flat;
  int first = 0, count = 0;
  // [members of `flat`] what their dropout is drawn by; empty: nothing is dropped.
  std::span<const std::uint64_t> dropout_keys = {};
};

// How a network computes: layer by layer, or the pass of plain SAGE layers on the CPU. Both take dense
// and refined plans. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  // Returns what layers need of the unit (UnitInput::prepared); null where there are none.
  virtual std::shared_ptr<const PreparedUnit> prepare(const UnitInput&) const { return nullptr; }
  // With how many members a call on this plan takes the least time for each.
  virtual int members_together(const Plan&) const { return std::numeric_limits<int>::max(); }
  virtual UnitScores scores(const MemberRange& members, const UnitInput& input) const = 0;
  virtual void gradient(const MemberRange& members, const UnitInput& input,
                        const LossGradient& loss_gradient,
                        std::span<const std::span<float>> gradients, bool common) const = 0;
};

// What a call must fit: the parameters of the network, and its plans' layers and states.
struct CallShape {
  std::int64_t parameters;  // P
  std::int64_t config_features;
  std::vector<std::size_t> edge_sets;  // [plan layers]
};

// Throws Error when plan, graphs, states, parameters and layers of a call do not fit together.
void check_call(const CallShape& shape, const MemberRange& members, const UnitInput& input);

// Throws Error unless the loss gave one number for each score.
void check_score_gradient(const UnitScores& scores, const ScoreGradient& gradient);

// Computes one member's scores from `values` [rows behind the last layer]: adds them up over each
// configuration (`delta` [configurations]) and over the common rows (`common` [slates]), times
// `scale`, in double and in the order of the plan. Where `values` holds the needed rows alone,
// `common` is 0.
void read_out_scores(const Readout& readout, std::span<const double> values, double scale,
                     std::span<double> delta, std::span<double> common);
// The transpose of read_out_scores in two parts. spread_to_cells gives d loss / d cell [cells] and
// d loss / d common sum [slates] from d loss / d score [configurations]. spread_to_rows gives from
// these d loss / d value of rows first .. first + rows.size() - 1.
struct CellGradient {
  std::vector<double> cell, slate;
};
CellGradient spread_to_cells(const Readout& readout, std::span<const double> score_gradient,
                             double scale);
void spread_to_rows(const Readout& readout, const CellGradient& gradient, std::int64_t first,
                    std::span<float> rows);

}  // namespace tpudist
