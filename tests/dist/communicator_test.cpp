#include "dist/collectives/communicator.hpp"

#include <gmock/gmock.h>
#include <mpi.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "core/error.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/mpi_communicator.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "dist/collectives/node_topology.hpp"
#include "dist/collectives/self_communicator.hpp"

namespace tpudist {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Counts = std::vector<std::int64_t>;

// Memory of the communicator's kind that can be read and written from the host.
template <typename T>
class Memory {
 public:
  Memory(const Communicator& communicator, std::vector<T> values)
      : on_device_(communicator.memory() == MemoryKind::device), host_(std::move(values)) {
    if (!on_device_ || host_.empty()) return;
    device_ = DeviceBuffer(host_.size() * sizeof(T));
    copy_device_bytes(device_.as<T>().data(), host_.data(), host_.size() * sizeof(T));
  }
  std::span<T> span() { return on_device_ ? device_.as<T>() : std::span<T>(host_); }
  std::vector<T> read() {
    if (on_device_ && !host_.empty()) {
      copy_device_bytes(host_.data(), device_.as<T>().data(), host_.size() * sizeof(T));
    }
    return host_;
  }

 private:
  bool on_device_;
  std::vector<T> host_;
  DeviceBuffer device_;
};

// The element that rank `from` sends to rank `to` as its i-th.
std::int64_t letter(int from, int to, std::int64_t i) {
  return (from * 100 + to) * 1000 + i;
}

// Uneven, and zero for some pairs.
std::int64_t letters(int from, int to) {
  return (3 * from + to + 1) % 5;
}

void check_broadcast(Communicator& c) {
  for (int root = 0; root < c.size(); ++root) {
    std::vector<int> values(17);
    std::iota(values.begin(), values.end(), 100 * c.rank());
    Memory<int> memory(c, values);
    c.broadcast(memory.span(), root);
    std::iota(values.begin(), values.end(), 100 * root);
    EXPECT_EQ(memory.read(), values);
  }
  c.broadcast(std::span<int>(), 0);
  EXPECT_THROW(c.broadcast(std::span<int>(), c.size()), DistError);
}

template <typename T>
void check_all_reduce(Communicator& c) {
  const T rank = static_cast<T>(c.rank()), last = static_cast<T>(c.size() - 1);
  const std::vector<T> values = {rank, 5 - rank, 2, 3, 4, 5, 6};
  const auto reduced = [&](ReduceOp op) {
    Memory<T> memory(c, values);
    c.all_reduce(memory.span(), op);
    return memory.read();
  };
  const T n = static_cast<T>(c.size());
  EXPECT_THAT(reduced(ReduceOp::sum),
              ElementsAre(n * last / 2, 5 * n - n * last / 2, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n));
  EXPECT_THAT(reduced(ReduceOp::min), ElementsAre(0, 5 - last, 2, 3, 4, 5, 6));
  EXPECT_THAT(reduced(ReduceOp::max), ElementsAre(last, 5, 2, 3, 4, 5, 6));
}

void check_all_to_all(Communicator& c, bool copy_own) {
  std::vector<std::int64_t> sent, expected;
  Counts send_counts, recv_counts;
  for (int rank = 0; rank < c.size(); ++rank) {
    send_counts.push_back(letters(c.rank(), rank));
    recv_counts.push_back(rank == c.rank() && !copy_own ? 0 : letters(rank, c.rank()));
    for (std::int64_t i = 0; i < send_counts.back(); ++i) sent.push_back(letter(c.rank(), rank, i));
    for (std::int64_t i = 0; i < recv_counts.back(); ++i) {
      expected.push_back(letter(rank, c.rank(), i));
    }
  }
  Memory<std::int64_t> send(c, sent), recv(c, std::vector<std::int64_t>(expected.size(), -1));
  c.all_to_all(std::span<const std::int64_t>(send.span()), send_counts, recv.span(), recv_counts);
  EXPECT_EQ(recv.read(), expected);
}

void check_all_gather(Communicator& c, const Counts& counts, bool in_place) {
  std::vector<std::int64_t> expected;
  std::int64_t begin = 0;
  for (int rank = 0; rank < c.size(); ++rank) {
    if (rank == c.rank()) begin = std::ssize(expected);
    for (std::int64_t i = 0; i < counts[rank]; ++i) expected.push_back(letter(rank, 0, i));
  }
  const std::vector<std::int64_t> own(expected.begin() + begin,
                                      expected.begin() + begin + counts[c.rank()]);
  std::vector<std::int64_t> blank(expected.size(), -1);
  if (in_place) std::copy(own.begin(), own.end(), blank.begin() + begin);
  Memory<std::int64_t> send(c, own), recv(c, blank);
  const std::span<const std::int64_t> source =
      in_place ? recv.span().subspan(begin, own.size()) : send.span();
  c.all_gather(source, recv.span(), counts);
  EXPECT_EQ(recv.read(), expected);
}

void check_all_calls(Communicator& c) {
  c.barrier();
  check_broadcast(c);
  check_all_reduce<float>(c);
  check_all_reduce<double>(c);
  check_all_reduce<std::int64_t>(c);
  check_all_to_all(c, true);
  check_all_to_all(c, false);
  Counts uneven;
  for (int rank = 0; rank < c.size(); ++rank) uneven.push_back((rank + 2) % 3);
  for (const Counts& counts : {uneven, Counts(c.size(), 4), Counts(c.size(), 0)}) {
    check_all_gather(c, counts, false);
    check_all_gather(c, counts, true);
  }
}

// A communicator over all ranks that cuts what it sends into pieces of three.
std::unique_ptr<Communicator> world_in_small_pieces() {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return std::make_unique<MpiComm>(MpiHandle(copy), 3);
}

class MpiTest : public ::testing::Test {
 protected:
  MpiSession session_{nullptr, nullptr};
  std::unique_ptr<Communicator> world_ = session_.world();
};

TEST(SelfCommTest, DoesAllCalls) {
  const auto self = make_self_communicator();
  EXPECT_EQ(self->name(), "self");
  EXPECT_EQ(self->memory(), MemoryKind::host);
  check_all_calls(*self);
  check_all_calls(*self->split(3));
}

TEST_F(MpiTest, DoesAllCalls) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT_EQ(world_->size(), ranks);
  EXPECT_EQ(world_->name(), "mpi");
  check_all_calls(*world_);
}

TEST_F(MpiTest, CutsLargeCounts) {
  check_all_calls(*world_in_small_pieces());
}

TEST_F(MpiTest, SplitsByColourInRankOrder) {
  const auto part = world_->split(world_->rank() % 2);
  EXPECT_EQ(part->rank(), world_->rank() / 2);
  EXPECT_EQ(part->size(), (world_->size() + 1 - world_->rank() % 2) / 2);
  check_all_calls(*part);
  EXPECT_THROW(world_->split(-1), DistError);
}

TEST_F(MpiTest, RefusesCountsThatDoNotFitTheBuffers) {
  const std::vector<float> send(world_->size());
  std::vector<float> recv(world_->size());
  const Counts ones(world_->size(), 1);
  const auto exchange = [&](const Counts& send_counts, const Counts& recv_counts) {
    world_->all_to_all(std::span<const float>(send), send_counts, std::span(recv), recv_counts);
  };
  exchange(ones, ones);
  Counts wrong = ones;
  wrong[0] = 2;
  EXPECT_THROW(exchange(wrong, ones), DistError);
  wrong[0] = -1;
  EXPECT_THROW(exchange(ones, wrong), DistError);
  wrong[0] = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(exchange(wrong, ones), DistError);
  EXPECT_THROW(exchange(Counts(world_->size() + 1, 0), ones), DistError);
  EXPECT_THROW(world_->all_gather(std::span<const float>(), std::span(recv), ones), DistError);
}

TEST_F(MpiTest, SaysWhichCallFailed) {
  try {
    check_mpi(MPI_ERR_COUNT, "MPI_Send");
    FAIL();
  } catch (const DistError& error) {
    EXPECT_THAT(error.what(), HasSubstr("MPI_Send failed: "));
    EXPECT_THAT(error.what(), HasSubstr("communicator_test.cpp:"));
  }
}

TEST_F(MpiTest, ReturnsErrorsInsteadOfDying) {
  const auto own = world_->split(world_->rank());
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_SELF, &copy), "MPI_Comm_dup");
  const MpiHandle handle(copy);
  int value = 0;
  EXPECT_THROW(check_mpi(MPI_Bcast(&value, 1, MPI_INT, 7, handle.get()), "MPI_Bcast"), DistError);
}

TEST_F(MpiTest, AllowsOneSessionAtATime) {
  EXPECT_THROW(MpiSession(nullptr, nullptr), DistError);
  EXPECT_EQ(session_.world()->size(), world_->size());
}

TEST_F(MpiTest, GathersTextsOfAnyLength) {
  const std::string own(static_cast<std::size_t>(world_->rank()) * 3, 'x');
  const std::vector<std::string> all = all_gather_text(*world_, own);
  ASSERT_EQ(std::ssize(all), world_->size());
  for (int rank = 0; rank < world_->size(); ++rank) EXPECT_EQ(std::ssize(all[rank]), 3 * rank);
}

TEST_F(MpiTest, RunsOnAllRanks) {
  int runs = 0;
  run_on_all_ranks(*world_, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST_F(MpiTest, FailsOnAllRanksWhereOneFails) {
  const int bad = world_->size() - 1;
  const auto fail = [&] {
    if (world_->rank() == bad) throw DataError("array 'node_feat' has a NaN");
  };
  const std::string text = "array 'node_feat' has a NaN";
  try {
    run_on_all_ranks(*world_, fail);
    FAIL();
  } catch (const DataError& error) {
    const std::string rank = "rank " + std::to_string(bad) + ": ";
    EXPECT_EQ(error.what(), world_->rank() == bad ? text : rank + text);
  }
  world_->barrier();  // and the ranks are still in step
}

TEST_F(MpiTest, PassesOnEveryKindOfError) {
  const auto throws_at_zero = [&](auto error) {
    return [&, error] {
      if (world_->rank() == 0) throw error;
    };
  };
  EXPECT_THROW(run_on_all_ranks(*world_, throws_at_zero(ConfigError("no"))), ConfigError);
  try {
    run_on_all_ranks(*world_, throws_at_zero(Error(ErrorKind::stopped, "checkpoint written")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::stopped);
  }
  EXPECT_THROW(run_on_all_ranks(*world_, throws_at_zero(std::runtime_error("no"))),
               std::runtime_error);
  EXPECT_ANY_THROW(run_on_all_ranks(*world_, throws_at_zero(1)));
  EXPECT_THROW(run_on_all_ranks(*world_, [] { throw DistError("all of them"); }), DistError);
}

TEST_F(MpiTest, PlacesRanksOnTheirNode) {
  for (const char* device : {"cpu", "auto"}) {
    const NodeTopology place = place_rank(*world_, device);
    EXPECT_EQ(place.node, 0);
    EXPECT_EQ(place.nodes, 1);
    EXPECT_EQ(place.local_rank, world_->rank());
    EXPECT_EQ(place.local_ranks, world_->size());
    const bool enough = std::ssize(visible_devices().devices) >= world_->size();
    EXPECT_EQ(place.device >= 0, enough && device == std::string("auto"));
  }
  EXPECT_EQ(place_rank(*make_self_communicator(), "cpu").local_ranks, 1);
  EXPECT_THROW(place_rank(*world_, "tpu"), ConfigError);
}

TEST_F(MpiTest, AsksForEnoughGpus) {
  if (std::ssize(visible_devices().devices) >= world_->size()) {
    EXPECT_GE(place_rank(*world_, "cuda").device, 0);
    return;
  }
  try {
    place_rank(*world_, "cuda");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("device: cuda: node 0 ('"));
    const VisibleDevices seen = visible_devices();
    if (seen.devices.empty()) EXPECT_THAT(error.what(), HasSubstr(seen.problem));
  }
}

// With GPUs NCCL does all calls; without enough of them it says so, on every rank.
TEST_F(MpiTest, UsesNcclWhereEveryRankHasAGpu) {
  const auto devices = std::ssize(visible_devices().devices);
  if (devices >= world_->size()) {
    const auto nccl = make_nccl_communicator(*world_, place_rank(*world_, "cuda").device);
    EXPECT_EQ(nccl->name(), "nccl");
    EXPECT_EQ(nccl->memory(), MemoryKind::device);
    check_all_calls(*nccl);
    check_all_calls(*nccl->split(world_->rank() % 2));
    check_all_calls(*make_self_communicator(MemoryKind::device));
  }
  if (devices == 0 || world_->size() > 1) {
    EXPECT_THROW(make_nccl_communicator(*world_, 0), DistError);
  }
  EXPECT_THROW(make_nccl_communicator(*world_, 4096), DistError);
  EXPECT_THROW(make_nccl_communicator(*world_, -1), DistError);
}

TEST(NcclVersion, IsThatOfTheHeader) {
  EXPECT_THAT(nccl_version_report(), HasSubstr("NCCL"));
}

}  // namespace
}  // namespace tpudist
