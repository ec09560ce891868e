#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/schema/model_family.hpp"
#include "data/synth/models.hpp"
#include "data/synth/presets.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {
namespace {

constexpr std::int64_t kSizes[] = {60, 399, 5000};

ModelSpec spec_of(Kind kind, std::int64_t nodes, std::uint64_t family = 1) {
  ModelSpec spec;
  spec.name = "x";
  spec.kind = kind;
  spec.family = family;
  spec.nodes = nodes;
  return spec;
}

// Several families of each kind.
std::vector<ModelSpec> specs_of(std::int64_t nodes) {
  std::vector<ModelSpec> specs;
  for (const Kind kind :
       {Kind::convolution, Kind::attention, Kind::recurrent, Kind::mixture, Kind::embedding}) {
    for (std::uint64_t family = 0; family < 6; ++family) {
      specs.push_back(spec_of(kind, nodes, family));
      if (nodes < 100) specs.back().body_share = 0.9;
    }
  }
  return specs;
}

TEST(SynthProgram, paddingFillsTilesOf8x128) {
  EXPECT_EQ(padded_elements({3, 5, 130}, {2, 1}), 3 * 8 * 256);
  EXPECT_EQ(padded_elements({3, 5, 130}, {0, 2}), 128 * 5 * 136);
  EXPECT_EQ(padded_elements({}, {}), 1);
  EXPECT_EQ(default_layout({3, 5, 130}), (Layout{2, 1}));
}

TEST(SynthProgram, programsAreOfTheSizeAskedForAndInTopologicalOrder) {
  for (const std::int64_t nodes : kSizes) {
    for (const ModelSpec& spec : specs_of(nodes)) {
      const Program program = build_model(spec);
      EXPECT_EQ(program.nodes(), nodes);
      EXPECT_NEAR(static_cast<double>(program.edges()) / static_cast<double>(nodes), 1.65, 0.01);
      EXPECT_GE(program.config_nodes(), 2);
      for (std::int32_t i = 0; i < program.nodes(); ++i) {
        for (const std::int32_t operand : program[i].operands) {
          ASSERT_TRUE(operand >= 0 && operand < i);
        }
      }
    }
  }
}

TEST(SynthProgram, edgesAreMostlyShortWithSomeLongSkips) {
  const Program program = build_model(spec_of(Kind::convolution, 5000));
  std::vector<std::int64_t> lengths;
  for (std::int32_t i = 0; i < program.nodes(); ++i) {
    for (const std::int32_t operand : program[i].operands) lengths.push_back(i - operand);
  }
  std::ranges::sort(lengths);
  EXPECT_LE(lengths[lengths.size() / 2], 6);  // as in the real AlexNet
  EXPECT_GE(lengths[lengths.size() * 95 / 100], 100);
}

TEST(SynthProgram, gradientsHaveTheShapeOfWhatTheyBelongTo) {
  for (const ModelSpec& spec : specs_of(600)) {
    const Program program = build_model(spec);
    for (const Op& op : program.ops) {
      for (const std::int64_t dim : op.shape.view()) EXPECT_GT(dim, 0);
      if (op.code == opcode::reshape) {
        EXPECT_EQ(op.shape.elements(), program[op.operands[0]].shape.elements());
      }
      const bool elementwise = op.code == opcode::add || op.code == opcode::multiply ||
                               op.code == opcode::subtract || op.code == opcode::select;
      for (const std::int32_t operand : op.operands) {
        if (elementwise) {
          EXPECT_EQ(op.shape, program[operand].shape);
        }
      }
    }
  }
}

TEST(SynthProgram, theRealMaximaAreMetExactly) {
  const Preset preset = preset_named("huge");
  const auto jobs = layout_jobs(*preset.xla, "xla", 1);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].configs, 100040);
  const Program program = build_model(jobs[0].model);
  EXPECT_EQ(program.nodes(), 43615);
  EXPECT_EQ(program.edges(), 73881);
  EXPECT_EQ(program.config_nodes(), 3143);
}

TEST(SynthProgram, sizesThatCannotBeMetAreRefused) {
  ModelSpec spec = spec_of(Kind::convolution, 300);
  spec.config_nodes = 3;
  EXPECT_THROW(build_model(spec), ConfigError);
  spec.config_nodes = 0;
  spec.edges = 5000;
  EXPECT_THROW(build_model(spec), ConfigError);
  EXPECT_THROW(build_model(spec_of(Kind::attention, 10)), ConfigError);
}

TEST(SynthFeatures, columnsOfAConvolutionAreThoseOfTheRealOne) {
  // The first convolution of the real alexnet_train_batch_32: what is not listed is 0.
  Op op;
  op.code = opcode::convolution;
  op.convolution = ConvolutionKind::forward;
  op.shape = {32, 54, 54, 64};
  op.window = {{11, 11}, {4, 4}, {0, 0}, {0, 0}, {1, 1}};
  const std::map<int, float> real{{13, 1},       {21, 32}, {22, 54}, {23, 54}, {24, 64},  {27, 204},
                                  {28, 5971968}, {37, 11}, {38, 11}, {43, 22}, {44, 121}, {45, 4},
                                  {46, 4},       {51, 8},  {52, 16}, {69, 1},  {70, 1},   {75, 2},
                                  {76, 1},       {77, 1},  {78, 1},  {83, 2},  {84, 1},   {92, 2},
                                  {94, 3},       {95, 1},  {96, 2},  {99, 2},  {100, 3},  {102, 1},
                                  {106, 3},      {107, 1}, {108, 1}, {112, 1}, {116, 1},  {120, 1},
                                  {124, 1},      {128, 1}, {132, 1}, {134, 3}, {135, 2},  {136, 1}};
  std::array<float, kNodeFeatures> row;
  node_features(op, false, row);
  for (int column = 0; column < kNodeFeatures; ++column) {
    const auto entry = real.find(column);
    EXPECT_EQ(row[column], entry == real.end() ? 0 : entry->second) << "column " << column;
  }
}

TEST(SynthFeatures, constantColumnsAreConstantAndValuesStayInRange) {
  const std::set<int> constant{1,  2,  4,  5,  11, 12, 14, 16, 17, 19, 42,  50, 56,
                               57, 58, 65, 66, 81, 82, 88, 89, 90, 98, 104, 139};
  const std::set<int> negative{61, 62, 67, 127, 131};
  for (const ModelSpec& spec : specs_of(800)) {
    const Graph graph = to_graph(build_model(spec), "x", true);
    for (std::size_t i = 0; i < graph.node_features.size(); ++i) {
      const int column = static_cast<int>(i % kNodeFeatures);
      const float value = graph.node_features[i];
      ASSERT_TRUE(value >= 0 || negative.contains(column)) << column << ": " << value;
      ASSERT_LE(value, 2.9e9f);
      if (constant.contains(column)) {
        ASSERT_EQ(value, 0) << column;
      }
    }
  }
}

TEST(SynthPresets, realSizesHaveTheRealMeans) {
  const auto mean_of = [](const Plan& plan, std::string_view source) {
    double sum = 0;
    const auto jobs = layout_jobs(plan, source, 7);
    for (const LayoutJob& job : jobs) {
      sum += static_cast<double>(job.model.nodes);
      EXPECT_TRUE(job.model.nodes >= plan.nodes.low && job.model.nodes <= plan.nodes.high);
      EXPECT_TRUE(job.configs >= plan.configs.low && job.configs <= plan.configs.high);
    }
    return sum / static_cast<double>(jobs.size());
  };
  Plan nlp = *preset_named("nlp").nlp, xla = *preset_named("xla").xla;
  for (const SplitCounts graphs : {SplitCounts{6, 2, 2}, SplitCounts{60, 7, 8}}) {
    nlp.graphs = xla.graphs = graphs;
    EXPECT_NEAR(mean_of(nlp, "nlp"), 5659, 60);
    EXPECT_NEAR(mean_of(xla, "xla"), 14105, 150);
  }
  double tile = 0;
  const auto kernels = tile_jobs(*preset_named("tile").tile, 7);
  for (const KernelSpec& job : kernels) tile += static_cast<double>(job.nodes);
  EXPECT_NEAR(tile / static_cast<double>(kernels.size()), 40, 1);
}

TEST(SynthPresets, configurableNodesOfRealSizesStayWithinTheRealRange) {
  for (const LayoutJob& job : layout_jobs(*preset_named("xla").xla, "xla", 1)) {
    const std::int64_t count = build_model(job.model).config_nodes();
    EXPECT_TRUE(count >= 20 && count <= 3143) << job.model.name << ": " << count;
  }
}

// Families of the graphs of each split.
template <typename Jobs, typename Name>
std::array<std::set<std::string>, 3> families_by_split(const Jobs& jobs, Name name) {
  std::array<std::set<std::string>, 3> families;
  for (const auto& job : jobs) families[job.split].insert(model_family(name(job)));
  return families;
}

TEST(SynthPresets, splitsShareNoFamilyAndTheDemoHasEnoughForFiveFolds) {
  const auto expect_apart = [](const std::array<std::set<std::string>, 3>& families) {
    std::set<std::string> all;
    for (const auto& own : families) all.insert(own.begin(), own.end());
    EXPECT_EQ(all.size(), families[0].size() + families[1].size() + families[2].size());
  };
  for (const std::string& name : preset_names()) {
    const Preset preset = preset_named(name);
    for (const auto& [source, plan] :
         {std::pair("xla", preset.xla), std::pair("nlp", preset.nlp)}) {
      if (!plan) continue;
      const auto families = families_by_split(layout_jobs(*plan, source, 1),
                                              [](const LayoutJob& job) { return job.model.name; });
      expect_apart(families);
      EXPECT_GE(families[0].size(), name == "demo" ? 8u : 1u) << source;
    }
    if (!preset.tile) continue;
    const auto families = families_by_split(tile_jobs(*preset.tile, 1),
                                            [](const KernelSpec& job) { return job.name; });
    expect_apart(families);
    EXPECT_GE(families[0].size(), 5u) << name;
  }
}

// 24 families a source, eight a split, whose names tell the split for a seed.
TEST(SynthPresets, familiesOfASplitAreEightOfAllKinds) {
  for (const char* source : {"xla", "nlp"}) {
    std::set<std::string> of_other_seed;
    for (const std::uint64_t seed : {1, 2}) {
      Plan plan = *preset_named("demo").xla;
      plan.graphs = {24, 8, 8};
      std::array<std::set<Kind>, 3> kinds;
      std::map<std::string, std::set<std::uint64_t>> keys;
      const auto jobs = layout_jobs(plan, source, seed);
      for (const LayoutJob& job : jobs) {
        kinds[job.split].insert(job.model.kind);
        keys[model_family(job.model.name)].insert(job.model.family);
      }
      for (const auto& own : kinds) EXPECT_EQ(own.size(), source == std::string("xla") ? 5u : 4u);
      EXPECT_EQ(keys.size(), 24u);
      std::set<std::uint64_t> all;
      for (const auto& [name, own] : keys) {
        EXPECT_EQ(own.size(), 1u) << name;
        all.insert(own.begin(), own.end());
      }
      EXPECT_EQ(all.size(), 24u);
      for (const auto& own :
           families_by_split(jobs, [](const LayoutJob& job) { return job.model.name; }))
        EXPECT_EQ(own.size(), 8u);
      for (const std::uint64_t key : all)
        EXPECT_TRUE(of_other_seed.insert(std::to_string(key)).second);
    }
  }
}

TEST(SynthPresets, namesAreUniqueAlsoInLargeSets) {
  for (const char* source : {"xla", "nlp"}) {
    Plan plan = source == std::string("xla") ? *preset_named("xla").xla : *preset_named("nlp").nlp;
    plan.graphs = {700, 50, 50};
    std::set<std::string> names;
    for (const LayoutJob& job : layout_jobs(plan, source, 1)) names.insert(job.model.name);
    EXPECT_EQ(names.size(), 800u) << source;
  }
}

}  // namespace
}  // namespace tpudist::synth
