// What a training step asks of NCCL, by itself: sums the leaves of all ranks on their GPUs in one
// order, so that the hash it prints is the same for any number of ranks up to six.
//
//   [mpirun -np 3] nccl_check FOLDER [TIMEOUT [wrong]]
//
// FOLDER: where ranks exchange their statuses. TIMEOUT: dist.timeout in seconds. `wrong`: gives NCCL
// memory of the host, which must end the job with NCCL's text (NCCL_CHECK_POINTERS=1).
// tests/dist/fake_cuda has the same program on fake GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/hash.hpp"
#include "dist/collectives/cuda_check.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "launch/program/exit_code.hpp"
#include "launch/program/job.hpp"
#include "models/kernels/flat_launches.hpp"

namespace tpudist {
namespace {

constexpr std::int64_t kLeaves = 6, kLength = 600;
constexpr int kSteps = 3;
constexpr std::size_t kFloat = sizeof(float);

DeviceBuffer floats_of(std::int64_t count) {
  return DeviceBuffer(static_cast<std::size_t>(count) * kFloat);
}

// Leaves are dealt out in blocks, in the order of ranks.
std::int64_t first_leaf(int rank, int ranks) {
  return rank * kLeaves / ranks;
}

// The begin of the additions, the slot of the sum, and the pairs of slots: 0 + 1, 0 + 2, ...
std::vector<std::int32_t> additions() {
  std::vector<std::int32_t> plan{0, kLeaves - 1, 0};
  for (std::int32_t leaf = 1; leaf < kLeaves; ++leaf) plan.insert(plan.end(), {0, leaf});
  return plan;
}

// Fills the own leaves, sends their slices to the ranks, adds all leaves of the own slice, gathers
// the sums and copies them to the host. Returns the hash of them.
std::uint64_t reduce(Communicator& nccl, int step, double timeout) {
  const int rank = nccl.rank(), ranks = nccl.size();
  const std::int64_t own = first_leaf(rank + 1, ranks) - first_leaf(rank, ranks),
                     slice = kLength / ranks;
  const DeviceBuffer rows = DeviceBuffer::page_locked(static_cast<std::size_t>(own * kLength) *
                                                      kFloat),
                     result = DeviceBuffer::page_locked(kLength * kFloat),
                     sent = floats_of(own * kLength), leaves = floats_of(kLeaves * slice),
                     sums = floats_of(slice), all = floats_of(kLength);
  const std::span<float> row = rows.as<float>();
  for (std::int64_t i = 0; i < own * kLength; ++i) {
    const std::int64_t key = (first_leaf(rank, ranks) * kLength + i) * 31 + step;
    row[static_cast<std::size_t>(i)] = 1.0f / static_cast<float>(1 + key % 97);
  }
  std::vector<std::int64_t> give, take;
  for (int r = 0; r < ranks; ++r) {
    give.push_back(own * slice);
    take.push_back((first_leaf(r + 1, ranks) - first_leaf(r, ranks)) * slice);
    check_cuda(
        cudaMemcpy2DAsync(sent.as<float>().data() + r * own * slice, slice * kFloat,
                          row.data() + r * slice, kLength * kFloat, slice * kFloat,
                          static_cast<std::size_t>(own), cudaMemcpyDefault, cudaStreamLegacy),
        "cudaMemcpy2DAsync");
  }
  nccl.all_to_all(std::span<const float>(sent.as<float>()), give, leaves.as<float>(), take);
  const std::vector<std::int32_t> order = additions();
  const std::size_t bytes = order.size() * sizeof(std::int32_t);
  const DeviceBuffer staged = DeviceBuffer::page_locked(bytes), plan(bytes);
  std::ranges::copy(order, staged.as<std::int32_t>().begin());
  check_cuda(cudaMemcpyAsync(plan.as<std::int32_t>().data(), staged.as<std::int32_t>().data(),
                             bytes, cudaMemcpyHostToDevice, cudaStreamLegacy),
             "cudaMemcpyAsync");
  launch_leaf_sums(1, slice, plan.as<std::int32_t>().data(), leaves.as<float>().data(),
                   sums.as<float>().data(), nullptr);
  nccl.all_gather(std::span<const float>(sums.as<float>()), all.as<float>(),
                  std::vector<std::int64_t>(static_cast<std::size_t>(ranks), slice));
  check_cuda(cudaMemcpyAsync(result.as<float>().data(), all.as<float>().data(), kLength * kFloat,
                             cudaMemcpyDeviceToHost, cudaStreamLegacy),
             "cudaMemcpyAsync");
  finish_default_stream("the copy of the sums", timeout);
  return hash64(std::as_bytes(result.as<float>()));
}

void check_nccl(JobContext& context, const char* folder, double timeout, bool wrong) {
  context.watchdog->watch(folder, context.world.rank(), context.world.size());
  context.enter("sums");
  const auto nccl = make_nccl_communicator(context.world, context.topology.device,
                                           &context.watchdog->activity(), timeout);
  const DeviceBuffer row = floats_of(64);
  nccl->all_reduce(row.as<float>(), ReduceOp::sum);
  nccl->broadcast(row.as<float>(), 0);
  if (wrong) {
    std::vector<float> on_the_host(64);
    nccl->all_reduce(std::span<float>(on_the_host), ReduceOp::sum);
  }
  Hasher hasher;
  for (int step = 0; step < kSteps; ++step) hasher.update(reduce(*nccl, step, timeout));
  if (context.world.rank() == 0) fmt::print("sums: {}\n", to_hex(hasher.digest()));
  context.watchdog->leave();
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: nccl_check FOLDER [TIMEOUT [wrong]]\n");
    return 2;
  }
  const double timeout = argc > 2 ? std::atof(argv[2]) : 20;
  try {
    tpudist::run_job({.device = "cuda", .threads = 1, .timeout = timeout},
                     [&](tpudist::JobContext& context) {
                       tpudist::check_nccl(context, argv[1], timeout, argc > 3);
                     });
  } catch (const std::exception& error) {
    return tpudist::print_failure(tpudist::describe_failure(error));
  }
  return 0;
}
