// Whole commands where signals arrive all the time and every second call on their files is
// interrupted.

#include <filesystem>
#include <string>
#include <vector>

#include "tests/launch/ranks_case.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

class Interrupted : public Ranks {
 protected:
  static std::string faults() { return "TPUDIST_FAULTY_IO=interrupt:" + path(""); }

  static Outcome interrupted(int ranks, const std::string& arguments) {
    if (ranks == 0)
      return run_program(arguments + " 2>&1", "LD_PRELOAD=" TPUDIST_FAULTY_IO " " + faults() + " ");
    const RankStart start{arguments, "-x LD_PRELOAD=" TPUDIST_FAULTY_IO " -x " + faults()};
    return run_ranks(std::vector<RankStart>(static_cast<std::size_t>(ranks), start));
  }
};

TEST_F(Interrupted, ConversionsGiveTheSameShards) {
  output_of(
      interrupted(0, "convert " + path("npz-shards") + " " + path("converted") + " --jobs 1"));
  output_of(interrupted(0, "verify " + path("converted") + " --npz " + path("npz-shards")));
  for (const auto& entry : fs::recursive_directory_iterator(path("shards"))) {
    if (!entry.is_regular_file()) continue;
    const fs::path same = path("converted") / fs::relative(entry.path(), path("shards"));
    EXPECT_TRUE(content(entry.path()) == content(same)) << same;
  }
}

TEST_F(Interrupted, RunsEndWithTheSameParameters) {
  const std::string more =
      "train.steps=12 train.checkpoint_every=1 data.cache=memory data.cache_dir=" + path("cache");
  const std::string undisturbed = output_of(train(0, "undisturbed", more));
  fs::remove_all(path("cache"));
  for (const int ranks : {0, 1, 2}) {
    const std::string run = "interrupted-" + std::to_string(ranks);
    const std::string outcome = output_of(interrupted(ranks, train_arguments(run, more)));
    EXPECT_EQ(count_of(outcome, " warning "), 0) << outcome;
    EXPECT_EQ(value_of(outcome, "parameters: "), value_of(undisturbed, "parameters: "));
    EXPECT_EQ(content(path(run + "/scores.json")), content(path("undisturbed/scores.json")));
    EXPECT_EQ(count_of(content(path(run + "/metrics.jsonl")), "\"kind\":\"step\""), 12);
    // And goes on from a checkpoint that was written and is read in this way.
    EXPECT_EQ(value_of(output_of(interrupted(ranks, train_arguments(run, more + " --resume"))),
                       "parameters: "),
              value_of(undisturbed, "parameters: "));
  }
}

TEST_F(Interrupted, RunsAreScoredTheSame) {
  const Outcome expected = run_ranks(0, "evaluate " + path("one") + " --quiet");
  const std::string predict = "predict " + path("one") + " --quiet --csv ";
  ASSERT_EQ(run_ranks(0, predict + path("expected.csv")).exit_code, 0);
  for (const int ranks : {0, 2}) {
    EXPECT_EQ(output_of(interrupted(ranks, "evaluate " + path("one") + " --quiet")),
              expected.output);
    output_of(interrupted(ranks, predict + path("found.csv")));
    EXPECT_EQ(content(path("found.csv")), content(path("expected.csv")));
  }
}

}  // namespace
}  // namespace tpudist::test
