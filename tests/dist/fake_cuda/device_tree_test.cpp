#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/collectives/cuda_check.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/device_reducer.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "models/kernels/flat_launches.hpp"
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

// A hash of the sums of all steps. A row's last value comes by itself.
std::uint64_t reduce_on_host(GradientReducer& reducer, int members) {
  Hasher hasher;
  for (int step = 0; step < kSteps; ++step) {
    const LeafOwners owners = owners_of(step, members, 1, 0);
    reducer.begin(owners);
    for (int i = 0; i < members * kLeaves; ++i) {
      if (owners.owner[i] == 0)
        reducer.add(i / kLeaves, i % kLeaves, leaf_row(step, i / kLeaves, i % kLeaves));
    }
    hasher.update(reducer.finalize());
  }
  return hasher.digest();
}

// A device of the fake. It keeps all memory to its end: work that is queued may still use it.
class FakeDevice final : public ReducingDevice {
 public:
  explicit FakeDevice(double timeout) : timeout_(timeout) {}

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    return {memory_.emplace_back(bytes).as<char>().data(), [](void*) {}};
  }
  void upload(const void* from, std::size_t bytes, void* to) override {
    char* const staging = memory_.emplace_back(DeviceBuffer::page_locked(bytes)).as<char>().data();
    std::memcpy(staging, from, bytes);
    copy(to, staging, bytes);
  }
  std::vector<float> download(const float* from, std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    if (bytes == 0) return {};
    const std::span staging = memory_.emplace_back(DeviceBuffer::page_locked(bytes)).as<float>();
    copy(staging.data(), from, bytes);
    finish_default_stream("the copy of the sums", timeout_);
    return {staging.begin(), staging.end()};
  }
  void put_values(std::int64_t count, const std::int32_t* row_of, const float* values,
                  std::int64_t length, std::int64_t at, float* rows) override {
    queue([=] { launch_put_values(count, row_of, values, length, at, rows, nullptr); });
  }
  void rows_to_slices(std::int64_t count, std::int64_t length, int ranks, std::int64_t slice,
                      const std::int32_t* row_of, const float* rows, float* slices) override {
    queue(
        [=] { launch_rows_to_slices(count, length, ranks, slice, row_of, rows, slices, nullptr); });
  }
  void slices_to_rows(std::int64_t count, std::int64_t length, std::int64_t slice,
                      const float* slices, float* rows) override {
    queue([=] { launch_slices_to_rows(count, length, slice, slices, rows, nullptr); });
  }
  void add_leaves(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                  float* sums) override {
    queue([=] { launch_leaf_sums(members, length, plan, leaves, sums, nullptr); });
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamLegacy),
               "cudaMemcpyAsync");
  }
  static void queue(std::function<void()> kernel) {
    fake::queue_kernel(nullptr, std::move(kernel));
    if (cudaGetLastError() != cudaSuccess) {
      leave_device();
      throw DistError("CUDA refused a kernel");
    }
  }

  const double timeout_;
  std::deque<DeviceBuffer> memory_;
};

// The same on the device; rows lie in another order than their leaves, with one in between that is
// nobody's.
std::uint64_t reduce_on_device(Communicator& world, Communicator* nccl, DeviceReducer::Order order,
                               int members, std::uint64_t seed, double timeout) {
  FakeDevice device(timeout);
  DeviceReducer reducer(world, nccl, device, order, kLength, kLength - 1);
  Hasher hasher;
  for (int step = 0; step < kSteps; ++step) {
    const LeafOwners owners = owners_of(step, members, world.size(), seed);
    reducer.begin(owners);
    std::vector<float> rows(kLength);
    for (int i = members * kLeaves - 1; i >= 0; --i) {
      if (owners.owner[i] != world.rank()) continue;
      const std::vector<float> row = leaf_row(step, i / kLeaves, i % kLeaves);
      reducer.add(i / kLeaves, i % kLeaves, static_cast<int>(std::ssize(rows) / kLength),
                  row.back());
      rows.insert(rows.end(), row.begin(), row.end() - 1);
      rows.push_back(0);
    }
    const auto memory = device.allocate(rows.size() * sizeof(float));
    device.upload(rows.data(), rows.size() * sizeof(float), memory.get());
    const float* const sums = reducer.finalize(static_cast<float*>(memory.get()));
    hasher.update(std::span<const float>(device.download(sums, members * kLength)));
  }
  EXPECT_GT(reducer.bytes_sent() + (world.size() == 1), 0);
  return hasher.digest();
}

struct Job {
  int ranks = 1, members = 1;
  std::uint64_t seed = 0;
  double timeout = 0;
  Fault fault = {};
  DeviceReducer::Order order = DeviceReducer::Order::tree;
};

// The job, and the hashes of all ranks.
JobResult reduce_on_devices(const Job& job, std::set<std::uint64_t>& hashes) {
  std::mutex mutex;
  return fake::run_job({job.ranks, static_cast<Schedule>(job.seed % 3), job.seed, job.fault},
                       [&](Communicator& world) {
                         std::unique_ptr<Communicator> nccl;
                         if (job.ranks > 1) {
                           nccl = make_nccl_communicator(world, world.rank(), nullptr, job.timeout);
                         }
                         const std::uint64_t hash = reduce_on_device(
                             world, nccl.get(), job.order, job.members, job.seed, job.timeout);
                         const std::lock_guard lock(mutex);
                         hashes.insert(hash);
                       });
}

TEST(DeviceTree, HasTheBitsOfTheHostTreeForAnyNumberOfRanks) {
  ThreadPool pool(1);
  for (const int members : {1, 5}) {
    const auto host = make_self_communicator();
    const auto reducer = make_tree_reducer(*host, kLength, pool);
    const std::uint64_t expected = reduce_on_host(*reducer, members);
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

// One hash on all ranks.
TEST(DeviceTree, InTheOrderOfRanksAllHaveTheSameSums) {
  for (const int ranks : {1, 2, 5}) {
    std::set<std::uint64_t> of_one;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      std::set<std::uint64_t> hashes;
      const JobResult result = reduce_on_devices(
          {.ranks = ranks, .members = 3, .seed = seed, .order = DeviceReducer::Order::ranks},
          hashes);
      EXPECT_THAT(result.errors, IsEmpty());
      EXPECT_THAT(result.mistakes, IsEmpty());
      EXPECT_EQ(hashes.size(), 1);
      of_one.insert(hashes.begin(), hashes.end());
    }
    if (ranks == 1) EXPECT_EQ(of_one.size(), 1);
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

// 301 elements in three equal slices: else NCCL would need a send to each rank.
TEST(DeviceTree, GathersSumsByOneCallOfNccl) {
  Job job{.ranks = 3, .members = 2};
  job.fault = {Fault::Kind::error, 1, 1, "ncclAllGather"};
  std::set<std::uint64_t> hashes;
  EXPECT_EQ(reduce_on_devices(job, hashes).faulted, "ncclAllGather");
}

TEST(DeviceTree, AMissingLeafIsAnErrorOnAllRanks) {
  const JobResult result = fake::run_job({2}, [](Communicator& world) {
    const auto nccl = make_nccl_communicator(world, world.rank());
    FakeDevice device(0);
    DeviceReducer reducer(world, nccl.get(), device, DeviceReducer::Order::tree, 3, 2);
    reducer.begin({1, 2, {0, 1}});
    const auto rows = device.allocate(3 * sizeof(float));
    if (world.rank() == 0) reducer.add(0, 0, 0, 1);
    reducer.finalize(static_cast<float*>(rows.get()));
  });
  ASSERT_EQ(result.errors.size(), 2);
  for (const std::string& error : result.errors)
    EXPECT_THAT(error, testing::HasSubstr("leaf 1 of member 0 was not added by its rank 1"));
}

}  // namespace
}  // namespace tpudist
