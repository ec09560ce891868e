#include "data/synth/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "data/synth/tape.hpp"

namespace tpudist::synth {
namespace {

constexpr int kStages = 4;           // the feature map halves between them
constexpr int kHeadConfigNodes = 5;  // of head() and its backward pass

constexpr double kEdgesPerNode = 1.65;  // as in the real graphs
constexpr int kChain = 12;              // operations of one weight in a row

// Operations that are still to come before the root tuple need this many operands on average.
double operands_needed(const ModelSpec& spec, const Program& program, std::int64_t edges,
                       std::int64_t results) {
  const std::int64_t left = spec.nodes - 1 - program.nodes();
  const std::int64_t tuple = results + left / kChain + 1;
  return static_cast<double>(edges - program.edges() - tuple) / static_cast<double>(left);
}

// The tuple of `count` results; where there are fewer, of other late operations too.
void add_root(const ModelSpec& spec, std::int64_t count, std::vector<std::int32_t> results,
              Program& program) {
  if (program.nodes() >= spec.nodes || count < 1 || count > program.nodes()) {
    throw ConfigError(fmt::format("{}: cannot make {} nodes with {} edges", spec.name, spec.nodes,
                                  program.edges() + count));
  }
  std::vector<bool> taken(program.ops.size());
  for (const std::int32_t result : results) taken[static_cast<std::size_t>(result)] = true;
  for (std::int64_t i = program.nodes() - 1; std::ssize(results) < count && i >= 0; --i) {
    if (!taken[static_cast<std::size_t>(i)]) results.push_back(static_cast<std::int32_t>(i));
  }
  results.resize(static_cast<std::size_t>(count));
  program.add(opcode::tuple, Dtype::tuple, {}, std::move(results));
}

// Appends chains of elementwise operations on the tape's weights and their gradients, and the root
// tuple of their results. The program then has exactly spec.nodes operations and spec.edges
// operands (about 1.65 per operation if 0). Throws ConfigError where that is impossible.
void add_optimizer(const ModelSpec& spec, Tape& tape, Program& program) {
  const std::int64_t edges =
      spec.edges ? spec.edges : std::llround(kEdgesPerNode * static_cast<double>(spec.nodes));
  const auto weights = tape.weights();
  std::vector<std::int32_t> results;
  for (std::size_t i = 0; program.nodes() < spec.nodes - 1; ++i) {
    const Tape::Weight weight = weights[i % weights.size()];
    const Shape shape = program[weight.value].shape;
    const std::int32_t state = tape.parameter(shape);
    std::int32_t value = weight.gradient;
    std::int32_t mask = -1;
    for (int k = 0; k < kChain && program.nodes() < spec.nodes - 1; ++k) {
      const double need = operands_needed(spec, program, edges, std::ssize(results));
      constexpr std::uint8_t kUnary[] = {opcode::sqrt, opcode::negate, opcode::convert};
      constexpr std::uint8_t kBinary[] = {opcode::multiply, opcode::add, opcode::subtract,
                                          opcode::multiply, opcode::maximum};
      const std::int32_t other = k % 2 ? state : weight.value;
      if (need > 2 && mask < 0) {
        mask = program.add(opcode::compare, Dtype::pred, shape, {value, other});
      } else if (need > 2) {
        value = program.add(opcode::select, spec.type, shape, {mask, value, other});
      } else if (need > 1) {
        value = program.add(kBinary[k % 5], spec.type, shape, {value, other});
      } else {
        value = program.add(kUnary[k % 3], spec.type, shape, {value});
      }
    }
    results.push_back(value);
  }
  add_root(spec, edges - program.edges(), std::move(results), program);
}

class ModelBuilder {
 public:
  explicit ModelBuilder(const ModelSpec& spec) : spec_(spec), tape_(program_, spec.type) {}

  Program build() {
    program_.ops.reserve(static_cast<std::size_t>(spec_.nodes));
    program_.splits.push_back(0);
    std::int32_t x = forward();
    program_.splits.push_back(program_.nodes());
    tape_.backward(x);
    reach_config_nodes();
    add_optimizer(spec_, tape_, program_);
    program_.splits.push_back(program_.nodes());
    return std::move(program_);
  }

 private:
  bool is_sequence() const {
    return spec_.style == Style::transformer || spec_.style == Style::recurrent;
  }
  std::int64_t final_nodes() const { return program_.nodes() + tape_.pending_nodes(); }
  std::int64_t final_config_nodes() const {
    return program_.config_nodes() + tape_.pending_config_nodes();
  }

  std::int32_t forward() {
    Shape input{spec_.batch * spec_.sequence, spec_.width};
    if (!is_sequence()) {
      input = {spec_.batch, spec_.image, spec_.image};
      if (spec_.style == Style::volume_conv) input.push(spec_.image);
      input.push(spec_.width / 2);
    }
    std::int32_t x = tape_.parameter(input);
    const auto room =
        static_cast<std::int64_t>(spec_.body_share * static_cast<double>(spec_.nodes));
    std::int64_t blocks_left = 1, nodes = 0, config_nodes = 0, largest = 0, largest_config = 0;
    for (std::int64_t number = 0; blocks_left > 0; ++number) {
      x = block(x, number);
      largest = std::max(largest, final_nodes() - nodes);
      largest_config = std::max(largest_config, final_config_nodes() - config_nodes);
      nodes = final_nodes();
      config_nodes = final_config_nodes();
      blocks_left = (room - nodes) / largest;
      if (spec_.config_nodes) {
        blocks_left = std::min(
            blocks_left, (spec_.config_nodes - kHeadConfigNodes - config_nodes) / largest_config);
      }
      if (number == 1) stage_blocks_ = std::max<std::int64_t>(1, (blocks_left + 2) / kStages);
    }
    return is_sequence() || spec_.nodes < 100 ? x : head(x);
  }

  std::int32_t head(std::int32_t x) {
    while (program_[x].shape[1] > 7) x = tape_.max_pool(x);
    const std::int64_t features = program_[x].shape.elements() / spec_.batch;
    return tape_.bias(tape_.dot(tape_.reshape(x, {spec_.batch, features}), 1000));
  }

  std::int32_t block(std::int32_t x, std::int64_t number) {
    if (is_sequence()) {
      if (spec_.style == Style::recurrent) return gated_block(x);
      return number % 2 ? attention_block(x) : feed_forward_block(x);
    }
    const bool next_stage = number > 0 && number % stage_blocks_ == 0;
    if (next_stage && program_[x].shape[1] >= 8) {
      x = tape_.max_pool(x);
      channels_ = std::min<std::int64_t>(2 * channels_, 8 * spec_.width);
    }
    switch (spec_.style) {
      case Style::residual_conv:
        return residual_block(x);
      case Style::branched_conv:
        return branched_block(x);
      default:
        return plain_block(x);
    }
  }

  std::int32_t plain_block(std::int32_t x) {
    x = tape_.relu(tape_.bias(tape_.convolution(x, channels_, 3, 1)));
    return tape_.relu(tape_.normalise(tape_.convolution(x, channels_, 3, 1)));
  }

  std::int32_t residual_block(std::int32_t x) {
    const Shape in = program_[x].shape;
    if (in[in.rank - 1] != channels_) x = tape_.bias(tape_.convolution(x, channels_, 1, 1));
    tape_.begin_block(x);
    std::int32_t y = tape_.relu(tape_.bias(tape_.convolution(x, channels_, 3, 1)));
    y = tape_.bias(tape_.convolution(y, channels_, 3, 1));
    return tape_.relu(tape_.add_residual(y, x));
  }

  std::int32_t branched_block(std::int32_t x) {
    tape_.begin_block(x);
    const std::int32_t main = tape_.relu(tape_.bias(tape_.convolution(x, channels_, 1, 1)));
    tape_.begin_branch();
    const std::int32_t side = tape_.relu(tape_.convolution(x, channels_, 3, 1));
    tape_.end_branch();
    return tape_.concatenate(main, side);
  }

  std::int32_t feed_forward_block(std::int32_t x) {
    tape_.begin_block(x);
    std::int32_t y = tape_.bias(tape_.dot(x, 4 * spec_.width));
    y = tape_.combine(opcode::multiply, y, tape_.elementwise(opcode::tanh, y));
    y = tape_.bias(tape_.dot(y, spec_.width));
    return tape_.normalise(tape_.add_residual(y, x));
  }

  // One of query, key and value as [batch, heads, rows, d].
  std::int32_t heads(std::int32_t x) {
    constexpr std::int64_t kHeadSize = 64;
    const std::int32_t y = tape_.bias(tape_.dot(x, spec_.width));
    const std::int64_t size = std::min(kHeadSize, spec_.width);
    const Shape split{spec_.batch, spec_.sequence, spec_.width / size, size};
    return tape_.transpose(tape_.reshape(y, split), {0, 2, 1, 3});
  }

  std::int32_t attention_block(std::int32_t x) {
    tape_.begin_block(x);
    const std::int32_t query = heads(x);
    tape_.begin_branch();
    const std::int32_t key = heads(x);
    tape_.end_branch();
    tape_.begin_branch();
    const std::int32_t value = heads(x);
    tape_.end_branch();
    std::int32_t y = tape_.softmax(tape_.batch_dot(query, key, true));
    y = tape_.transpose(tape_.batch_dot(y, value, false), {0, 2, 1, 3});
    y = tape_.reshape(y, program_[x].shape);
    y = tape_.bias(tape_.dot(y, spec_.width));
    return tape_.normalise(tape_.add_residual(y, x));
  }

  std::int32_t gated_block(std::int32_t x) {
    tape_.begin_block(x);
    const std::int32_t y = tape_.elementwise(opcode::tanh, tape_.bias(tape_.dot(x, spec_.width)));
    tape_.begin_branch();
    const std::int32_t gate = tape_.elementwise(opcode::exponential, tape_.dot(x, spec_.width));
    tape_.end_branch();
    return tape_.add_residual(tape_.combine(opcode::multiply, y, gate), x);
  }

  // Flattens weights until the number of configurable nodes is what was asked for.
  void reach_config_nodes() {
    if (!spec_.config_nodes) return;
    const auto weights = tape_.weights();
    for (std::size_t i = 0; program_.config_nodes() < spec_.config_nodes; ++i) {
      const Op& weight = program_[weights[i % weights.size()].value];
      program_.add(opcode::reshape, spec_.type, {weight.shape.elements()},
                   {weights[i % weights.size()].value});
    }
    if (program_.config_nodes() != spec_.config_nodes) {
      throw ConfigError(
          fmt::format("a model of {} nodes cannot have {} configurable nodes: its "
                      "smallest form has {}",
                      spec_.nodes, spec_.config_nodes, program_.config_nodes()));
    }
  }

  const ModelSpec& spec_;
  Program program_;
  Tape tape_;
  std::int64_t channels_ = spec_.width, stage_blocks_ = 1;
};

}  // namespace

Program build_model(const ModelSpec& spec) {
  return ModelBuilder(spec).build();
}

}  // namespace tpudist::synth
