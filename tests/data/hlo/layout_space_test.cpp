#include "data/hlo/layout_configs.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "data/hlo/tuned_npz.hpp"
#include "data/hlo/tuning_file.hpp"
#include "data/npz/npz_reader.hpp"
#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/data/hlo/sketched_module.hpp"
#include "tests/support/real_data.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using States = std::set<LayoutState>;

LayoutSpace space_of(const std::string& instructions) {
  return layout_space(sketched_module(instructions), {}, "m");
}

std::vector<std::string> texts_of(const ConfigurableNode& node) {
  std::vector<std::string> texts;
  for (const LayoutState& state : node.states) texts.push_back(layout_text(node.opcode, state));
  return texts;
}

TEST(LayoutSpace, FollowsTheRulesOfEachOperation) {
  const LayoutSpace space = space_of(
      "a = f32[32,5,5,256] parameter(0)\n"
      "b = f32[1,7,1,6] parameter(1)\n"
      "s = f32[] parameter(2)\n"
      "conv = f32[32,5,5,256] convolution(a, a), window={size=5x5}, dim_labels=b01f_01io->b01f\n"
      "r = f32[32,6400] reshape(a)\n"
      "ones = f32[7,1,3,2] reshape(b)\n"
      "scalar = f32[1] reshape(s)\n"
      "d = f32[32,32] dot(r, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  ASSERT_EQ(space.nodes.size(), 5u);
  EXPECT_THAT(texts_of(space.nodes[0]),
              ElementsAre("out {0,3} in {0,3} kernel {2,3}", "out {0,3} in {0,3} kernel {3,2}",
                          "out {0,3} in {3,0} kernel {2,3}", "out {0,3} in {3,0} kernel {3,2}",
                          "out {3,0} in {0,3} kernel {2,3}", "out {3,0} in {0,3} kernel {3,2}",
                          "out {3,0} in {3,0} kernel {2,3}", "out {3,0} in {3,0} kernel {3,2}"));
  EXPECT_EQ(space.nodes[0].standard, 7);
  EXPECT_THAT(texts_of(space.nodes[1]),
              ElementsAre("out {0,1} in {0,3,2,1}", "out {1,0} in {3,2,1,0}"));
  // Dimensions of size 1 are the major ones; the default descends all the same.
  EXPECT_THAT(texts_of(space.nodes[2]),
              ElementsAre("out {0,3,2,1} in {1,3,2,0}", "out {3,2,0,1} in {3,1,2,0}",
                          "out {3,2,1,0} in {3,2,1,0}"));
  EXPECT_THAT(texts_of(space.nodes[3]), ElementsAre("free", "out {0}"));
  EXPECT_EQ(space.nodes[3].standard, 1);
  EXPECT_EQ(space.nodes[4].states.size(), 9u);
  EXPECT_THAT(texts_of(space.nodes[4]), ::testing::Contains("out {1,0}"));
  EXPECT_THAT(texts_of(space.nodes[4]), ::testing::Contains("out {1,0} lhs {0,1} rhs {1,0}"));
}

TEST(LayoutSpace, ReshapesWithoutCommonFactorsKeepTheirDefault) {
  const LayoutSpace space = space_of(
      "a = f32[0,5] parameter(0)\n"
      "b = f32[6,4] parameter(1)\n"
      "c = f32[9223372036854775807,4,9223372036854775807] parameter(2)\n"
      "x = f32[5,0] reshape(a)\n"
      "y = f32[5,5] reshape(b)\n"
      "z = f32[4,9223372036854775807,2,2] reshape(c)");
  for (const ConfigurableNode& node : space.nodes) EXPECT_EQ(node.states.size(), 1u) << node.name;
}

// Two pairs of alike operations, and one of another default.
LayoutSpace grouped() {
  LayoutSpace space = space_of(
      "p = f32[4,6] parameter(0)\n"
      "a = f32[4,6] reshape(p)\n"
      "b = f32[4,6] reshape(p)\n"
      "c = f32[4,6] reshape(p)\n"
      "d = f32[4,6] dot(p, p)");
  set_standard(space.nodes[1], space.nodes[1].states[0]);
  group_alike(space);
  return space;
}

TEST(LayoutSpace, GroupsOperationsOfEqualOpcodeAndDefault) {
  const LayoutSpace space = grouped();
  EXPECT_THAT(space.groups, ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
  EXPECT_EQ(space.size(), 2 * 2 * 9);
}

TEST(LayoutSpace, MakesConfigurations) {
  const LayoutSpace space = grouped();
  const std::vector<LayoutConfig> few = random_configs(space, 10, 3);
  EXPECT_EQ(few.size(), 10u);
  EXPECT_EQ(few.front(), space.standard());
  EXPECT_EQ(std::set<LayoutConfig>(few.begin(), few.end()).size(), 10u);
  EXPECT_EQ(random_configs(space, 10, 3), few);
  EXPECT_NE(random_configs(space, 10, 4), few);
  for (const LayoutConfig& config : few) EXPECT_EQ(config[0], config[2]);
  const std::vector<LayoutConfig> all = random_configs(space, 1000, 3);
  EXPECT_EQ(std::set<LayoutConfig>(all.begin(), all.end()).size(), 36u);
  EXPECT_EQ(all.size(), 36u);
  EXPECT_EQ(neighbour_configs(space).size(), 1u + 1 + 1 + 8);
}

TEST(LayoutSpace, ReadsConfigurationsThatNameInstructions) {
  LayoutSpace space = grouped();
  const auto configs = json_configs(space, R"([{"c": [[0,1],[0,1]]}, {"d": [[1,0],[1]]}])", "j");
  ASSERT_EQ(configs.size(), 2u);
  EXPECT_EQ(layout_text("reshape", space.nodes[2].states[configs[0][2]]), "out {0,1} in {0,1}");
  EXPECT_EQ(configs[0][0], space.nodes[0].standard);
  EXPECT_EQ(layout_text("dot", space.nodes[3].states[configs[1][3]]), "out {1,0} lhs {1}");
  EXPECT_EQ(json_configs(space,
                         R"({"file": "m", "ranking": [{"rank": 1, "layouts": {"c": [[0,1],[0,1]]}},
                             {"rank": 2, "layouts": {"d": [[1,0],[1]]}}]})",
                         "j"),
            configs);
  const auto refusal = [&](const std::string& json) {
    return message_of<DataError>([&] { json_configs(space, json, "j"); });
  };
  EXPECT_THAT(refusal("{"), HasSubstr("j: is no JSON: parse error at line 1"));
  EXPECT_THAT(refusal("{}"), HasSubstr("j: is no JSON list"));
  EXPECT_THAT(refusal("[]"), HasSubstr("it is empty"));
  EXPECT_THAT(refusal(R"({"ranking": [{"rank": 1}]})"), HasSubstr("it is empty"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("is no JSON list"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("configuration 0: is no object"));
  EXPECT_THAT(refusal(R"([{}, {"p": []}])"), HasSubstr("configuration 1: p is no configurable"));
  EXPECT_THAT(refusal(R"([{"a": [[],[],[],[]]}])"), HasSubstr("at most 3 layouts"));
  EXPECT_THAT(refusal(R"([{"a": [3]}])"), HasSubstr("layouts of at most 6"));
  EXPECT_THAT(refusal(R"([{"a": [[-1]]}])"), HasSubstr("-1 is no dimension of its output"));
  EXPECT_THAT(refusal(R"([{"c": [[0,1],[0,7]]}])"),
              HasSubstr("c: 7 is no dimension of its operand 0, which has 2"));
  EXPECT_THAT(refusal(R"([{"c": [[0,1],[0,1],[0]]}])"), HasSubstr("so 2 layouts at most"));
  EXPECT_THAT(refusal(R"([{"a": [[1,1]]}])"), HasSubstr("dimension 1 stands twice"));
  EXPECT_THAT(refusal(R"([{"a": [[1,0]], "b": [], "a": [[0,1]]}])"),
              HasSubstr("j: \"a\" stands twice in a configuration"));
  EXPECT_EQ(json_configs(space, R"([{"a": []}, {"a": []}])", "j").size(), 2u);
  EXPECT_THAT(refusal(R"([{"%d": []}])"), HasSubstr("instruction; did you mean d?"));
  space.nodes[3].name = "f/dot.1";  // of two computations
  EXPECT_THAT(refusal(R"([{"dot.1": []}])"), HasSubstr("instruction; did you mean f/dot.1?"));
  EXPECT_THAT(refusal(R"([{"x.17": []}])"), Not(HasSubstr("did you mean")));
}

TEST(LayoutSpace, TakesDefaultsFromADumpAfterLayoutAssignment) {
  const HloModule before = HloFile(jax_modules() / "layouts_before.pb").module(0).module;
  HloModule after = HloFile(jax_modules() / "layouts_after.pb").module(0).module;
  LayoutSpace space = layout_space(before, {}, "m");
  const std::size_t all = space.nodes.size();
  EXPECT_EQ(set_standards(space, before, after), all);
  for (HloComputation& computation : after.computations) {
    for (HloInstruction& own : computation.instructions) {
      if (own.opcode == "dot") own.shape.minor_to_major = {0, 1};
      if (own.opcode == "convolution") own.name = "another";
    }
  }
  EXPECT_LT(set_standards(space, before, after), all);
  for (const ConfigurableNode& node : space.nodes) {
    if (node.opcode == "dot")
      EXPECT_THAT(layout_text("dot", node.states[node.standard]), HasSubstr("out {0,1}"));
  }
}

// A module of what the columns of an NPZ say about its configurable operations.
HloModule module_of(const NpzReader& npz) {
  const auto features = npz.open("node_feat").read_floats();
  const auto opcodes = npz.open("node_opcode").read_floats();
  const auto edges = npz.open("edge_index").read_floats();
  HloModule module;
  HloComputation& all = module.computations.emplace_back();
  for (std::size_t i = 0; i < opcodes.size(); ++i) {
    HloInstruction& own = all.instructions.emplace_back();
    const float* row = &features[i * kNodeFeatures];
    const auto at = [&](int column) { return static_cast<std::int64_t>(row[column]); };
    own.id = static_cast<std::int64_t>(i);
    own.name = std::to_string(i);
    own.opcode = opcodes[i] == 26 ? "convolution" : opcodes[i] == 34 ? "dot" : "other";
    if (opcodes[i] == 75) own.opcode = "reshape";
    for (int d = 21; d < 27 && at(d) > 0; ++d) own.shape.dimensions.push_back(at(d));
    own.convolution = {at(93), at(94), at(99), at(100), at(105), at(106), {}, {}};
  }
  for (std::size_t e = 0; e < edges.size(); e += 2)
    all.instructions[edges[e]].operands.push_back(static_cast<std::int64_t>(edges[e + 1]));
  return module;
}

// The states of each node in an array [rows, nodes, 18].
std::vector<States> measured_states(const std::vector<float>& configs, std::size_t nodes) {
  std::vector<States> states(nodes);
  for (std::size_t i = 0; i < configs.size() / kLayoutConfigFeatures; ++i) {
    LayoutState state;
    for (std::size_t d = 0; d < state.size(); ++d)
      state[d] = static_cast<std::int8_t>(configs[i * kLayoutConfigFeatures + d]);
    states[i % nodes].insert(state);
  }
  return states;
}

// Nodes whose states are in bijection over all rows of an array [rows, nodes, 18].
std::map<std::vector<int>, std::vector<std::size_t>> bijective_nodes(
    const std::vector<float>& configs, std::size_t nodes) {
  std::vector<std::map<LayoutState, int>> number(nodes);
  std::vector<std::vector<int>> columns(nodes);  // states by first occurrence
  for (std::size_t i = 0; i < configs.size() / kLayoutConfigFeatures; ++i) {
    LayoutState state;
    for (std::size_t d = 0; d < state.size(); ++d)
      state[d] = static_cast<std::int8_t>(configs[i * kLayoutConfigFeatures + d]);
    auto& known = number[i % nodes];
    columns[i % nodes].push_back(known.emplace(state, std::ssize(known)).first->second);
  }
  std::map<std::vector<int>, std::vector<std::size_t>> groups;
  for (std::size_t node = 0; node < nodes; ++node) groups[columns[node]].push_back(node);
  return groups;
}

// The compiler of the data set changed operations of equal opcode and equal states together.
TEST(LayoutSpace, ColumnsOfAlexNetAreNineGroupsInBijection) {
  const auto root = real_data_root();
  if (!root) GTEST_SKIP() << "the real data set is not on this machine (TPUDIST_REAL_DATA)";
  const NpzReader npz(*root / "npz/layout/xla/random/train/alexnet_train_batch_32.npz");
  const LayoutSpace space = layout_space(module_of(npz), {}, "m");
  const auto groups = bijective_nodes(npz.open("node_config_feat").read_floats(), 26);
  EXPECT_EQ(groups.size(), 9u);
  double size = 1;
  for (const auto& [column, nodes] : groups) {
    const ConfigurableNode& first = space.nodes[nodes.front()];
    for (const std::size_t node : nodes) {
      EXPECT_EQ(space.nodes[node].opcode, first.opcode);
      EXPECT_EQ(space.nodes[node].states.size(), first.states.size());
    }
    size *= 1 + *std::ranges::max_element(column);
  }
  EXPECT_EQ(size, 2'654'208);
}

TEST(LayoutSpace, EqualsTheMeasuredStatesOfAlexNet) {
  const auto root = real_data_root();
  if (!root) GTEST_SKIP() << "the real data set is not on this machine (TPUDIST_REAL_DATA)";
  const NpzReader npz(*root / "npz/layout/xla/random/train/alexnet_train_batch_32.npz");
  LayoutSpace space = layout_space(module_of(npz), {}, "m");
  // The NPZ does not say what is the default. The gradient of one weight lies the other way round.
  ConfigurableNode& gradient = space.nodes[24];
  EXPECT_EQ(gradient.name, "312");
  set_standard(gradient, gradient.states.front());
  const auto measured = measured_states(npz.open("node_config_feat").read_floats(), 26);
  ASSERT_EQ(space.nodes.size(), 26u);
  std::size_t count = 0;
  for (std::size_t i = 0; i < 26; ++i) {
    const auto& own = space.nodes[i].states;
    EXPECT_EQ(States(own.begin(), own.end()), measured[i]) << space.nodes[i].name;
    count += own.size();
  }
  EXPECT_EQ(count, 199u);
}

TEST(LayoutSpace, HoldsTheMeasuredStatesOfResNetAndItsEightGroups) {
  const auto root = real_data_root();
  if (!root) GTEST_SKIP() << "the real data set is not on this machine (TPUDIST_REAL_DATA)";
  const HloFile file(*root / "pb/module_tuning_data_layout.pb");
  const TunedModule tuned = file.module(0);
  LayoutSpace space = layout_space(tuned.module, {}, "m");
  ASSERT_EQ(space.nodes.size(), tuned.config_nodes.size());
  std::vector<float> configs(tuned.runs.size() * 62 * kLayoutConfigFeatures);
  const auto width = std::size_t{62} * kLayoutConfigFeatures;
  for (std::size_t run = 0; run < tuned.runs.size(); ++run)
    write_layout_config(tuned.runs[run].config, std::span(configs).subspan(run * width, width),
                        "m");
  const auto measured = measured_states(configs, 62);
  std::size_t count = 0, unmeasured = 0;
  for (std::size_t i = 0; i < 62; ++i) {
    EXPECT_EQ(space.nodes[i].node, tuned.config_nodes[i]);
    const States own(space.nodes[i].states.begin(), space.nodes[i].states.end());
    EXPECT_TRUE(std::ranges::includes(own, measured[i])) << space.nodes[i].name;
    count += own.size();
    unmeasured += own.size() - measured[i].size();
  }
  EXPECT_EQ(count, 53u * 8 + 5 * 2 + 4 * 6);
  EXPECT_EQ(unmeasured, count - 316);
  const auto standard = std::ranges::find(tuned.runs, true, &TuningRun::is_default);
  set_standards(space, std::span(configs).subspan(
                           static_cast<std::size_t>(standard - tuned.runs.begin()) * width, width));
  group_alike(space);
  std::multiset<std::size_t> sizes;
  for (const auto& group : space.groups) sizes.insert(group.size());
  EXPECT_THAT(sizes, ElementsAre(1, 1, 1, 4, 4, 5, 15, 31));
}

// Every case that JAX can or cannot constrain.
LayoutSpace space() {
  LayoutSpace space = layout_space(
      sketched_module(
          "x.1 = f32[32,5,5,256] parameter(0), metadata={op_name=\"x\"}\n"
          "k = f32[3,3,256,256] parameter(1)\n"
          "s = f32[] parameter(2)\n"
          "conv.1 = f32[32,5,5,256] convolution(x.1, k), window={size=3x3 pad=1_1x1_1}, "
          "dim_labels=b01f_01io->b01f, metadata={op_type=\"c\" op_name=\"jit(f)/\\\"conv\" "
          "source_file=\"model.py\" source_line=12}\n"
          "conv_1 = f32[32,5,5,256] convolution(conv.1, k), window={size=3x3 pad=1_1x1_1}, "
          "dim_labels=b01f_01io->b01f, metadata={op_name=\"jit(f)/transpose(jvp())/conv\" "
          "source_file=\"model.py\" source_line=13}\n"
          "turned = f32[5,5] copy(conv_1), metadata={op_name=\"jit(f)/dot_general\"}\n"
          "lambda = f32[5,5] dot(turned, turned), metadata={op_name=\"jit(f)/dot_general\"}\n"
          "dot.2 = f32[5,5] dot(lambda, lambda), metadata={op_name=\"jit(f)/dot_general\"}\n"
          "scalar = f32[1] reshape(s), metadata={op_name=\"jit(f)/reshape\"}\n"
          "made = f32[25] reshape(dot.2)"),
      {}, "m");
  return space;
}

TEST(LayoutConstraints, PythonCountsMajorToMinorAndSaysWhatItCannotConstrain) {
  LayoutSpace all = space();
  // The operands of `lambda` were made for it, its result is another dot's operand.
  const auto configs =
      json_configs(all,
                   R"([{"conv.1": [[0,3],[3,0],[2,3]], "conv_1": [[0,3],[3,0],[3,2]],
           "lambda": [[0,1],[0,1],[1,0]], "scalar": [], "made": [[0],[0,1]]}])",
                   "j");
  const std::string text = jax_constraints(all, configs.front(), "best\nof");
  EXPECT_THAT(
      text,
      StartsWith("# best?of\n"
                 "# 3 of 7 changes can be said in JAX; not these:\n"
                 "#   conv_1 model.py:13: an operation of a gradient: JAX has no name for it\n"
                 "#   lambda: a (turned) is not constrained: the compiler made the tensor, JAX has "
                 "no name for it\n"
                 "#   scalar: the result is not constrained: the compiler chooses\n"
                 "#   made: the compiler made the operation: JAX has no name for it\n"
                 "# For JAX, which counts dimensions major to minor."));
  EXPECT_THAT(
      text,
      HasSubstr("\n# conv.1: convolution jit(f)/\\\"conv model.py:12, out {0,3} in {3,0} "
                "kernel {2,3}\n"
                "#   the result has 4 dimensions: only the 2 minor ones are configured\n"
                "#   a (x.1) has 4 dimensions: only the 2 minor ones are configured\n"
                "#   b (k) has 4 dimensions: only the 2 minor ones are configured\n"
                "def conv_1(operation, a, b):\n"
                "    a = with_layout_constraint(a, Layout((1, 2, 0, 3)))\n"
                "    b = with_layout_constraint(b, Layout((0, 1, 3, 2)))\n"
                "    return with_layout_constraint(operation(a, b), Layout((1, 2, 3, 0)))\n"));
  EXPECT_THAT(text,
              HasSubstr("def lambda_(operation, a, b):\n"
                        "    return with_layout_constraint(operation(a, b), Layout((1, 0)))"));
  for (const char* without : {"def made", "def conv_1_", "def dot_2", "def scalar_"})
    EXPECT_THAT(text, Not(HasSubstr(without)));
}

TEST(LayoutConstraints, PythonNamesChangesAlone) {
  LayoutSpace all = space();
  EXPECT_EQ(jax_constraints(all, all.standard(), "t"),
            "# t\n# no layout differs from the default: nothing to apply\n");
  const auto configs = json_configs(all, R"([{"conv.1": [[0,3],[3,0],[3,2]]}])", "j");
  const std::string text = jax_constraints(all, configs.front(), "t");
  EXPECT_THAT(text, StartsWith("# t\n# 1 of 1 change can be said in JAX\n# For JAX, "));
  EXPECT_THAT(text, HasSubstr("\ndef conv_1("));
  EXPECT_EQ(text.find("\ndef "), text.rfind("\ndef "));
}

TEST(LayoutConstraints, ChangesFollowTheConfiguration) {
  LayoutSpace all = space();
  auto configs = json_configs(
      all, R"([{"conv.1": [[0,3],[3,0],[2,3]], "dot.2": [[0,1]], "scalar": []}])", "j");
  // Data may have a dimension that a tensor lacks.
  const auto dot = std::ranges::find(all.nodes, "dot.2", &ConfigurableNode::name);
  std::uint16_t& chosen = configs.front()[dot - all.nodes.begin()];
  LayoutState odd = dot->states[chosen];
  odd[2 * kDimensions] = 9;
  chosen = static_cast<std::uint16_t>(state_index(*dot, odd));
  const std::string text = jax_constraints(all, configs.front(), "t");
  EXPECT_THAT(text, HasSubstr("Layout((1, 2, 3, 0))"));
  EXPECT_THAT(text,
              HasSubstr("def dot_2(operation, a, b):\n"
                        "    return with_layout_constraint(operation(a, b), Layout((1, 0)))"));
  EXPECT_THAT(text, HasSubstr("#   a (lambda) is not constrained: the compiler chooses\n"));
  EXPECT_THAT(text, HasSubstr("#   b (lambda) is not constrained: it has 2 dimensions, not {9}\n"));
  EXPECT_THAT(text, Not(HasSubstr("def scalar_")));
  EXPECT_EQ(layout_config_text(all, configs.front(), "t").substr(0, std::string("# t\n").size()),
            "# t\n");
  const std::string config = layout_config_text(all, configs.front(), "t");
  EXPECT_THAT(config, HasSubstr("nodes {  # conv.1: convolution model.py:12, not the default\n"
                                "  tensors { dims: 0 dims: 3 }\n"
                                "  tensors { dims: 3 dims: 0 }\n"
                                "  tensors { dims: 2 dims: 3 }\n"
                                "}\n"));
  EXPECT_THAT(config, HasSubstr("  tensors { dims: 0 dims: 1 }\n  tensors { }\n"
                                "  tensors { dims: 9 }\n}\n"));
  EXPECT_THAT(config, HasSubstr("nodes {  # scalar: reshape, not the default\n}\n"));
  EXPECT_THAT(config, HasSubstr("nodes {  # lambda: dot\n"));
}

}  // namespace
}  // namespace tpudist::test
