#include "dist/collectives/error_exchange.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "dist/collectives/mpi_session.hpp"

namespace tpudist {
namespace {

using namespace std::chrono_literals;

class ErrorExchangeTest : public ::testing::Test {
 protected:
  MpiSession session_{nullptr, nullptr};
  std::unique_ptr<Communicator> world_ = session_.world();
};

TEST_F(ErrorExchangeTest, GathersTheErrorsOfAllRanksInTheirOrder) {
  // One message is longer than what MPI sends ahead of a matching receive.
  const auto text = [](int rank) { return "failed " + std::string(rank == 1 ? 200'000 : 3, 'x'); };
  ErrorExchange exchange({.exit_code = 2 + world_->rank(),
                          .heard = world_->rank() == 2,
                          .message = text(world_->rank())});
  EXPECT_EQ(exchange.rank(), world_->rank());
  EXPECT_EQ(exchange.ranks(), world_->size());
  const std::vector<RankError> errors = exchange.wait(60s);
  ASSERT_EQ(std::ssize(errors), world_->size());
  for (int rank = 0; rank < world_->size(); ++rank) {
    EXPECT_EQ(errors[rank].rank, rank);
    EXPECT_EQ(errors[rank].exit_code, 2 + rank);
    EXPECT_EQ(errors[rank].heard, rank == 2);
    EXPECT_EQ(errors[rank].message, text(rank));
  }
  world_->barrier();
}

TEST_F(ErrorExchangeTest, ReturnsWhatItKnowsWhereOthersAreHealthy) {
  const int failing = world_->size() - 1;
  if (world_->rank() != failing) world_->barrier();  // healthy: waits, and is not disturbed
  ErrorExchange exchange({.exit_code = 3, .message = "bad file"});
  if (world_->rank() == failing) {
    const std::vector<RankError> errors = exchange.wait(1ms);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].rank, failing);
    EXPECT_EQ(errors[0].message, "bad file");
    if (failing > 0) world_->barrier();
  }
  if (world_->size() > 1) EXPECT_EQ(std::ssize(exchange.wait(60s)), world_->size());
  world_->barrier();
}

TEST_F(ErrorExchangeTest, MarksWhatARankHasOnlyHeardOf) {
  try {
    run_on_all_ranks(*world_, [&] {
      if (world_->rank() == 0) throw DataError("no such file");
    });
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(dynamic_cast<const HeardFromOtherRank*>(&error) != nullptr, world_->rank() != 0);
  }
}

}  // namespace
}  // namespace tpudist
