#include "data/hlo/layout_states.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tpudist {
namespace {

using Layout = std::vector<std::int64_t>;

Layout descending(std::size_t rank) {
  Layout layout(rank);
  std::iota(layout.rbegin(), layout.rend(), 0);
  return layout;
}

// All choices of one layout for each tensor.
std::vector<LayoutState> all_choices(const std::vector<std::vector<Layout>>& tensors) {
  std::vector<std::vector<Layout>> chosen{{}};
  for (const auto& layouts : tensors) {
    std::vector<std::vector<Layout>> longer;
    for (const auto& begin : chosen) {
      for (const Layout& layout : layouts) {
        longer.push_back(begin);
        longer.back().push_back(layout);
      }
    }
    chosen = std::move(longer);
  }
  std::vector<LayoutState> states;
  for (const auto& own : chosen) states.push_back(state_of(own));
  return states;
}

std::vector<Layout> both_orders(std::int64_t a, std::int64_t b) {
  return {{std::max(a, b), std::min(a, b)}, {std::min(a, b), std::max(a, b)}};
}

// The two minor dimensions of each tensor are batch and feature, in both orders.
std::vector<LayoutState> convolution_states(const HloConvolution& of) {
  return all_choices({both_orders(of.output_batch, of.output_feature),
                      both_orders(of.input_batch, of.input_feature),
                      both_orders(of.kernel_input_feature, of.kernel_output_feature)});
}

// Both orders of the two minor dimensions of output and operands, and the output's default alone.
std::vector<LayoutState> dot_states(std::span<const std::size_t> ranks) {
  std::vector<std::vector<Layout>> tensors;
  for (const std::size_t rank : ranks) {
    tensors.push_back({descending(rank)});
    if (rank < 2) continue;
    tensors.back().push_back(descending(rank));
    std::swap(tensors.back().back()[0], tensors.back().back()[1]);
  }
  std::vector<LayoutState> states = all_choices(tensors);
  states.push_back(state_of({descending(ranks[0])}));
  return states;
}

// Dimensions of output and input that hold the same elements. Size 1 belongs to no factor.
struct Factor {
  Layout output, input;  // ascending
};

// Splits two shapes of equally many elements into their smallest common factors. Empty if there are
// none, or a dimension is 0 or unbounded.
std::vector<Factor> common_factors(const Layout& output, const Layout& input) {
  std::vector<Factor> factors;
  std::size_t o = 0, i = 0;
  const auto skip_ones = [](const Layout& shape, std::size_t& at) {
    while (at < shape.size() && shape[at] == 1) ++at;
  };
  for (skip_ones(output, o), skip_ones(input, i); o < output.size() && i < input.size();
       skip_ones(output, o), skip_ones(input, i)) {
    Factor& own = factors.emplace_back();
    if (output[o] < 1 || input[i] < 1) return {};
    std::uint64_t left = static_cast<std::uint64_t>(output[o]);
    std::uint64_t right = static_cast<std::uint64_t>(input[i]);
    own.output.push_back(static_cast<std::int64_t>(o++));
    own.input.push_back(static_cast<std::int64_t>(i++));
    while (left != right) {
      Layout& list = left < right ? own.output : own.input;
      const Layout& shape = left < right ? output : input;
      std::size_t& at = left < right ? o : i;
      if (at == shape.size() || shape[at] < 1) return {};
      if (shape[at] != 1) {
        std::uint64_t& product = left < right ? left : right;
        if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(shape[at]), &product))
          return {};
        list.push_back(static_cast<std::int64_t>(at));
      }
      ++at;
    }
  }
  return o == output.size() && i == input.size() ? factors : std::vector<Factor>();
}

// Pairs of output and input layouts that make the reshape a bitcast: factors in any order,
// dimensions within them descending, dimensions of size 1 major.
std::vector<LayoutState> reshape_states(const Layout& output, const Layout& input) {
  std::vector<LayoutState> states{state_of({descending(output.size()), descending(input.size())})};
  if (output.empty() || input.empty()) states.push_back(kFreeState);
  const std::vector<Factor> factors = common_factors(output, input);
  if (factors.size() > kDimensions) return states;
  const auto add_ones = [](Layout& layout, const Layout& shape) {
    for (std::size_t d = shape.size(); d-- > 0;)
      if (shape[d] == 1) layout.push_back(static_cast<std::int64_t>(d));
  };
  std::vector<std::size_t> order(factors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.empty()) return states;
  do {
    Layout out, in;
    for (const std::size_t f : order) {
      out.insert(out.end(), factors[f].output.rbegin(), factors[f].output.rend());
      in.insert(in.end(), factors[f].input.rbegin(), factors[f].input.rend());
    }
    add_ones(out, output);
    add_ones(in, input);
    states.push_back(state_of({out, in}));
  } while (std::ranges::next_permutation(order).found);
  return states;
}

}  // namespace

LayoutState state_of(const std::vector<Layout>& tensors) {
  LayoutState state = kFreeState;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::size_t d = 0; d < std::min<std::size_t>(tensors[t].size(), kDimensions); ++d)
      state[t * kDimensions + d] = static_cast<std::int8_t>(tensors[t][d]);
  }
  return state;
}

std::optional<std::vector<LayoutState>> layout_states(const HloInstruction& own,
                                                      std::span<const HloShape* const> shapes) {
  if (own.opcode == "convolution") return convolution_states(own.convolution);
  if (own.opcode == "dot" && shapes.size() == 3)
    return dot_states(std::array{shapes[0]->dimensions.size(), shapes[1]->dimensions.size(),
                                 shapes[2]->dimensions.size()});
  if (own.opcode == "reshape" && shapes.size() == 2)
    return reshape_states(shapes[0]->dimensions, shapes[1]->dimensions);
  return std::nullopt;
}

std::vector<int> tensor_layout(const LayoutState& state, int tensor) {
  std::vector<int> dimensions;
  for (int d = 0; d < kDimensions; ++d) {
    const int value = state[static_cast<std::size_t>(tensor * kDimensions + d)];
    if (value >= 0) dimensions.push_back(value);
  }
  return dimensions;
}

std::string layout_text(std::string_view opcode, const LayoutState& state) {
  const std::array<std::string_view, kTensors> names =
      opcode == "dot" ? std::array<std::string_view, kTensors>{"out", "lhs", "rhs"}
                      : std::array<std::string_view, kTensors>{"out", "in", "kernel"};
  std::string text;
  for (int t = 0; t < kTensors; ++t) {
    const std::vector<int> dimensions = tensor_layout(state, t);
    if (dimensions.empty()) continue;
    text += fmt::format("{}{} {{{}}}", text.empty() ? "" : " ", names[static_cast<std::size_t>(t)],
                        fmt::join(dimensions, ","));
  }
  return text.empty() ? "free" : text;
}

}  // namespace tpudist
