#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <cmath>
#include <mutex>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "dist/collectives/self_communicator.hpp"
#include "models/kernels/leaf_sums.hpp"
#include "tests/dist/fake_cuda/fake_job.hpp"

namespace tpudist {
namespace {

using fake::Fault;
using fake::JobResult;
using fake::Schedule;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int kLeaves = 11, kSteps = 2;
constexpr std::int64_t kLength = 301;

// Sums depend on the order of addition.
std::vector<float> leaf_row(int step, int member, int leaf) {
  CounterRng rng(mix_key({1, std::uint64_t(step), std::uint64_t(member), std::uint64_t(leaf)}));
  std::vector<float> row(kLength);
  for (float& value : row)
    value = static_cast<float>(rng.normal() * std::pow(10.0, rng.uniform(-6, 6)));
  return row;
}

// Any rank may have any leaf; the same leaves are absent for any number of ranks, and all of one
// member in the last step.
LeafOwners owners_of(int step, int members, int ranks, std::uint64_t seed) {
  CounterRng absent(mix_key({2, std::uint64_t(step)})),
      rng(mix_key({3, seed, std::uint64_t(step)}));
  LeafOwners owners{members, kLeaves, {}};
  for (int i = 0; i < members * kLeaves; ++i) {
    const bool has = absent.uniform() < 0.8 && (step + 1 < kSteps || i / kLeaves != 1);
    owners.owner.push_back(has ? static_cast<int>(rng.below(std::uint64_t(ranks))) : -1);
  }
  return owners;
}

// A hash of the sums of all steps.
std::uint64_t reduce(GradientReducer& reducer, int rank, int ranks, int members,
                     std::uint64_t seed) {
  Hasher hasher;
  for (int step = 0; step < kSteps; ++step) {
    const LeafOwners owners = owners_of(step, members, ranks, seed);
    reducer.begin(owners);
    for (int i = 0; i < members * kLeaves; ++i) {
      if (owners.owner[i] == rank)
        reducer.add(i / kLeaves, i % kLeaves, leaf_row(step, i / kLeaves, i % kLeaves));
    }
    hasher.update(reducer.finalize());
  }
  return hasher.digest();
}

// The kernel on the default stream.
void add_leaves(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                float* sums) {
  fake::queue_kernel(nullptr,
                     [=] { launch_leaf_sums(members, length, plan, leaves, sums, nullptr); });
  if (cudaGetLastError() != cudaSuccess) throw DistError("CUDA refused a kernel");
}

struct Job {
  int ranks = 1, members = 1;
  std::uint64_t seed = 0;
  double timeout = 0;
  Fault fault = {};
};

// The job, and the hashes of all ranks.
JobResult reduce_on_devices(const Job& job, std::set<std::uint64_t>& hashes) {
  std::mutex mutex;
  return fake::run_job({job.ranks, static_cast<Schedule>(job.seed % 3), job.seed, job.fault},
                       [&](Communicator& world) {
                         const auto nccl = make_nccl_communicator(
                             world, world.rank(), {.activity = nullptr, .timeout = job.timeout});
                         ThreadPool pool(1);
                         const auto reducer = make_device_tree_reducer(
                             {world, *nccl, world.rank(), add_leaves, job.timeout}, kLength, pool);
                         const std::uint64_t hash =
                             reduce(*reducer, world.rank(), job.ranks, job.members, job.seed);
                         EXPECT_GT(reducer->bytes_sent() + (job.ranks == 1), 0);
                         const std::lock_guard lock(mutex);
                         hashes.insert(hash);
                       });
}

TEST(DeviceTree, HasTheBitsOfTheHostTreeForAnyNumberOfRanks) {
  ThreadPool pool(1);
  for (const int members : {1, 5}) {
    const auto host = make_self_communicator();
    const auto reducer = make_tree_reducer(*host, kLength, pool);
    const std::uint64_t expected = reduce(*reducer, 0, 1, members, 0);
    for (const int ranks : {1, 2, 3, 4, 5, 8}) {
      std::set<std::uint64_t> hashes;
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const JobResult result = reduce_on_devices({ranks, members, seed}, hashes);
        EXPECT_THAT(result.errors, IsEmpty());
        EXPECT_THAT(result.mistakes, IsEmpty());
      }
      EXPECT_THAT(hashes, ElementsAre(expected)) << ranks << " ranks, " << members << " members";
    }
  }
}

TEST(DeviceTree, AnyFaultEndsTheJob) {
  const Job clean{.ranks = 2, .members = 2, .timeout = 0.1};
  std::set<std::uint64_t> hashes;
  const int calls = reduce_on_devices(clean, hashes).calls[1];
  const std::set<std::uint64_t> right = hashes;
  ASSERT_EQ(right.size(), 1);
  for (const auto kind : {Fault::Kind::error, Fault::Kind::async_error, Fault::Kind::stuck}) {
    for (int call = 1; call <= calls; call += kind == Fault::Kind::stuck ? 12 : 3) {
      Job job = clean;
      job.fault = {kind, 1, call};
      hashes.clear();
      const JobResult result = reduce_on_devices(job, hashes);
      SCOPED_TRACE(result.faulted);
      EXPECT_THAT(result.mistakes, IsEmpty());
      EXPECT_LT(result.seconds, 3);
      EXPECT_TRUE(std::ranges::includes(right, hashes));
      if (hashes.empty()) ASSERT_THAT(result.errors, Not(IsEmpty()));
      if (hashes.empty() && result.errors.size() == 1 && kind != Fault::Kind::stuck)
        EXPECT_THAT(result.errors[0], StartsWith("rank 1: "));
    }
  }
}

TEST(DeviceTree, AMissingLeafIsAnErrorOnAllRanks) {
  const JobResult result = fake::run_job({2}, [](Communicator& world) {
    const auto nccl = make_nccl_communicator(world, world.rank());
    ThreadPool pool(1);
    const auto reducer =
        make_device_tree_reducer({world, *nccl, world.rank(), add_leaves}, 3, pool);
    reducer->begin({1, 2, {0, 1}});
    if (world.rank() == 0) reducer->add(0, 0, std::vector<float>(3));
    reducer->finalize();
  });
  ASSERT_EQ(result.errors.size(), 2);
  for (const std::string& error : result.errors)
    EXPECT_THAT(error, testing::HasSubstr("leaf 1 of member 0 was not added by its rank 1"));
}

}  // namespace
}  // namespace tpudist
