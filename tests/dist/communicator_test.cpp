#include "dist/collectives/communicator.hpp"

#include <gmock/gmock.h>
#include <mpi.h>

#include <limits>
#include <stdexcept>

#include "core/error.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/mpi_communicator.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "dist/collectives/node_topology.hpp"
#include "tests/dist/communicator_calls.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A communicator over all ranks that cuts what it sends into pieces of three.
std::unique_ptr<Communicator> world_in_small_pieces() {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return std::make_unique<MpiComm>(copy, 3);
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
  wrong[0] = world_->size() + 1;
  EXPECT_THAT(test::message_of<DistError>([&] { exchange(wrong, ones); }),
              HasSubstr("for rank 0 does not fit into a buffer of"));
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
  const MpiComm comm(copy);
  int value = 0;
  EXPECT_THROW(check_mpi(MPI_Bcast(&value, 1, MPI_INT, 7, copy), "MPI_Bcast"), DistError);
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
    const NodeTopology topology = place_rank(*world_, device);
    EXPECT_EQ(topology.node, 0);
    EXPECT_EQ(topology.nodes, 1);
    EXPECT_EQ(topology.local_rank, world_->rank());
    EXPECT_EQ(topology.local_ranks, world_->size());
    const bool enough = std::ssize(visible_devices().devices) >= world_->size();
    EXPECT_EQ(topology.device >= 0, enough && device == std::string("auto"));
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
