#include "results/scores/judgement.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "results/scores/score_caveats.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/results/scores/predictions_case.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/noisy_graph.hpp"

namespace tpudist::test {
namespace {

constexpr int kRows = 60;

// Predictions in memory: graphs of different families with run times 0 .. 59 in some order, and
// members that know them up to noise.
class Predictions : public PredictionSource {
 public:
  // `noise` of each member, in places. With `folds` > 0 member m holds out fold m % folds of the
  // training graphs, of which there are two for each fold; else there are four validation graphs.
  Predictions(std::vector<double> noise, int folds) : noise_(std::move(noise)), folds_(folds) {
    const int members = static_cast<int>(noise_.size());
    header_.collection = "layout:xla:random";
    header_.runs = {{.name = "xla", .folds = folds}};
    for (int m = 0; m < members; ++m)
      header_.members.push_back({.number = m, .fold = folds > 0 ? m % folds : -1});
    for (int g = 0; g < (folds > 0 ? 2 * folds : 4); ++g) {
      PredictionEntry graph;
      graph.name = "net" + std::string(1, static_cast<char>('a' + g)) + "_batch_8";
      graph.split = folds > 0 ? "train" : "valid";
      graph.configs = graph.rows = kRows;
      graph.fold = folds > 0 ? g % folds : -1;
      for (int m = 0; m < members; ++m)
        graph.held_out.push_back(folds == 0 || m % folds == graph.fold);
      header_.graphs.push_back(graph);
    }
  }

  const PredictionsHeader& header() const override { return header_; }
  PredictionsHeader& header() { return header_; }

  PredictionRows read(int g) const override {
    PredictionRows predictions;
    predictions.configs.resize(kRows);
    std::iota(predictions.configs.begin(), predictions.configs.end(), 0);
    predictions.runtime.resize(kRows);
    std::iota(predictions.runtime.begin(), predictions.runtime.end(), 0);
    CounterRng(mix_key({7, static_cast<std::uint64_t>(g)})).shuffle(std::span(predictions.runtime));
    for (std::size_t m = 0; m < noise_.size(); ++m) {
      CounterRng rng(mix_key({static_cast<std::uint64_t>(g), m}));
      std::vector<double>& scores = predictions.scores.emplace_back();
      for (const std::int64_t runtime : predictions.runtime) {
        const double score = static_cast<double>(runtime) + noise_[m] * rng.normal();
        scores.push_back(header_.graphs[g].held_out[m] ? 100.0 * score : kNoScore);
      }
      if (m == spoiled_) scores[3] = INFINITY;
      if (m == blank_) std::ranges::fill(scores, kNoScore);
      if (m == tied_ && g >= tied_from_) std::ranges::fill(scores, 5.0);
    }
    if (g == contradicted_) std::ranges::sort(predictions.runtime);
    if (g == flat_) std::ranges::fill(predictions.runtime, 1);
    return predictions;
  }

  void spoil(std::size_t member) { spoiled_ = member; }
  void blank(std::size_t member) { blank_ = member; }
  void tie(std::size_t member, int from_graph) { tied_ = member, tied_from_ = from_graph; }
  void contradict(int graph) { contradicted_ = graph; }
  void flatten(int graph) { flat_ = graph; }  // equal run times: its metric is undefined

 private:
  std::vector<double> noise_;
  int folds_;
  PredictionsHeader header_;
  std::size_t spoiled_ = 99, tied_ = 99, blank_ = 99;
  int tied_from_ = 0;
  int contradicted_ = -1, flat_ = -1;
};

TEST(Judgement, CombinesAllMembersWhereNoneIsRejected) {
  const Judgement judgement = judge(Predictions({10, 10, 10}, 0), {});
  EXPECT_EQ(judgement.collection, "layout:xla:random");
  EXPECT_EQ(judgement.combination.rule, CombinationRule::z_score);
  EXPECT_THAT(judgement.rejected, IsEmpty());
  ASSERT_THAT(judgement.tables, SizeIs(1));
  const TableJudgement& table = judgement.tables.front();
  EXPECT_EQ(table.title, "valid split");
  EXPECT_THAT(table.weights, ElementsAre(1, 1, 1));
  EXPECT_EQ(table.kept, table.all);
  for (int m = 0; m < 3; ++m) {
    EXPECT_GT(table.kept, table.means[m]);
    EXPECT_GT(table.gains[m], 0);
  }
  for (const GraphEvaluation& graph : table.graphs) {
    EXPECT_GT(graph.agreement, 0.45);
    EXPECT_FALSE(graph.suspicious);
  }
  EXPECT_THAT(judgement_text(judgement),
              AllOf(HasSubstr("combined by z_score"), HasSubstr("rejected  none of 3 members")));
}

TEST(Judgement, RejectsAMemberWhoseScoresAreAllAlike) {
  Predictions predictions({10, 10, 10}, 0);
  predictions.tie(1, /*from_graph=*/0);
  const Judgement judgement = judge(predictions, {});
  ASSERT_THAT(judgement.rejected, SizeIs(1));
  EXPECT_EQ(judgement.rejected.front().member, 1);
  EXPECT_THAT(judgement.rejected.front().reason, HasSubstr("one score"));
  predictions.tie(1, /*from_graph=*/1);  // it ranks the first graph
  EXPECT_THAT(judge(predictions, {}).rejected, IsEmpty());
}

// The graphs of a collection are judged as if there were no others.
TEST(Judgement, HasEachOfSeveralCollectionsByItself) {
  Predictions predictions({10, 20, 30}, 0), all({10, 20, 30}, 0);
  predictions.header().collection = "layout:xla:default+layout:xla:random";
  for (std::size_t g = 0; g < 4; ++g) {
    std::string& name = predictions.header().graphs[g].name;
    name = (g < 1 ? "layout:xla:default:" : "layout:xla:random:") + name;
  }
  const Judgement judgement = judge(predictions, {});
  const TableJudgement &table = judgement.tables.front(), whole = judge(all, {}).tables.front();
  EXPECT_EQ(table.kept, whole.kept);
  EXPECT_THAT(whole.parts, IsEmpty());
  ASSERT_THAT(table.parts, SizeIs(2));
  const TableJudgement &one = table.parts[0], &three = table.parts[1];
  EXPECT_EQ(one.title, "layout:xla:default");
  EXPECT_THAT(one.graphs, SizeIs(1));
  EXPECT_EQ(one.kept, table.graphs[0].kept);
  EXPECT_THAT(three.graphs, SizeIs(3));
  EXPECT_NEAR((one.kept + 3 * three.kept) / 4, table.kept, 1e-12);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR((one.gains[c] + 3 * three.gains[c]) / 4, table.gains[c], 1e-12);
    EXPECT_NEAR((one.means[c] + 3 * three.means[c]) / 4, table.means[c], 1e-12);
  }
  const double mean = (one.kept + three.kept) / 2;
  EXPECT_THAT(judgement_text(judgement),
              AllOf(HasSubstr("\nlayout:xla:random "), HasSubstr("\nmean of collections "),
                    HasSubstr("\nmean of collections, 95 % intervals of members together")));
  const nlohmann::json json = judgement_json(judgement).at("tables").at(0);
  EXPECT_DOUBLE_EQ(json.at("mean_of_collections").at("score"), mean);
  EXPECT_EQ(json.at("collections").at("layout:xla:default").at("score"), one.kept);
  EXPECT_FALSE(judgement_json(judge(all, {})).at("tables").at(0).contains("collections"));

  predictions.flatten(0);
  const std::string text = judgement_text(judge(predictions, {}));
  EXPECT_THAT(text, HasSubstr("\nmean of collections: undefined, since no graph of "
                              "layout:xla:default has a score\n\nrule"));
  EXPECT_THAT(text, Not(HasSubstr("mean of collections, ")));
}

TEST(Judgement, RejectsAMemberFarBelowItsPeersAndSaysWhatItCost) {
  const Predictions predictions({5, 5, 5, 500}, 0);
  const Judgement judgement = judge(predictions, {});
  ASSERT_THAT(judgement.rejected, SizeIs(1));
  EXPECT_EQ(judgement.rejected.front().member, 3);
  EXPECT_THAT(judgement.used, ElementsAre(true, true, true, false));
  const TableJudgement& table = judgement.tables.front();
  EXPECT_GT(table.kept, table.all);
  EXPECT_EQ(table.weights[3], 0);
  EXPECT_THAT(table.gains[3], IsNan());
  EXPECT_THAT(judgement_text(judgement), AllOf(HasSubstr("rejected  member 3: its mean score"),
                                               HasSubstr("with rejected members")));

  const Judgement all = judge(predictions, {.keep_all = true});
  EXPECT_THAT(all.used, ElementsAre(true, true, true, true));
  EXPECT_EQ(all.tables.front().kept, table.all);
  EXPECT_THAT(judgement_text(all), HasSubstr("kept all the same  member 3"));
}

TEST(Judgement, RejectsAMemberThatDidNotLearnOrIsNotFinite) {
  Predictions predictions({5, 5, 5}, 0);
  predictions.header().members[1].first_loss = 2;
  predictions.header().members[1].last_loss = 2.5;
  predictions.spoil(2);
  const Judgement judgement = judge(predictions, {});
  ASSERT_THAT(judgement.rejected, SizeIs(2));
  EXPECT_THAT(judgement.rejected[0].reason, HasSubstr("its training loss did not fall"));
  EXPECT_THAT(judgement.rejected[1].reason, HasSubstr("not finite"));
  // What is not finite cannot be kept.
  EXPECT_THAT(judge(predictions, {.keep_all = true}).used, ElementsAre(true, true, false));
}

// Only NaN of a graph that it never saw: its scores are not finite, and not missing.
TEST(Judgement, RejectsAMemberWhoseScoresAreAllNaN) {
  for (const int folds : {0, 2}) {
    Predictions predictions({5, 5, 5, 5}, folds);
    predictions.blank(1);
    const Judgement judgement = judge(predictions, {.keep_all = true});
    ASSERT_THAT(judgement.rejected, SizeIs(1));
    EXPECT_EQ(judgement.rejected[0].member, 1);
    EXPECT_THAT(judgement.rejected[0].reason, HasSubstr("not finite"));
    EXPECT_THAT(judgement.used, ElementsAre(true, false, true, true));
    if (folds == 0) EXPECT_THAT(judgement.tables.front().without_training, SizeIs(1));
  }
}

TEST(Judgement, OfMembersAloneLooksAtNoRunTimesOfTestGraphs) {
  Predictions predictions({5, 5, 5, 500}, 0);
  EXPECT_THAT(judge_members(predictions, {}).used, ElementsAre(true, true, true, false));
  for (PredictionEntry& graph : predictions.header().graphs) graph.split = "test";
  predictions.header().members[0].first_loss = 2;
  predictions.header().members[0].last_loss = 2.5;
  const Judgement judgement = judge_members(predictions, {});
  EXPECT_THAT(judgement.used, ElementsAre(false, true, true, true));
  EXPECT_THAT(judgement.tables, IsEmpty());
}

TEST(Judgement, SaysWhenNobodyIsLeft) {
  Predictions predictions({5}, 0);
  predictions.header().members[0].failed = true;
  EXPECT_THROW(judge(predictions, {}), ConfigError);
}

TEST(Judgement, CombinesSeedsOfTheSameFoldOnly) {
  const Predictions predictions({5, 20, 5, 20}, 2);  // two columns of two folds
  const Judgement judgement = judge(predictions, {});
  const TableJudgement& table = judgement.tables.front();
  EXPECT_EQ(table.title, "training graphs, out of fold");
  EXPECT_THAT(table.columns, ElementsAre("xla seed 0/0 members 0-1", "xla seed 0/0 members 2-3"));
  EXPECT_THAT(table.graphs, SizeIs(4));
  // Fold 1 is harder, and nobody is rejected for that.
  EXPECT_THAT(judgement.rejected, IsEmpty());
  for (const GraphEvaluation& graph : table.graphs) {
    EXPECT_FALSE(std::isnan(graph.columns[0]));
    EXPECT_FALSE(std::isnan(graph.kept));
  }
}

TEST(Judgement, NamesTheMemberThatAColumnLacks) {
  const Predictions predictions({5, 5, 5}, 2);  // member 3 is not there
  EXPECT_THAT(message_of<ConfigError>([&] { judge(predictions, {}); }),
              HasSubstr("xla seed 0/0 members 2-3: the member of fold 1 is missing"));
  const Judgement judgement = judge(predictions, {.least_columns = 1});
  EXPECT_THAT(judgement.tables.front().columns, SizeIs(1));
  EXPECT_THAT(judgement_text(judgement), HasSubstr("left out  xla seed 0/0 members 2-3"));
  EXPECT_THROW(judge(predictions, {.least_columns = 2}), ConfigError);
}

// Members 0 and 1 are of one training, though in two runs; the other runs are trainings of their
// own: another seed, and other weights under the first one's seeds.
TEST(Judgement, KnowsWhichMembersAreOfOneTraining) {
  Predictions predictions({10, 20, 30, 40}, 0);
  PredictionsHeader& header = predictions.header();
  header.runs = {{.name = "xla", .source = "runs/a", .parameter_hash = 1},
                 {.name = "xla", .source = "runs/b", .parameter_hash = 2},
                 {.name = "xla", .source = "runs/c", .parameter_hash = 3, .init_seed = 2},
                 {.name = "xla", .source = "runs/d", .parameter_hash = 4}};
  for (int m = 0; m < 4; ++m) {
    header.members[m].run = m;
    header.members[m].number = m == 1 ? 1 : 0;
  }
  header.runs[0].init_hash = 5;
  EXPECT_THAT(trainings_of(header), ElementsAre(0, 1, 2, 1));  // began from other weights
  EXPECT_THAT(judgement_text(judge(predictions, {.keep_all = true})),
              HasSubstr("note  runs/a and xla seed 0/0 have equal settings, but began from other "
                        "or unknown weights (train.init_from): they count as two recipes\n"));
  header.runs[1].init_hash = 6;
  EXPECT_THAT(several_recipes_text(header),
              HasSubstr("began from other weights (train.init_from)"));
  header.runs[0].init_hash = header.runs[1].init_hash = 0;
  EXPECT_EQ(several_recipes_text(header), "");
  EXPECT_THAT(trainings_of(header), ElementsAre(0, 0, 1, 2));
  const Judgement judgement = judge(predictions, {.keep_all = true});
  // Two have the name "xla seed 0/0 member 0".
  EXPECT_THAT(judgement.names, ElementsAre("runs/a member 0", "xla seed 0/0 member 1",
                                           "xla seed 2/0 member 0", "runs/d member 0"));
  const TableJudgement& table = judgement.tables.front();
  EXPECT_THAT(table.without_training, SizeIs(3));
  EXPECT_NEAR(table.mean_of_members,
              ((table.means[0] + table.means[1]) / 2 + table.means[2] + table.means[3]) / 3, 1e-12);
  EXPECT_THAT(
      judgement_text(judgement),
      AllOf(HasSubstr("jackknife of 3 trainings"), HasSubstr("members together  0."),
            HasSubstr("mean of members   0."),
            HasSubstr("  3 trainings without a collapse leave a collapse rate of up to 63 %")));
  EXPECT_NEAR(judgement_json(judgement).at("tables")[0].at("mean_of_members"),
              table.mean_of_members, 1e-12);
}

// Two trainings of one name and seeds keep their columns apart.
TEST(Judgement, KeepsFoldsOfTwoImportsApart) {
  Predictions predictions({5, 20, 5, 20}, 2);
  PredictionsHeader& header = predictions.header();
  header.runs = {{.name = "xla", .source = "a.h5", .parameter_hash = 1, .folds = 2},
                 {.name = "xla", .source = "b.h5", .parameter_hash = 2, .folds = 2}};
  for (int m = 0; m < 4; ++m) {
    header.members[m].run = m / 2;
    header.members[m].number = m % 2;
  }
  const Judgement judgement = judge(predictions, {});
  EXPECT_THAT(judgement.tables.front().columns,
              ElementsAre("a.h5 members 0-1", "b.h5 members 0-1"));
  EXPECT_THAT(judgement.tables.front().without_training, SizeIs(2));
}

TEST(Judgement, FlagsAGraphWhoseRunTimesContradictMembersThatAgree) {
  Predictions predictions({5, 5, 5}, 0);
  predictions.contradict(2);
  const Judgement judgement = judge(predictions, {});
  const auto& graphs = judgement.tables.front().graphs;
  EXPECT_FALSE(graphs[1].suspicious);
  EXPECT_TRUE(graphs[2].suspicious);
  EXPECT_THAT(graphs, SizeIs(4));  // it counts all the same
  EXPECT_THAT(judgement_text(judgement), HasSubstr("flagged  netc_batch_8"));
  EXPECT_TRUE(judgement_json(judgement).at("tables")[0].at("graphs")[2].at("suspicious"));
}

TEST(Judgement, GivesNoScoresWithoutRunTimes) {
  class Unmeasured : public Predictions {
   public:
    using Predictions::Predictions;
    PredictionRows read(int g) const override {
      PredictionRows predictions = Predictions::read(g);
      std::ranges::fill(predictions.runtime, 0);
      return predictions;
    }
  };
  Unmeasured predictions({5, 5, 5}, 0);
  for (PredictionEntry& graph : predictions.header().graphs) graph.split = "test";
  const Judgement judgement = judge(predictions, {});
  EXPECT_THAT(judgement.tables.front().kept, IsNan());
  EXPECT_THAT(judgement.used, ElementsAre(true, true, true));
}

// Two graphs of these limits.
std::string text_of(const ScoreCaveats& limits) {
  std::vector<GraphEvaluation> graphs(2);
  graphs[0].name = "net";
  graphs[1].name = "other";
  for (GraphEvaluation& graph : graphs) graph.limits = limits;
  return limits_text(graphs, "kendall_tau");
}

PredictionRows predictions_of(const NoisyGraph& graph) {
  PredictionRows predictions;
  predictions.runtime.assign(graph.times.begin(), graph.times.end());
  predictions.group = graph.config;
  return predictions;
}

TEST(ScoreCaveats, AreThoseOfTheRowsAsRanked) {
  const NoisyGraph graph(NoisyGraph::smooth, 300, 0.004, 1);
  const ScoreCaveats limits = score_limits("layout:xla:random", graph.truth, predictions_of(graph));
  EXPECT_EQ(*limits.ceiling.value, *noise_ceiling(graph.times, graph.config).value);
  EXPECT_EQ(limits.tied_share, 0);
  EXPECT_EQ(limits.sampling_deviation,
            tau_sampling_deviation(graph.truth, graph.times, graph.config));
  const nlohmann::json json = limits_json(limits);
  EXPECT_EQ(json.at("ceiling"), *limits.ceiling.value);
  EXPECT_EQ(json.at("ceiling_interval").at(0), limits.ceiling.low);
  EXPECT_TRUE(json.at("ceiling_reason").is_null());
}

TEST(ScoreCaveats, SayWhereNoiseIsAssumedNormal) {
  const NoisyGraph few(NoisyGraph::smooth, 300, 0.004, 1, true);
  const ScoreCaveats limits = score_limits("layout:xla:random", few.truth, predictions_of(few));
  EXPECT_THAT(text_of(limits), HasSubstr("ceiling of net and 1 more: noise assumed normal, too few "
                                         "configurations have six measurements\n"));
  EXPECT_EQ(limits_json(limits).at("ceiling_normal_assumed"), true);
}

TEST(ScoreCaveats, SayWhyThereIsNoCeiling) {
  PredictionRows predictions;
  predictions.runtime = {10, 20, 30};
  const std::vector<double> ranking = {1, 1, 2};
  const ScoreCaveats unknown = score_limits("layout:xla:random", ranking, predictions);
  EXPECT_THAT(unknown.ceiling.reason, HasSubstr("do not say which configurations are equal"));
  EXPECT_DOUBLE_EQ(unknown.tied_share, 1.0 / 3);
  predictions.group = {0, 1, 2};
  EXPECT_THAT(score_limits("layout:xla:random", ranking, predictions).ceiling.reason,
              HasSubstr("30 are needed"));
  predictions.normalizer = {1, 1, 1};
  EXPECT_EQ(score_limits("tile:xla", ranking, predictions).ceiling.reason, kNoTileCeiling);
  EXPECT_TRUE(std::isnan(score_limits("tile:xla", ranking, predictions).sampling_deviation));
  predictions.runtime = {0, 0, 0};
  EXPECT_EQ(score_limits("layout:xla:random", {}, predictions).ceiling.reason,
            "there are no run times");
  const std::string text = text_of(unknown);
  EXPECT_THAT(text, HasSubstr("no ceiling of net and 1 more: the predictions do not say"));
  EXPECT_THAT(text, HasSubstr("33.33 %"));
  EXPECT_TRUE(limits_json(unknown).at("ceiling").is_null());
}

}  // namespace
}  // namespace tpudist::test
