#include "records/initial_and_final_loss.hpp"

#include <gmock/gmock.h>

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
      file << R"({"kind": "step", "loss": [)" << 20 - step << (step == 3 ? ", null]}" : ", 1]}")
           << '\n';
      file << R"({"kind": "evaluation", "members": [0, 0]})" << '\n';
    }
    file << R"({"kind": "step", "loss": [1, )";  // torn
  }
  const std::vector<InitialAndFinalLoss> ends = read_loss_ends(folder / "metrics.jsonl", 2);
  EXPECT_EQ(ends[0].first, 19.5);
  EXPECT_EQ(ends[0].last, 1.5);
  EXPECT_THAT(ends[1].first, IsNan());  // 19 losses are too few
}

TEST(InitialAndFinalLoss, AreUnknownWithoutAFile) {
  const TempDir folder;
  EXPECT_THAT(read_loss_ends(folder / "metrics.jsonl", 1)[0].last, IsNan());
}

}  // namespace
}  // namespace tpudist
