#include "train/loop/device_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/device_reducer.hpp"
#include "train/loop/step_side.hpp"

namespace tpudist {

std::string DeviceBytes::text() const {
  return fmt::format(
      "{} of parameters, moments and averages, {} of gradients ({} rows), {} of sums",
      format_bytes(weights), format_bytes(gradients), rows, format_bytes(sums));
}

DeviceBytes device_bytes(const TrainingSetup& setup, int ranks) {
  const Experiment& experiment = setup.experiment;
  const int members = experiment.ensemble.members;
  const bool averages = experiment.train.average.kind != AverageKind::none;
  const std::int64_t row = setup.network.parameters().length() + kRowExtra;
  const std::vector<int> owners = setup.planner.plan(0).owners.owner;
  const std::int64_t all = std::ranges::count_if(owners, [](int owner) { return owner >= 0; });
  DeviceBytes bytes;
  bytes.weights = DeviceWeights::bytes(setup.network.parameters(), members, averages ? 1 : 0);
  bytes.rows = (all + ranks - 1) / ranks;
  // In the tree of several ranks: the rows, their slices, those of all ranks' rows; the sums, the
  // own slice of them and all slices.
  const bool exchanges = ranks > 1 && experiment.dist.reduce != ReduceMode::all_reduce;
  const std::int64_t slice = exchanges ? DeviceReducer::slice_of(row, ranks) : 0;
  bytes.gradients =
      static_cast<std::uint64_t>(bytes.rows * (row + 2 * ranks * slice)) * sizeof(float);
  bytes.sums = static_cast<std::uint64_t>(members * (row + (ranks + 1) * slice)) * sizeof(float);
  return bytes;
}

std::string device_memory_fault(const DeviceBytes& bytes, std::uint64_t memory) {
  if (bytes.total() <= memory) return "";
  return fmt::format(
      "the training needs {} of GPU memory ({}) and the GPU has {}: train fewer members "
      "(ensemble.members) or slates (batch.slates) at a time, or on more GPUs",
      format_bytes(bytes.total()), bytes.text(), format_bytes(memory));
}

void require_device_memory(const TrainingSetup& setup, const JobContext& context) {
  if (!setup.network.device()) return;
  const std::vector<Device> devices = visible_devices().devices;
  const auto own = static_cast<std::size_t>(context.place.device);
  if (own >= devices.size()) return;  // an emulated one
  const std::string fault =
      device_memory_fault(device_bytes(setup, context.world.size()), devices[own].memory);
  if (!fault.empty()) throw ConfigError(fault);
}

}  // namespace tpudist
