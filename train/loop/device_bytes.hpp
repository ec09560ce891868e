#pragma once

#include <cstdint>
#include <string>

#include "dist/health/job_context.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// What a training keeps in the memory of a rank's GPU from step to step, in bytes.
struct DeviceBytes {
  std::uint64_t weights = 0;    // parameters, moments, averages
  std::uint64_t gradients = 0;  // of a step's units and members; with several ranks also as slices
  std::uint64_t sums = 0;       // of gradients
  std::int64_t rows = 0;        // of gradients
  std::uint64_t total() const { return weights + gradients + sums; }
  std::string text() const;
};

// For a rank that has its share of the rows; a rank with more keeps more.
DeviceBytes device_bytes(const TrainingSetup& setup, int ranks);

// "" where they fit into the memory of a GPU, else what is wrong and what helps.
std::string device_memory_fault(const DeviceBytes& bytes, std::uint64_t memory);

// Throws ConfigError if the network is on a GPU that has less memory.
void require_device_memory(const TrainingSetup& setup, const JobContext& context);

}  // namespace tpudist
