#include "data/hlo/layout_constraints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/hlo/layout_configs.hpp"
#include "data/hlo/text_reader.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Every case that JAX can or cannot constrain.
LayoutSpace space() {
  LayoutSpace space = layout_space(
      read_text_module(
          "HloModule m\n"
          "main {\n"
          "x.1 = f32[32,5,5,256] parameter(0), metadata={op_name=\"x\"}\n"
          "k = f32[3,3,256,256] parameter(1)\n"
          "s = f32[] parameter(2)\n"
          "conv.1 = f32[32,5,5,256] convolution(x.1, k), window={size=3x3 pad=1_1x1_1}, "
          "dim_labels=b01f_01io->b01f, metadata={op_type=\"c\" op_name=\"jit(f)/\\\"conv\"}\n"
          "conv_1 = f32[32,5,5,256] convolution(conv.1, k), window={size=3x3 pad=1_1x1_1}, "
          "dim_labels=b01f_01io->b01f, metadata={op_name=\"jit(f)/transpose(jvp())/conv\"}\n"
          "turned = f32[5,5] copy(conv_1), metadata={op_name=\"jit(f)/dot_general\"}\n"
          "lambda = f32[5,5] dot(turned, turned), metadata={op_name=\"jit(f)/dot_general\"}\n"
          "dot.2 = f32[5,5] dot(lambda, lambda), metadata={op_name=\"jit(f)/dot_general\"}\n"
          "scalar = f32[1] reshape(s), metadata={op_name=\"jit(f)/reshape\"}\n"
          "made = f32[25] reshape(dot.2)\n"
          "}\n",
          "m"),
      {}, "m");
  return space;
}

TEST(LayoutConstraints, PythonCountsMajorToMinorAndSaysWhatItCannotConstrain) {
  const LayoutSpace all = space();
  const std::string text = jax_constraints(all, all.standard(), "best\nof");
  EXPECT_THAT(text, HasSubstr("# best?of\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\n# conv.1: convolution jit(f)/\\\"conv, out {3,0} in {3,0} kernel {3,2}, the "
                "default\n"
                "#   the result has 4 dimensions: only the 2 minor ones are configured\n"
                "#   a (x.1) has 4 dimensions: only the 2 minor ones are configured\n"
                "#   b (k) has 4 dimensions: only the 2 minor ones are configured\n"
                "def conv_1(operation, a, b):\n"
                "    a = with_layout_constraint(a, Layout((1, 2, 0, 3)))\n"
                "    b = with_layout_constraint(b, Layout((0, 1, 2, 3)))\n"
                "    return with_layout_constraint(operation(a, b), Layout((1, 2, 0, 3)))\n"));
  EXPECT_THAT(text, HasSubstr("#   the compiler made the operation: JAX has no name for it\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("def made")));
  EXPECT_THAT(text, HasSubstr("#   an operation of a gradient: JAX has no name for it\n\n"));
  // Its operands were made for it, its result is another dot's operand.
  EXPECT_THAT(text,
              HasSubstr("#   a (turned) is not constrained: the compiler made the tensor, JAX "
                        "has no name for it\n"));
  EXPECT_THAT(text,
              HasSubstr("def lambda_(operation, a, b):\n"
                        "    return with_layout_constraint(operation(a, b), Layout((0, 1)))"));
  EXPECT_THAT(text, HasSubstr("def dot_2(operation, a, b):\n    a = with_layout_constraint(a, "));
  EXPECT_THAT(text, HasSubstr("#   a (s) is a scalar: it has no layout\n"
                              "def scalar_(operation, a):\n"
                              "    return with_layout_constraint(operation(a), Layout((0,)))\n"));
}

TEST(LayoutConstraints, ChangesFollowTheConfiguration) {
  LayoutSpace all = space();
  auto configs = json_configs(
      all, R"([{"conv.1": [[0,3],[3,0],[2,3]], "dot.2": [[0,1]], "scalar": []}])", "j");
  // Data may have a dimension that a tensor lacks.
  const auto dot = std::ranges::find(all.nodes, "dot.2", &ConfigurableNode::name);
  std::uint16_t& chosen = configs.front()[static_cast<std::size_t>(dot - all.nodes.begin())];
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
  EXPECT_THAT(config, HasSubstr("nodes {  # conv.1: convolution\n"
                                "  tensors { dims: 0 dims: 3 }\n"
                                "  tensors { dims: 3 dims: 0 }\n"
                                "  tensors { dims: 2 dims: 3 }\n"
                                "}\n"));
  EXPECT_THAT(config, HasSubstr("  tensors { dims: 0 dims: 1 }\n  tensors { }\n"
                                "  tensors { dims: 9 }\n}\n"));
  EXPECT_THAT(config, HasSubstr("nodes {  # scalar: reshape\n}\n"));
}

}  // namespace
}  // namespace tpudist
