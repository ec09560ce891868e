#include "results/records/initial_and_final_loss.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace tpudist {
namespace {

using ::testing::IsNan;

TEST(InitialAndFinalLoss, ComeFromAllStepsAndSayWhatIsNoise) {
  std::vector<double> kept = no_losses(3);
  for (int step = 0; step < 40; ++step) {
    add_loss(kept, 0, step, 40, step < 4 ? 5 + step : step % 2);  // 5, 6, 7, 8, ..., 0, 1, 0, 1
    if (step < 30) add_loss(kept, 1, step, 40, 2);                // stopped early
    if (step < 19) add_loss(kept, 2, step, 40, 2);
  }
  const auto ends = loss_ends(kept);
  EXPECT_DOUBLE_EQ(ends[0].first, 6.5);
  EXPECT_DOUBLE_EQ(ends[0].last, 0.5);
  // t of 0.99 with 3 degrees of freedom; variance 5 / 3 of the first 4 losses.
  EXPECT_NEAR(ends[0].margin, 4.5407 * std::sqrt(5.0 / 3 * (1.0 / 4 + 1.0 / 4)), 1e-3);
  EXPECT_EQ(ends[1].last, 2);
  EXPECT_EQ(ends[1].margin, 0);
  EXPECT_THAT(ends[2].first, IsNan());  // 19 are too few
  add_loss(kept, 0, 50, 40, 1);         // a benchmark takes more steps than planned
  add_loss(kept, 0, 0, 0, 1);
}

// Its last losses vary as much as they rise, which is no noise.
TEST(InitialAndFinalLoss, AreFartherApartThanNoiseWhereATrainingDiverges) {
  std::vector<double> kept = no_losses(1);
  for (int step = 0; step < 60; ++step) add_loss(kept, 0, step, 60, std::pow(3.0, step));
  const InitialAndFinalLoss ends = loss_ends(kept)[0];
  EXPECT_GT(ends.last - ends.first, ends.margin);
}

}  // namespace
}  // namespace tpudist
