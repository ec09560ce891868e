// Mistakes of order that the fake must find: each small program is right, or has one mistake.

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <nccl.h>

#include <atomic>
#include <thread>
#include <vector>

#include "dist/collectives/cuda_check.hpp"
#include "dist/collectives/device_memory.hpp"
#include "tests/dist/fake_cuda/fake_job.hpp"
#include "tests/support/expected_fault.hpp"

namespace tpudist {
namespace {

constexpr int kCount = 8;
constexpr double kPatience = 0.1;  // seconds
constexpr std::size_t kBytes = kCount * sizeof(float);

__global__ void add(float* to, const float* from) {
  for (int i = 0; i < kCount; ++i) to[i] += from[i];
}

void launch_add(float* to, const float* from, cudaStream_t stream) {
  TPUDIST_LAUNCH(add, dim3(1), dim3(1), stream, to, from);
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return stream;
}

// A program of one rank: a page-locked array, two arrays of the device and a second stream.
struct Program {
  DeviceBuffer host = DeviceBuffer::page_locked(kBytes), out = DeviceBuffer::page_locked(kBytes);
  DeviceBuffer a{kBytes}, b{kBytes};
  cudaStream_t side = new_stream();
  cudaEvent_t event = nullptr;

  Program() {
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
    fill(1);
  }

  float* at(const DeviceBuffer& buffer) { return buffer.as<float>().data(); }
  void fill(float value) { std::ranges::fill(host.as<float>(), value); }
  void upload(const DeviceBuffer& to, cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(at(to), at(host), kBytes, cudaMemcpyDefault, stream), "copy");
  }
  void download(const DeviceBuffer& from) {
    check_cuda(cudaMemcpyAsync(at(out), at(from), kBytes, cudaMemcpyDefault, cudaStreamLegacy),
               "copy");
  }
  void finish() { finish_default_stream("copy", kPatience); }
  // The default stream waits for the side stream.
  void join(cudaStream_t recorded_on) {
    check_cuda(cudaEventRecord(event, recorded_on), "record");
    check_cuda(cudaStreamWaitEvent(cudaStreamLegacy, event, 0), "wait");
  }
  float result(const DeviceBuffer& from, bool waits = true) {
    download(from);
    if (waits) finish();
    return out.as<float>()[kCount - 1];
  }
};

// Whether a run of any schedule gave another value than `expected`, or made a mistake.
template <typename Body>
bool found(float expected, const Body& body, int ranks = 1) {
  bool any = false;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::atomic<bool> wrong = false;
    const auto schedule = static_cast<fake::Schedule>(seed % 3);
    const fake::JobResult result = fake::run_job({ranks, schedule, seed}, [&](Communicator& world) {
      if (body(world) != expected) wrong = true;
    });
    any = any || wrong || !result.mistakes.empty() || !result.errors.empty();
  }
  return any;
}

// `body(planted)` must give `expected`, unless the mistake is planted.
template <typename Body>
void expect_found(float expected, const Body& body) {
  EXPECT_FALSE(found(expected, [&](Communicator&) { return body(false); }));
  EXPECT_TRUE(found(expected, [&](Communicator&) { return body(true); }));
}

TEST(Order, AnEventLeftOut) {
  expect_found(2, [](bool planted) {
    Program p;
    p.upload(p.a, p.side);
    p.upload(p.b, p.side);
    if (!planted) p.join(p.side);
    launch_add(p.at(p.a), p.at(p.b), cudaStreamLegacy);
    return p.result(p.a);
  });
}

TEST(Order, AnEventOnTheWrongStream) {
  expect_found(1, [](bool planted) {
    Program p;
    p.upload(p.a, p.side);
    p.join(planted ? cudaStreamLegacy : p.side);
    return p.result(p.a);
  });
}

TEST(Order, AnEventRecordedTooEarly) {
  expect_found(1, [](bool planted) {
    Program p;
    if (planted) p.join(p.side);
    p.upload(p.a, p.side);
    if (!planted) p.join(p.side);
    return p.result(p.a);
  });
}

TEST(Order, AHostThatReadsBeforeItsWait) {
  expect_found(1, [](bool planted) {
    Program p;
    p.upload(p.a, cudaStreamLegacy);
    return p.result(p.a, !planted);
  });
}

TEST(Order, StagingThatIsUsedAgainTooEarly) {
  expect_found(1, [](bool planted) {
    Program p;
    p.upload(p.a, cudaStreamLegacy);
    if (!planted) p.finish();
    p.fill(7);
    return p.result(p.a);
  });
}

TEST(Order, StagingThatIsFreedTooEarly) {
  expect_found(1, [](bool planted) {
    Program p;
    {
      const DeviceBuffer staging = DeviceBuffer::page_locked(kBytes);
      std::ranges::fill(staging.as<float>(), 1.0f);
      check_cuda(
          cudaMemcpyAsync(p.at(p.a), p.at(staging), kBytes, cudaMemcpyDefault, cudaStreamLegacy),
          "copy");
      if (!planted) p.finish();
    }
    return p.result(p.a);
  });
}

TEST(Order, DeviceMemoryThatIsFreedTooEarly) {
  expect_found(1, [](bool planted) {
    Program p;
    {
      const DeviceBuffer other(kBytes);
      p.upload(other, cudaStreamLegacy);
      p.download(other);
      if (!planted) p.finish();
    }
    p.finish();
    return p.out.as<float>()[0];
  });
}

TEST(Order, DeviceMemoryThatNobodyHasWritten) {
  expect_found(2, [](bool planted) {
    Program p;
    p.upload(p.a, cudaStreamLegacy);
    if (!planted) p.upload(p.b, cudaStreamLegacy);
    launch_add(p.at(p.a), p.at(p.b), cudaStreamLegacy);
    return p.result(p.a);
  });
}

TEST(Order, PageableMemoryInAnAsynchronousCopy) {
  expect_found(1, [](bool planted) {
    Program p;
    std::vector<float> pageable(kCount, 1.0f);
    check_cuda(cudaMemcpyAsync(p.at(p.a), planted ? pageable.data() : p.at(p.host), kBytes,
                               cudaMemcpyDefault, cudaStreamLegacy),
               "copy");
    return p.result(p.a);
  });
}

TEST(Order, ACopyBeyondItsMemory) {
  expect_found(1, [](bool planted) {
    Program p;
    check_cuda(cudaMemcpyAsync(p.at(p.a) + (planted ? 1 : 0), p.at(p.host), kBytes,
                               cudaMemcpyDefault, cudaStreamLegacy),
               "copy");
    return p.result(p.a);
  });
}

TEST(Order, ACallAfterOneThatHasFailed) {
  const auto program = [](bool goes_on) {
    return fake::run_job({1, fake::Schedule::early, 1, {fake::Fault::Kind::error, 0, 3}},
                         [&](Communicator&) {
                           for (int i = 0; i < 5; ++i) {
                             if (cudaSetDevice(0) != cudaSuccess && !goes_on) return;
                           }
                         });
  };
  EXPECT_TRUE(program(false).mistakes.empty());
  EXPECT_FALSE(program(true).mistakes.empty());
}

TEST(OrderDeathTest, AHostThatTouchesDeviceMemory) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  TPUDIST_EXPECT_FAULT(fake::run_job({1},
                                     [](Communicator&) {
                                       const DeviceBuffer row(kBytes);
                                       row.as<float>()[0] = 1;
                                     }),
                       "");
}

// With NCCL, on two ranks, each with a device.

struct Sum {
  bool forgets_device = false, blocks = false, does_not_poll = false, other_stream = false,
       other_size = false, destroys_at_once = false;
};

// The sum of 1 over the ranks.
float sum_over_ranks(Communicator& world, const Sum& plan) {
  if (!plan.forgets_device) check_cuda(cudaSetDevice(world.rank()), "device");
  ncclUniqueId id{};
  if (world.rank() == 0) ncclGetUniqueId(&id);
  world.broadcast(std::span<char>(id.internal), 0);
  ncclComm_t comm = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = plan.blocks ? 1 : 0;
  ncclCommInitRankConfig(&comm, world.size(), id, world.rank(), &config);
  const auto finish = [&] {
    poll("NCCL", kPatience, [&] {
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(comm, &state);
      return state == ncclSuccess;
    });
  };
  finish();
  float sum = 0;
  {
    Program p;
    p.upload(p.a, plan.other_stream ? p.side : cudaStreamLegacy);
    const std::size_t count = plan.other_size && world.rank() == 1 ? kCount - 1 : kCount;
    ncclAllReduce(p.at(p.a), p.at(p.a), count, ncclFloat32, ncclSum, comm, cudaStreamLegacy);
    if (!plan.does_not_poll) finish();
    sum = p.result(p.a);
    finish();
    world.barrier();
  }
  if (!plan.destroys_at_once) {
    ncclCommFinalize(comm);
    finish();
  }
  ncclCommDestroy(comm);
  return sum;
}

bool found_in_sum(const Sum& plan) {
  return found(
      2, [&](Communicator& world) { return sum_over_ranks(world, plan); }, 2);
}

TEST(OrderOfNccl, EachMistakeIsFound) {
  EXPECT_FALSE(found_in_sum({}));
  const std::pair<const char*, Sum> mistakes[] = {
      {"a device that was not set", {.forgets_device = true}},
      {"a communicator that blocks", {.blocks = true}},
      {"a call that is still in progress", {.does_not_poll = true}},
      {"data of another stream", {.other_stream = true}},
      {"sizes that differ", {.other_size = true}},
      {"a communicator that is not finalized", {.destroys_at_once = true}}};
  for (const auto& [what, plan] : mistakes) EXPECT_TRUE(found_in_sum(plan)) << what;
}

}  // namespace
}  // namespace tpudist
