#include "records/initial_and_final_loss.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using ::testing::IsNan;

TEST(InitialAndFinalLoss, AreMeansOfTheFirstAndTheLastTenth) {
  const TempDir folder;
  {
    std::ofstream file(folder / "metrics.jsonl");
    for (int step = 0; step < 20; ++step) {
      file
          << R"({"kind": "step", "norm": [1, 1], "rate": 1, "step_seconds": 1, "wait_seconds": 0, )"
          << R"("train_seconds": 1, "step": )" << step << R"(, "loss": [)" << 20 - step
          << (step == 3 ? ", null]}" : ", 1]}") << '\n';
      file << R"({"kind": "evaluation", "members": [0, 0]})" << '\n';
    }
    file << R"({"kind": "step", "loss": [1, )";  // torn
  }
  const std::vector<InitialAndFinalLoss> ends = loss_ends({}, folder / "metrics.jsonl", 2);
  EXPECT_EQ(ends[0].first, 19.5);
  EXPECT_EQ(ends[0].last, 1.5);
  EXPECT_NEAR(ends[0].margin, 31.82 * std::sqrt(0.5), 0.01);  // t with 1 degree of freedom
  EXPECT_THAT(ends[1].first, IsNan());  // 19 losses are too few
}

TEST(InitialAndFinalLoss, AreUnknownWithoutAFile) {
  const TempDir folder;
  EXPECT_THAT(loss_ends({}, folder / "metrics.jsonl", 1)[0].last, IsNan());
}

TEST(InitialAndFinalLoss, ComeFromAllStepsAndSayWhatIsNoise) {
  std::vector<double> kept = no_losses(3);
  for (int step = 0; step < 40; ++step) {
    add_loss(kept, 0, step, 40, step < 4 ? 5 + step : step % 2);  // 5, 6, 7, 8, ..., 0, 1, 0, 1
    if (step < 30) add_loss(kept, 1, step, 40, 2);                // stopped early
    if (step < 19) add_loss(kept, 2, step, 40, 2);
  }
  const auto ends = loss_ends(kept, "nowhere", 3);
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
  const InitialAndFinalLoss ends = loss_ends(kept, "nowhere", 1)[0];
  EXPECT_GT(ends.last - ends.first, ends.margin);
}

}  // namespace
}  // namespace tpudist
