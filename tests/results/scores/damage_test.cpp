// Seeded damages of predictions: each is an error of one line that names the file. TPUDIST_DAMAGES
// says how many.

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/results/scores/predictions_case.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

TEST(PredictionsDamage, IsFound) {
  const test::TempDir folder;
  const auto path = folder / "predictions.h5";
  test::PredictionsCase().write(path);
  const std::string sound = read_text_file(path);
  for (int seed = 0; seed < test::damage_count(200); ++seed) {
    test::overwrite(path, test::damaged(sound, static_cast<std::uint64_t>(seed)));
    const std::string message = test::message_of<DataError>([&] { PredictionsFile file(path); });
    EXPECT_EQ(test::fault_of_message(message, path), "") << seed;
  }
}

}  // namespace
}  // namespace tpudist
