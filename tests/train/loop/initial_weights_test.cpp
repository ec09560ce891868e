#include "train/loop/training_state.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "data/shards/shard_reader.hpp"
#include "results/checkpoints/weights_file.hpp"
#include "results/records/predictions_file.hpp"
#include "results/scores/same_training.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/scoring/prediction_records.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class InitialWeightsTest : public ::testing::Test {
 protected:
  InitialWeightsTest() { test::run(experiment({}), folder_ / "source"); }

  Experiment experiment(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(), {"train.steps=2", "train.last_evaluation=none"});
    return tiny_experiment(overrides);
  }

  // What members of an experiment have before the first step, [M, P].
  AlignedFloats start_of(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(), {"seed.init=7", "train.steps=0", from("source")});
    const TempDir run;
    test::run(experiment(overrides), run / "run");
    return open_run(run / "run").flat;
  }

  std::string from(const std::string& name) const {
    return "train.init_from=" + (folder_ / name).string();
  }
  std::string message(std::vector<std::string> overrides) const {
    try {
      start_of(std::move(overrides));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  // One entry of a member's parameters.
  std::vector<float> values(const AlignedFloats& flat, std::size_t member, const char* name) const {
    ThreadPool pool(1, use_one_thread_per_worker);
    const Network network = make_network(experiment({}), -1, pool);
    const ParameterTable& table = network.parameters();
    const ParameterEntry& entry = table.find(name);
    const auto begin =
        flat.begin() + static_cast<std::int64_t>(member) * table.length() + entry.offset;
    return {begin, begin + entry.size()};
  }

  const TempDir folder_;
};

TEST_F(InitialWeightsTest, AreThoseOfTheRunsMembersByNumber) {
  const TrainedRun source = open_run(folder_ / "source");
  EXPECT_EQ(start_of({}), source.flat);
  // The run's member 1 is the first one here.
  const AlignedFloats last = start_of({"ensemble.first_member=1", "ensemble.members=2"});
  EXPECT_TRUE(
      std::equal(last.begin(), last.end(), source.flat.begin() + std::ssize(source.flat) / 3));
  EXPECT_THAT(message({"ensemble.members=4"}),
              HasSubstr("source has members 0 to 2, none for member 3"));
}

TEST_F(InitialWeightsTest, OfAFileAreForAllMembers) {
  const TrainedRun source = open_run(folder_ / "source");
  ThreadPool pool(1, use_one_thread_per_worker);
  const Network network = make_network(source.experiment, -1, pool);
  const auto length = static_cast<std::size_t>(network.parameters().length());
  const auto second = std::span<const float>(source.flat).subspan(length, length);
  write_weights(folder_ / "w.safetensors", network.parameters(), second, {});
  const AlignedFloats start = start_of({from("w.safetensors")});
  ASSERT_EQ(start.size(), 3 * length);
  for (std::size_t m = 0; m < 3; ++m)
    EXPECT_TRUE(std::ranges::equal(std::span(start).subspan(m * length, length), second)) << m;
}

// A network for another collection.
TEST_F(InitialWeightsTest, TensorsOfOtherShapesAreRefusedOrNamed) {
  const std::string wider = "model.readout.widths=[8]";
  EXPECT_THAT(message({wider}), AllOf(HasSubstr("source: "), HasSubstr("head.")));
  EXPECT_THAT(message({"model.encoder.opcode_width=5"}),
              HasSubstr("has the shape [120, 12], but the network's has [120, 5]"));
  EXPECT_EQ(message({wider, "train.init_fresh=['head.*']"}), "");
  EXPECT_THAT(message({"train.init_fresh=['*']"}), HasSubstr("none is taken"));
  EXPECT_THAT(message({"train.init_fresh=['haed.*']"}),
              HasSubstr("train.init_fresh: \"haed.*\" matches no tensor of the network"));
  EXPECT_THAT(message({"train.init_from=none", "train.init_fresh=['head.*']"}),
              HasSubstr("give train.init_from"));
}

TEST_F(InitialWeightsTest, FreshTensorsAreThoseOfTheSeed) {
  const AlignedFloats source = open_run(folder_ / "source").flat;
  const AlignedFloats seeded = start_of({"train.init_from=none"});
  const AlignedFloats start = start_of({"train.init_fresh=['head.*']"});
  for (std::size_t m = 0; m < 3; ++m) {
    EXPECT_EQ(values(start, m, "head.weight"), values(seeded, m, "head.weight"));
    EXPECT_NE(values(start, m, "head.weight"), values(source, m, "head.weight"));
    EXPECT_EQ(values(start, m, "blocks.1.sage.self.weight"),
              values(source, m, "blocks.1.sage.self.weight"));
  }
}

// Scores out of fold, and of the validation split, are of graphs that weights do not come from.
TEST_F(InitialWeightsTest, OfARunThatKnowsScoredGraphsAreRefused) {
  EXPECT_THAT(message({"ensemble.fold_seed=5"}), AllOf(HasSubstr("source was trained on "),
                                                       HasSubstr("take a run of the same folds")));
  EXPECT_EQ(message({"ensemble.folds=none", "ensemble.vary=[init,order]"}), "");
  test::run(experiment({"ensemble.folds=none", "ensemble.vary=[init]"}), folder_ / "all");
  EXPECT_THAT(message({from("all")}), HasSubstr("on which member 0 is to be scored"));
  test::run(experiment({"ensemble.fold_over=train+valid"}), folder_ / "both");
  EXPECT_EQ(message({from("both"), "ensemble.fold_over=train+valid"}), "");
  EXPECT_THAT(message({from("both")}), HasSubstr("both was trained on "));
  EXPECT_THAT(message({from("both"), "ensemble.folds=none", "ensemble.vary=[init]"}),
              HasSubstr("leave it out by data.exclude.valid=['"));
  // What folds.yaml says, whatever today's shards would give: here the folds exchanged.
  EXPECT_EQ(message({}), "");
  // As where it was imported:
  std::filesystem::remove(folder_ / "source" / kSeenGraphsFile);
  EXPECT_EQ(message({}), "");
  const std::filesystem::path folds = folder_ / "source/folds.yaml";
  std::string text = read_text_file(folds);
  for (std::size_t at = 0; (at = text.find("  #", at)) != std::string::npos; ++at)
    text[at - 1] = text[at - 1] == '0' ? '1' : '0';
  write_file_atomically(folds, text);
  EXPECT_THAT(message({}), HasSubstr("source was trained on "));
}

// What a run began from goes on with it, and families are told.
TEST_F(InitialWeightsTest, CarryWhatTheyWereTrainedOn) {
  const std::string whole = "ensemble.folds=none", init = "ensemble.vary=[init,order]";
  const std::string own = list_graphs(test::tiny_shards(), {"layout:xla:random"}, "train")[0].name;
  test::run(experiment({from("source"), whole, init, "data.include.train=['" + own + "']"}),
            folder_ / "second");
  const auto of = [&](const char* run) {
    return read_seen_graphs(folder_ / run / kSeenGraphsFile).trained_on;
  };
  const TrainedOn first = of("source"), second = of("second");
  EXPECT_EQ(second.size(), first.size());
  for (const GraphEntry& graph : list_graphs(test::tiny_shards(), {"layout:xla:random"}, "train")) {
    for (std::size_t m = 0; m < 3; ++m)
      EXPECT_EQ(second.knows(graph, m), first.knows(graph, m) || graph.name == own) << graph.name;
  }
  SeenGraphs seen = read_seen_graphs(folder_ / "source" / kSeenGraphsFile);
  GraphEntry valid = list_graphs(test::tiny_shards(), {"layout:xla:random"}, "valid").front();
  valid.name += "_batch_8";
  valid.source.hash = 1;
  seen.trained_on = {};
  seen.trained_on.add(valid, {true, true, true});
  write_file_atomically(folder_ / "source" / kSeenGraphsFile, seen_graphs_text(seen));
  ::testing::internal::CaptureStderr();
  set_up_logging(0, 1);
  EXPECT_EQ(message({}), "");
  spdlog::default_logger()->flush();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("validation split: members are trained on model family "));
}

TEST_F(InitialWeightsTest, AreKnownByTheirHash) {
  const Experiment transfer = experiment({from("source"), "train.steps=4", "predictions.rows=all"});
  test::run(transfer, folder_ / "run");
  const std::uint64_t hash = open_run(folder_ / "source").parameter_hash;
  EXPECT_EQ(open_run(folder_ / "run").init_hash, hash);
  EXPECT_FALSE(open_run(folder_ / "source").init_hash);
  const PredictionsFile file(folder_ / "run/predictions.h5");
  EXPECT_EQ(file.header().runs[0].init_hash, hash);
  EXPECT_EQ(file.header().runs[0].variant_hash, variant_hash(transfer.entries));
  std::filesystem::remove_all(folder_ / "source");
  test::run(experiment({"seed.init=9"}), folder_ / "source");
  test::resume(transfer, folder_ / "run");  // its checkpoint has all that it needs
  EXPECT_EQ(open_run(folder_ / "run").init_hash, hash);
  test::run(transfer, folder_ / "again");
  const RunRecord a = read_run_folder(folder_ / "run");
  EXPECT_THAT(different_settings(a, read_run_folder(folder_ / "again")),
              ::testing::ElementsAre(HasSubstr("train.init_weights: ")));
  RunRecord old = a;
  std::erase_if(old.config, [](const ConfigEntry& entry) { return entry.key == kInitWeights; });
  EXPECT_THAT(different_settings(a, old), ::testing::IsEmpty());
}

TEST_F(InitialWeightsTest, MembersThatWouldStayEqualAreRefused) {
  test::run(experiment({"ensemble.members=1", "ensemble.folds=none", "ensemble.vary=[init]"}),
            folder_ / "one");
  const std::string one = from("one"), whole = "ensemble.folds=none";
  EXPECT_THAT(message({one, whole, "ensemble.vary=[init]"}),
              HasSubstr("all 3 members would take the same weights"));
  EXPECT_EQ(message({one, whole, "ensemble.vary=[init]", "ensemble.members=1"}), "");
  EXPECT_EQ(message({one, whole, "ensemble.vary=[init,order]"}), "");
  EXPECT_EQ(message({one, whole, "ensemble.vary=[init]", "batch.order=per_member"}), "");
  EXPECT_EQ(message({one, whole, "ensemble.vary=[init]", "train.init_fresh=['head.*']"}), "");
}

TEST_F(InitialWeightsTest, AreOfThePast) {
  const Experiment transfer = experiment({from("source"), "train.steps=4"});
  const TrainOutcome whole = test::run(transfer, folder_ / "whole");
  test::run(transfer, folder_ / "run", 1, false, stop_after(2));
  std::filesystem::remove_all(folder_ / "source");
  write_file_atomically(folder_ / "run" / kSeenGraphsFile, "{");  // is written again
  EXPECT_EQ(test::resume(transfer, folder_ / "run").parameter_hash, whole.parameter_hash);
  EXPECT_FALSE(read_seen_graphs(folder_ / "run" / kSeenGraphsFile).trained_on.empty());
  EXPECT_THAT(message({}), HasSubstr("train.init_from: there is no "));
  std::filesystem::create_directory(folder_ / "source");
  EXPECT_NE(message({}), "") << "an empty folder is no run";
}

}  // namespace
}  // namespace tpudist::test
