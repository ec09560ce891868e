#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "core/error.hpp"
#include "core/parameters/parameter_table.hpp"
#include "core/thread_pool.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/network/call_values.hpp"
#include "models/network/device_context.hpp"
#include "models/network/network_config.hpp"
#include "models/operators/device_copies.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The parameters of one call: members first .. first + count - 1 of the flat parameters [M, P].
struct MemberRange {
  std::span<const float> flat;
  int first = 0, count = 0;
  // [members of `flat`] the keys from which their dropout is drawn; empty: nothing is dropped.
  std::span<const std::uint64_t> dropout_keys = {};
  // A copy of `flat` from place(); null: the call makes its own if it needs one.
  const PlacedParameters* placed = nullptr;
};

// Computes the scores and gradients of a network: by layers that autograd differentiates
// (make_composed_executor), or by fused layers on the CPU (make_fused_executor). Both take dense
// and refined plans. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  // Returns what layers need of the unit (UnitInput::prepared); null where they need nothing.
  virtual std::shared_ptr<const PreparedUnit> prepare(const UnitInput&) const { return nullptr; }
  // As Network::place and Network::device; null on the CPU.
  virtual std::shared_ptr<const PlacedParameters> place(std::span<const float>) const {
    return nullptr;
  }
  virtual DeviceCopies* device() const { return nullptr; }
  // How many members a call on this plan should take, for the least time per member.
  virtual int members_together(const Plan&) const { return std::numeric_limits<int>::max(); }
  virtual UnitScores scores(const MemberRange& members, const UnitInput& input) const = 0;
  virtual void gradient(const MemberRange& members, const UnitInput& input,
                        const LossGradient& loss_gradient, const GradientRows& gradients,
                        bool common) const = 0;
  // The gradient of joined units.
  virtual void gradient(const MemberRange&, const std::vector<int>&, const UnitInput&,
                        const LossGradient&, const GradientRows&) const {
    throw Error(ErrorKind::failed, "only a device joins units");
  }
};

// Makes the executor of networks of fused layers on the CPU (models/network/fused_pass.hpp). With
// `recompute` it keeps the states of only every other layer. `pool` must outlive it.
std::unique_ptr<Executor> make_fused_executor(const NetworkConfig& config,
                                              const FeatureSchema& schema,
                                              const ParameterTable& table, bool recompute,
                                              ThreadPool& pool);

// Makes the executor of composed networks. On the CPU it computes one member at a time; the
// operators split their blocks of rows over the threads of the pool. On a device it computes all
// members of a call together. With `recompute` it keeps only the states between the blocks; the
// backward pass runs each block again. `pool` must outlive it.
std::unique_ptr<Executor> make_composed_executor(const NetworkConfig& config,
                                                 const FeatureSchema& schema, bool recompute,
                                                 ThreadPool& pool,
                                                 const DeviceContext& context = {});

// The parameters of a composed network.
ParameterTable composed_parameters(const NetworkConfig& config, const FeatureSchema& schema);

}  // namespace tpudist
