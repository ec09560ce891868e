// Runs that are stopped while they score after the last step, on several ranks.

#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

// The last rank alone is asked to stop, shortly before the end of a Slurm job: all stop for lack of
// time, and where nothing else is left to do, all fail.
TEST(StoppedScores, AreGivenUpByAllRanksForTheSameReason) {
  setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 300).c_str(), 1);
  int argc = 0;
  char** argv = nullptr;
  const MpiSession session(&argc, &argv);
  const auto world = session.world();
  const TempDir own;
  const std::filesystem::path shared = path_of_first(*world, own.path());
  ThreadPool pool(1, use_one_thread_per_worker);
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};
  for (const std::string rows :
       {"none", "all"}) {  // an evaluation, or predictions that serve as one
    SCOPED_TRACE(rows);
    const Experiment experiment = tiny_experiment({"train.steps=2", "predictions.rows=" + rows});
    const auto train_until = [&](int most, bool resume) {
      int asked = 0;
      return train(experiment, shared / rows, resume, context,
                   [&] { return ++asked > most && world->rank() == world->size() - 1; });
    };
    const TrainOutcome outcome = train_until(2, false);
    EXPECT_TRUE(outcome.stopped);
    EXPECT_TRUE(outcome.out_of_time);
    EXPECT_EQ(outcome.steps, 2);
    EXPECT_FALSE(outcome.evaluation.has_value());
    EXPECT_THAT(message_of<Error>([&] { train_until(0, true); }),
                ::testing::HasSubstr("do not fit into the job's time"));
  }
  world->barrier();  // the folder of rank 0 stays until all are done
}

}  // namespace
}  // namespace tpudist::test
