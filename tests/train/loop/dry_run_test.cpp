#include "train/loop/forecast.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <regex>
#include <set>

#include "core/numbers.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/network/network.hpp"
#include "tests/support/paths.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"

namespace tpudist::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string describe(const Experiment& experiment, int ranks) {
  OneRank alone;
  return plan_work(experiment, {ranks}, alone.context).text;
}

// The line of a section that begins with this word, without the word and the spaces around it.
std::string line_of(const std::string& text, const std::string& section, const std::string& word) {
  const std::regex pattern("(?:^|\n)" + section + "[^\n]*\n(?:  [^\n]*\n)*?  " + word +
                           " +([^\n]*)\n");
  std::smatch match;
  return std::regex_search(text, match, pattern) ? match[1].str() : "no line";
}

// The share of each rank in percent.
std::vector<double> shares(const std::string& text) {
  const std::regex pattern("  rank (\\d+) [^\n]*?([0-9.]+) % of the work");
  std::vector<double> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    EXPECT_EQ(std::stoul((*at)[1].str()), found.size());
    found.push_back(std::stod((*at)[2].str()));
  }
  return found;
}

TEST(DryRun, CountsGraphsAndDistinctConfigurations) {
  const Experiment experiment = tiny_experiment();
  DatasetOptions options = experiment.data.training();
  options.duplicates = DuplicatesPolicy::keep;
  ThreadPool pool(1);
  const Dataset measured = Dataset::open(options, pool);
  std::size_t distinct = 0;
  for (int g = 0; g < measured.size(); ++g) {
    const auto& groups = measured.run_times(g).group;
    distinct += std::set(groups.begin(), groups.end()).size();
  }
  const std::string text = describe(experiment, 1);
  EXPECT_EQ(line_of(text, "data", "graphs"), std::to_string(measured.size()));
  EXPECT_EQ(line_of(text, "data", "rows"), format_count(static_cast<std::int64_t>(distinct)));
  EXPECT_THAT(line_of(text, "data", "in memory"), HasSubstr("B on each rank"));
  EXPECT_THAT(line_of(text, "data", "inputs"), HasSubstr("B at most"));
  EXPECT_THAT(line_of(describe(experiment, 2), "data", "in memory"),
              HasSubstr("data.cache_dir=auto: once on each node"));
}

TEST(DryRun, TellsWhatAViolationRatioCannotJudge) {
  const auto text = [](const std::string& tensor) {
    return describe(tiny_experiment({"model.readout.violation_ratio=" + tensor}), 1);
  };
  ThreadPool pool(1);
  const Dataset data = Dataset::open(tiny_experiment().data.training(), pool);
  std::int64_t nodes = 0, without = 0;  // configurable ones; without an output dimension
  const ColumnRange dimensions = kLayoutSchema.dimension_columns;
  for (int g = 0; g < data.size(); ++g) {
    const Graph& graph = data.graph(g);
    for (const std::int32_t node : graph.config_nodes) {
      const auto row = std::span<const float>(graph.node_features)
                           .subspan(static_cast<std::size_t>(node) * kLayoutSchema.node_features +
                                        static_cast<std::size_t>(dimensions.first),
                                    static_cast<std::size_t>(dimensions.count));
      ++nodes;
      without += std::ranges::all_of(row, [](float size) { return size <= 0; });
    }
  }
  EXPECT_THAT(text("output"),
              HasSubstr(fmt::format(
                  "violation ratio: {:.1f} % of {} configurable nodes are not "
                  "counted, because they have no dimensions",
                  100.0 * static_cast<double>(without) / static_cast<double>(nodes), nodes)));
  EXPECT_THAT(text("kernel"),
              HasSubstr(fmt::format(
                  "% of {} configurable nodes are not counted, because their operands", nodes)));
  EXPECT_THAT(text("none"), Not(HasSubstr("violation ratio")));
}

TEST(DryRun, TellsSharedMemoryFromThatOfEachRank) {
  const test::TempDir place;
  const std::string text =
      describe(tiny_experiment({"data.cache_dir=" + place.path().string()}), 2);
  EXPECT_EQ(line_of(text, "data", "in memory"), "0 B on each rank");
  EXPECT_THAT(line_of(text, "data", "shared"), HasSubstr("B once on each node"));
  EXPECT_THAT(line_of(text, "data", "inputs"), HasSubstr("B once on each node (graphs as"));
}

// Parameters with their placed copy, two moments and averages; a row of gradients for each unit and
// member.
TEST(DryRun, TellsWhatAGpuKeeps) {
  const Experiment experiment =
      tiny_experiment({"train.average.kind=ema", "batch={slates: 4, unit: slates}"});
  ThreadPool pool(1);
  const Network network(experiment.network, kLayoutSchema, -1, pool);
  const ParameterTable& table = network.parameters();
  std::int64_t placed = 0;
  for (const ParameterEntry& entry : table.entries()) placed += (entry.size() + 63) / 64 * 64;
  const std::int64_t weights = 3 * 4 * (4 * table.length() + placed),
                     row = 4 * (table.length() + 16);
  // Five ranks have slices, equal ones, so the row is padded to a multiple of 5 x 16 floats.
  const std::int64_t slice = (row + 5 * 64 - 1) / (5 * 64) * 64;
  const auto expected = [&](std::int64_t rows, std::int64_t of_row, std::int64_t of_sum) {
    const auto bytes = [](std::int64_t n) { return format_bytes(static_cast<std::uint64_t>(n)); };
    return fmt::format(
        "{} of parameters, moments and averages, {} of gradients ({} rows), {} of sums",
        bytes(weights), bytes(rows * of_row), rows, bytes(3 * of_sum));
  };
  // Of the four slates of the first step two only fill up the batch; another step has seven leaves.
  EXPECT_EQ(line_of(describe(experiment, 1), "on a GPU", "kept"), expected(7, row, row));
  EXPECT_EQ(line_of(describe(experiment, 5), "on a GPU", "kept"),
            expected(2, row + 2 * 5 * slice, row + 6 * slice));
  const Experiment summed = tiny_experiment(
      {"train.average.kind=ema", "dist.reduce=nccl", "batch={slates: 4, unit: slates}"});
  EXPECT_EQ(line_of(describe(summed, 5), "on a GPU", "kept"), expected(2, row, row));
}

TEST(DryRun, MoreThanTheMemoryOfAGpuIsAnError) {
  const DeviceBytes bytes{600, 300, 100, 3};
  EXPECT_EQ(device_memory_fault(bytes, 1000), "");
  EXPECT_THAT(device_memory_fault(bytes, 999), HasSubstr("ensemble.members"));
}

// The 2nd place's XLA network, counted by hand: an embedding of 120 opcodes, two linear layers in
// front, SAGE layers with a weight for the node and one for its neighbours, and a linear readout.
TEST(DryRun, CountsParametersAndTheirBuffers) {
  const Experiment experiment = tiny_experiment({"model.blocks=[{width: 64}]"});
  const std::int64_t encoder =
      kOpcodes * 12 + (kNodeFeatures * 20 + 20) + ((12 + 20 + kLayoutConfigFeatures) * 32 + 32);
  const std::int64_t layer = 2 * 32 * 64 + 64, output = 64 + 1;
  const std::string text = describe(experiment, 1);
  EXPECT_EQ(line_of(text, "model", "parameters"),
            fmt::format("{} a member, 3 members", format_count(encoder + layer + output)));
  ThreadPool pool(1);
  const Network network(experiment.network, kLayoutSchema, -1, pool);
  const auto padded = static_cast<std::uint64_t>(network.parameters().length());
  EXPECT_THAT(line_of(text, "model", "buffers"),
              HasSubstr(format_bytes(padded * sizeof(float) * 3 /*members*/ * 4 /*buffers*/)));
}

TEST(DryRun, NamesTheUnitsOfAStepAndTheLargestOne) {
  const Experiment experiment = tiny_experiment();
  ThreadPool pool(1);
  const Dataset data = Dataset::open(experiment.data.training(), pool);
  const std::string text = describe(experiment, 1);
  EXPECT_THAT(line_of(text, "steps", "an epoch"),
              HasSubstr("of 3 slates x 4 configurations in 3 units"));
  EXPECT_THAT(line_of(text, "steps", "training"), HasSubstr("6 steps"));
  EXPECT_THAT(line_of(text, "steps", "plans"), HasSubstr("of 9 units of the first 3 steps"));
  // The graph with most work, which need not have most nodes.
  std::vector<std::string> graphs;
  for (int g = 0; g < data.size(); ++g)
    graphs.push_back(fmt::format("{} ({} nodes, {} edges)", data.graph(g).name, data.graph(g).nodes,
                                 data.graph(g).edges));
  EXPECT_THAT(graphs, Contains(line_of(text, "largest unit", "graph")));
  EXPECT_THAT(line_of(text, "largest unit", "activations"), HasSubstr("members at a time"));
}

// Every layer with its parameters, its states and what refinement makes of the rows around it.
TEST(DryRun, ForecastsWhatLayersShare) {
  const std::string text = describe(
      tiny_experiment({"plan=refined",
                       "model={encoder: {width: 8}, blocks: [{layer: residual, blocks: [{layer: "
                       "instance_norm}, {layer: sage, width: 8}]}, {layer: activation}]}"}),
      1);
  const std::string rows = "([0-9.]+) %";
  const auto share = [&](const std::string& layer, const std::string& pattern) {
    const std::string line =
        line_of(text, "layers, and their rows in the largest unit against a dense plan's", layer);
    std::smatch match;
    EXPECT_TRUE(std::regex_search(line, match, std::regex(pattern))) << layer << ": " << line;
    return match.size() > 1 ? std::stod(match[1].str()) : -1;
  };
  const double first = share("encoder", "x 8 +rows " + rows);
  EXPECT_EQ(share("  instance_norm", "^0 +[0-9,]+ x 8 +rows " + rows + " -> "), first);
  const double normed = share("  instance_norm", "-> " + rows);
  EXPECT_GE(normed, first);
  EXPECT_EQ(
      share("  sage 8, mean from consumers, relu", "^136 +[0-9,]+ x 8 +rows " + rows + " -> "),
      normed);
  EXPECT_LE(share("  sage 8, mean from consumers, relu", "-> " + rows), 100);
  share("relu", "^0 +[0-9,]+ x 8$");
  share("readout sum, linear 1", "^9 +scores$");
}

TEST(DryRun, PlansEverySystemOnDataOfItsKind) {
  int systems = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_folder() / "experiments/systems")) {
    SCOPED_TRACE(entry.path().string());
    ConfigDocument document = ConfigDocument::load(
        entry.path(), {"data.shards=" + test::tiny_shards().string(), "ensemble={members: 1}",
                       "batch.unit_slates=2", "batch.slates=2"});
    const std::string text = describe(read_experiment(document), 1);
    EXPECT_THAT(text, HasSubstr("readout "));
    if (entry.path().stem() != "tpugraphs_tile_mlp")  // it takes no edges
      EXPECT_THAT(text, HasSubstr(" -> "));
    EXPECT_THAT(text, Not(HasSubstr("nan")));
    EXPECT_NE(line_of(text, "evaluation", "at the end"), "no line");
    ++systems;
  }
  EXPECT_EQ(systems, 41);
}

TEST(DryRun, ChunksAndMembersTakenApartNeedLessMemory) {
  const auto members = [](const std::vector<std::string>& overrides) {
    return line_of(describe(tiny_experiment(overrides), 1), "largest unit", "activations");
  };
  EXPECT_THAT(members({"batch.member_chunk=1"}), HasSubstr("for 1 member at a time"));
  const auto rows = [](const std::vector<std::string>& overrides) {
    std::string line = line_of(describe(tiny_experiment(overrides), 1), "largest unit", "plan");
    std::erase(line, ',');
    return std::stol(line);
  };
  EXPECT_LT(rows({"plan=dense", "batch.configs=8", "batch.config_chunk=2"}),
            rows({"plan=dense", "batch.configs=8"}));
}

TEST(DryRun, SharesAllWorkAmongTheRanks) {
  const std::string alone = describe(tiny_experiment(), 1);
  EXPECT_THAT(alone, HasSubstr("work of 1 rank,"));
  EXPECT_THAT(shares(alone), ::testing::ElementsAre(100.0));
  const std::string text = describe(tiny_experiment(), 3);
  EXPECT_THAT(text, HasSubstr("work of 3 ranks,"));
  ASSERT_THAT(shares(text), SizeIs(3));
  double sum = 0;
  for (const double share : shares(text)) {
    EXPECT_GT(share, 0);
    sum += share;
  }
  EXPECT_NEAR(sum, 100, 0.2);  // three numbers with one decimal
  const double balance = std::stod(line_of(text, "work of", "balance"));
  EXPECT_GT(balance, 0);
  EXPECT_LE(balance, 100);
}

// What `print` was given, all together.
std::string dry_run_text(const Experiment& experiment, const RankRequest& asked = {}) {
  OneRank alone;
  std::string text;
  const test::TempDir folder;
  dry_run(experiment, folder / "run", false, asked, alone.context,
          [&](std::string_view part) { text += part; });
  return text;
}

TEST(DryRun, SaysWhatRealStepsTook) {
  const std::string text = dry_run_text(tiny_experiment());
  EXPECT_THAT(text, ::testing::StartsWith(describe(tiny_experiment(), 1).substr(0, 100)));
  EXPECT_THAT(text,
              HasSubstr("time of 1 rank with 1 thread each, from 5 steps on the real data\n"));
  EXPECT_THAT(line_of(text, "time of", "training"), HasSubstr("6 steps of "));
  EXPECT_THAT(line_of(text, "time of", "training"), HasSubstr(" after the last step"));
  EXPECT_THAT(line_of(text, "time of", "together"), ::testing::ContainsRegex("^about [0-9]"));
  EXPECT_THAT(text, Not(HasSubstr("forecast")));
  // A run of one step.
  EXPECT_THAT(dry_run_text(tiny_experiment({"train.steps=1"})), HasSubstr("from 1 step on"));
}

// The columns of the forecast: ranks, s/step, messages, efficiency, busy.
std::vector<std::vector<double>> forecast_rows(const std::string& text) {
  const std::regex pattern("\n +([0-9]+) +([0-9.e-]+) +([0-9.e-]+) +([0-9.]+) +([0-9]+) %");
  std::vector<std::vector<double>> rows;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    rows.emplace_back();
    for (int i = 1; i <= 5; ++i) rows.back().push_back(std::stod((*at)[i].str()));
  }
  return rows;
}

TEST(DryRun, ForecastsRanksThatAreNotThere) {
  // Messages of a second: ranks do not pay.
  const std::string text = dry_run_text(tiny_experiment(), {{1, 2, 6}, LinkSpeed{1, 1e9}});
  EXPECT_THAT(text, HasSubstr("forecast for ranks with 1 thread each on cores of their own"));
  EXPECT_THAT(text, HasSubstr("1e+06 us each, 1 GB/s for each rank (--link)"));
  const auto rows = forecast_rows(text);
  ASSERT_THAT(rows, SizeIs(3)) << text;
  EXPECT_EQ(rows[0][0], 1);
  EXPECT_EQ(rows[0][2], 0);
  EXPECT_EQ(rows[0][3], 1);  // efficiency, by definition
  EXPECT_EQ(rows[1][0], 2);
  EXPECT_GT(rows[1][2], 5);  // sub-trees, sums and agreements
  EXPECT_LT(rows[1][3], 0.1);
  EXPECT_GT(rows[2][1], rows[1][1]);
  EXPECT_THAT(text, HasSubstr("\n  1 rank: the most of these with an efficiency of 0.8 or more"));
  EXPECT_THAT(text, HasSubstr("a sweep on 6 ranks: --groups 1 trains 6 runs side by side"));
}

TEST(DryRun, OneNumberOfRanksIsAForecastToo) {
  const std::string text = dry_run_text(tiny_experiment(), {{1, 3}, {}});
  EXPECT_THAT(shares(text), SizeIs(3));
  EXPECT_THAT(forecast_rows(text), SizeIs(2));
  EXPECT_THAT(text, HasSubstr("30 us each, 1.2 GB/s for each rank (assumed"));
}

// Members that hold out folds, cut graphs and drawn rows: ranks without work, and a share of a step.
TEST(DryRun, TimesSharesOfAllKindsOfSteps) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"ensemble.vary=[init, fold, order]"},
        {"batch.config_chunk=2"},
        {"batch={slates: 4, configs: 4, unit: graph, unit_slates: 2}"},
        {"data.segments={nodes: 20, by: consecutive}", "loss.list_mle.clip_norm=.inf"}}) {
    const auto rows = forecast_rows(dry_run_text(tiny_experiment(overrides), {{1, 40}, {}}));
    ASSERT_THAT(rows, SizeIs(2)) << overrides.front();
    EXPECT_GT(rows[0][4], rows[1][4]) << overrides.front();  // 40 ranks have too little to do
  }
}

// Rank 0 has two units of work, rank 1 has one.
TEST(RankForecast, AddsComputationPlanningUpdateAndMessages) {
  const RankLoad load{.ranks = 2,
                      .work = {2, 1},
                      .mean = 1.5,
                      .slowest = 2,
                      .exchange = {.bytes = 64, .messages = 2}};
  const LinkSpeed links{.latency = 1e-3, .bandwidth = 6400};
  const RankForecast host = forecast_step(load, {.compute = 10e-3, .planning = 2e-3}, links, 6e-3,
                                          /*hides_planning=*/false);
  EXPECT_DOUBLE_EQ(host.messages, 10e-3 + 2e-3 + 3e-3);  // and three agreements
  EXPECT_DOUBLE_EQ(host.step, 24e-3 + 6e-3 + 15e-3);
  EXPECT_DOUBLE_EQ(host.busy, (18e-3 + 6e-3) / 45e-3);
  const RankForecast hidden = forecast_step(load, {10e-3, 2e-3}, links, 6e-3, true);
  EXPECT_DOUBLE_EQ(hidden.step, 20e-3 + 6e-3 + 15e-3);
  EXPECT_DOUBLE_EQ(forecast_step(load, {10e-3, 30e-3}, links, 6e-3, true).step, 81e-3);
}

// Two units that cost 3 and 1 for each of two members, planned alike on all ranks.
TEST(RankForecast, LoadsAreThoseOfTheAssignment) {
  Experiment experiment;
  experiment.batch.slates = 2;
  experiment.ensemble.members = 2;
  const SlateOrder order({1, 2, 10, DrawMode::rows}, {10, 10}, 1);
  const BatchPlanner planner(experiment, order, {{3, 3}, {1, 1}}, {}, 1);
  const BatchPlan first = planner.plan(0);
  UnitCosts step{0, {}};
  for (const SlateId& slate : first.slates) step.work.push_back(slate.graph == 0 ? 3 : 1);
  const auto load = [&](int ranks) {
    return rank_load(planner, ranks, std::span(&step, 1), 64, Exchanged::trees);
  };
  EXPECT_EQ(load(1).slowest, 8);
  EXPECT_EQ(load(1).exchange.bytes, 0);
  EXPECT_EQ(load(2).slowest, 4);
  EXPECT_EQ(load(2).mean, 4);
  EXPECT_EQ(load(8).slowest, 3);
  EXPECT_EQ(load(8).mean, 1);
  EXPECT_GT(load(8).exchange.bytes, 0);
}

TEST(RankForecast, AdvisesByEfficiencyAndByRunsAnHour) {
  const auto row = [](int ranks, double efficiency) {
    return RankForecast{
        .ranks = ranks, .efficiency = efficiency, .training = 3600 / (ranks * efficiency)};
  };
  const std::vector<RankForecast> rows{row(1, 1), row(2, 1), row(3, 1), row(8, 0.8), row(16, 0.5)};
  EXPECT_EQ(rank_advice(rows),
            "  8 ranks: the most of these with an efficiency of 0.8 or more\n"
            "  a sweep on 16 ranks: --groups 2 trains 8 runs side by side, and 2 times as many an "
            "hour as one at a time\n");
  EXPECT_EQ(rank_advice(std::span(rows).first(2)),
            "  2 ranks: the most of these with an efficiency of 0.8 or more\n");
  EXPECT_EQ(rank_advice(std::span(rows).last(1)), "  none of these has an efficiency of 0.8\n");
  // 16 ranks take 450 s on two nodes of 8.
  EXPECT_THAT(rank_table(rows, 8), ::testing::ContainsRegex("\n +16 .* 0.50 .* 7:30 +0.25\n"));
}

TEST(TimeForecast, CountsStepsEvaluationsAndTheEnd) {
  const Experiment experiment =
      tiny_experiment({"train.steps=100", "train.evaluate_every=10", "train.last_evaluation=all"});
  MeasuredSteps measured;
  const StepWork nothing;
  measured.add(nothing, 2, {.compute = 1});
  measured.add(nothing, 4, {.compute = 1});
  EXPECT_EQ(measured.seconds(), 3);
  EXPECT_EQ(measured.seconds_for(10), 0);  // it did nothing
  EvaluationCosts costs;
  costs.each = ScoringCost{.work = 80};
  costs.last = ScoringCost{.work = 160};
  const TimeForecast whole = forecast_time(experiment, measured, 3, 2, costs, 0, 0);
  EXPECT_EQ(whole.steps, 100);
  EXPECT_EQ(whole.evaluations, 9);
  EXPECT_EQ(whole.total(), 300);
  const TimeForecast late = forecast_time(experiment, measured, 3, 2, costs, 1e8, 50);
  EXPECT_EQ(late.evaluations, 4);  // after steps 60, 70, 80, 90
  EXPECT_EQ(late.total(), 50 * 3 + 1);
  EXPECT_EQ((TimeForecast{10, 2, 1, 5, 7}.total()), 27);
  EXPECT_EQ((TimeForecast{10, 2, 1, 5, 7}.text()),
            "10 steps of 1.0 s, 2 evaluations of 5.0 s, 7.0 s after the last step");
}

}  // namespace
}  // namespace tpudist::test
