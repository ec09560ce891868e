#include "data/synth/models.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "data/synth/optimizer.hpp"
#include "data/synth/tape.hpp"

namespace tpudist::synth {
namespace {

constexpr int kStages = 4;           // the feature map halves between them
constexpr int kHeadConfigNodes = 5;  // of head() and its backward pass

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
