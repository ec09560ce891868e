#include "dist/health/agreement.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "core/process.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AgreementTest : public ::testing::Test {
 protected:
  bool last() const { return world_->rank() == world_->size() - 1; }

  // What require_agreement says, "" when ranks agree, as a rank by itself does.
  std::string refusal(const std::vector<AgreedValue>& values) {
    const std::string said = test::message_of<ConfigError>(
        [&] { require_agreement(*world_, values, "give all ranks the same file"); });
    if (world_->size() == 1) EXPECT_EQ(said, "");
    return said;
  }

  MpiSession session_{nullptr, nullptr};
  std::unique_ptr<Communicator> world_ = session_.world();
};

TEST_F(AgreementTest, IsSilentWhereAllAgree) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({{"train.steps", "100"}, {"data.include.train", ""}}), "");
}

TEST_F(AgreementTest, NamesTheValueTheRanksAndWhatEachHas) {
  const std::string said =
      refusal({{"train.steps", "100"}, {"train.evaluate_every", last() ? "20" : "10"}});
  if (world_->size() == 1) return;
  ASSERT_EQ(world_->size(), 3);
  EXPECT_EQ(said,
            "train.evaluate_every: 10 on ranks 0, 1, 20 on rank 2; give all ranks the same file");
}

TEST_F(AgreementTest, SaysWhichRanksDoNotGiveAValue) {
  std::vector<AgreedValue> values{{"command", "train"}};
  if (last()) values.push_back({"train.resume", ""});
  const std::string said = refusal(values);
  if (world_->size() == 1) return;
  EXPECT_THAT(said, StartsWith("train.resume: not given on ranks 0, 1, empty on rank 2"));
}

TEST_F(AgreementTest, TellsLongValuesApartAndNamesAFewOfMany) {
  std::vector<AgreedValue> values{
      {"data.include.train", std::string(5000, 'x') + (last() ? "one" : "other")}};
  for (int i = 0; i < 20; ++i) {
    values.push_back({"key" + std::to_string(i), std::to_string(world_->rank())});
  }
  const std::string said = refusal(values);
  if (world_->size() == 1) return;
  EXPECT_THAT(said, AllOf(StartsWith("data.include.train: xxx"), HasSubstr("key3: 0 on rank 0, 1"),
                          Not(HasSubstr("key4")), HasSubstr("; and 16 more; give all")));
  EXPECT_LT(said.size(), 1000u);
}

TEST_F(AgreementTest, KeepsRanksInStep) {
  refusal({{"rank", std::to_string(world_->rank())}});
  world_->barrier();
  EXPECT_EQ(refusal({{"train.steps", "100"}}), "");
}

TEST_F(AgreementTest, NoticesResultsThatDiffer) {
  const auto said_with = [&](std::uint64_t value) {
    return test::message_of<DistError>(
        [&] { require_equal_on_all_ranks(*world_, value, "the trained parameters"); });
  };
  EXPECT_EQ(said_with(42), "");
  if (world_->size() == 1) return;
  const std::string node = " (" + host_name() + ")";
  EXPECT_THAT(said_with(last() ? 43 : 42),
              AllOf(StartsWith("the trained parameters: 000000000000002a on ranks 0, 1, "
                               "000000000000002b on rank 2; look at rank 2" +
                               node + " for faulty memory"),
                    HasSubstr("without that node go on from the last checkpoint")));
  // Without a majority.
  EXPECT_THAT(said_with(static_cast<std::uint64_t>(world_->rank())),
              AllOf(HasSubstr("look at rank 0" + node + ", rank 1" + node + ", rank 2" + node),
                    HasSubstr("without the faulty node")));
}

TEST(RankList, IsShort) {
  const auto list = [](std::vector<int> ranks) { return rank_list(ranks); };
  EXPECT_EQ(list({3}), "rank 3");
  EXPECT_EQ(list({0, 1}), "ranks 0, 1");
  EXPECT_EQ(list({0, 1, 2, 3, 7, 9, 10}), "ranks 0 to 3, 7, 9, 10");
}

}  // namespace
}  // namespace tpudist
