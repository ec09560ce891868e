#include "data/synth/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {
namespace {

constexpr double kEdgesPerNode = 1.65;           // as in the real graphs
constexpr std::int64_t kMostConfigNodes = 3143;  // of the real graphs
constexpr int kSmall = 100;                      // smaller programs have short blocks, and no head
constexpr int kChain = 12;                       // operations of one weight in a row

// The mean number of operands for each operation still to come before the root tuple.
double operands_needed(const ModelSpec& spec, const Program& program, std::int64_t edges,
                       std::int64_t results) {
  const std::int64_t left = spec.nodes - 1 - program.nodes();
  const std::int64_t tuple = results + left / kChain + 1;
  return static_cast<double>(edges - program.edges() - tuple) / static_cast<double>(left);
}

// The tuple of `count` results, filled up with other late operations if there are fewer.
void add_root(const ModelSpec& spec, std::int64_t count, std::vector<std::int32_t> results,
              Program& program) {
  if (program.nodes() >= spec.nodes || count < 1 || count > program.nodes()) {
    throw ConfigError(fmt::format("{}: cannot make {} nodes with {} edges", spec.name, spec.nodes,
                                  program.edges() + count));
  }
  std::vector<bool> taken(program.ops.size());
  for (const std::int32_t result : results) taken[result] = true;
  for (std::int64_t i = program.nodes() - 1; std::ssize(results) < count && i >= 0; --i) {
    if (!taken[i]) results.push_back(static_cast<std::int32_t>(i));
  }
  results.resize(count);
  program.add(opcode::tuple, Dtype::tuple, {}, std::move(results));
}

// Appends chains of elementwise operations on the weights and their gradients, and the root tuple
// of their results. The program then has exactly spec.nodes operations and spec.edges operands
// (about 1.65 per operation if 0). Throws ConfigError if that is impossible.
void add_optimizer(const ModelSpec& spec, const std::vector<Weight>& weights, Program& program) {
  const std::int64_t edges =
      spec.edges ? spec.edges : std::llround(kEdgesPerNode * static_cast<double>(spec.nodes));
  std::vector<std::int32_t> results;
  for (std::size_t i = 0; program.nodes() < spec.nodes - 1; ++i) {
    const Weight weight = weights[i % weights.size()];
    const Shape shape = program[weight.value].shape;
    const std::int32_t state = program.add(opcode::parameter, spec.type, shape);
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

// Writes layers: x is [batch, spatial..., channels] or [rows, features].
class Layers {
 public:
  Layers(Program& program, Dtype type) : program_(program), type_(type) {}

  std::int32_t input(const Shape& shape) {
    inputs_.push_back(weight(shape));
    return inputs_.back();
  }
  const std::vector<std::int32_t>& inputs() const { return inputs_; }
  std::int32_t weight(const Shape& shape) { return add(opcode::parameter, shape, {}); }
  std::int32_t add(std::uint8_t code, const Shape& shape, std::vector<std::int32_t> operands) {
    return program_.add(code, type_, shape, std::move(operands));
  }
  std::int32_t map(std::uint8_t code, std::vector<std::int32_t> operands) {
    const Shape shape = program_[operands[0]].shape;
    return add(code, shape, std::move(operands));
  }
  const Shape& shape(std::int32_t op) const { return program_[op].shape; }
  std::int64_t width(std::int32_t op) const { return shape(op)[shape(op).rank - 1]; }

  std::int32_t dot_with(std::int32_t w, std::int32_t x) {
    return product(x, w, {shape(x)[0], width(w)}, {1, 0});
  }
  std::int32_t dot(std::int32_t x, std::int64_t features) {
    return dot_with(weight({width(x), features}), x);
  }
  // A product of [batch, heads, rows, d]: a b^T if `transposed`, else a b.
  std::int32_t batch_dot(std::int32_t a, std::int32_t b, bool transposed) {
    Shape out = shape(a);
    out[3] = shape(b)[transposed ? 2 : 3];
    return product(a, b, out, {3, transposed ? 3 : 2});
  }
  std::int32_t convolution(std::int32_t x, std::int64_t channels, std::int64_t side) {
    Shape out = shape(x);
    const int spatial = out.rank - 2, last = out.rank - 1;
    Shape kernel = Shape::filled(spatial, side);
    kernel.push(out[last]);
    kernel.push(channels);
    out[last] = channels;
    const std::int32_t y = product(x, weight(kernel), out, {last, spatial}, opcode::convolution);
    Op& op = program_.ops[y];
    op.convolution = ConvolutionKind::forward;
    op.flops *= static_cast<double>(kernel.elements() / (kernel[spatial] * channels));
    const Shape ones = Shape::filled(spatial, 1);
    op.window = {Shape::filled(spatial, side), ones, Shape::filled(spatial, (side - 1) / 2),
                 Shape::filled(spatial, side / 2), ones};
    return y;
  }
  std::int32_t reshape(std::int32_t x, const Shape& to) { return add(opcode::reshape, to, {x}); }
  std::int32_t transpose(std::int32_t x, const Shape& order) {
    Shape out = shape(x);
    for (int i = 0; i < order.rank; ++i) out[i] = shape(x)[static_cast<int>(order[i])];
    const std::int32_t y = add(opcode::transpose, out, {x});
    program_.ops[y].dimensions = order;
    return y;
  }
  std::int32_t bias(std::int32_t x) {
    const int last = shape(x).rank - 1;
    const std::int32_t wide = add(opcode::broadcast, shape(x), {weight({width(x)})});
    program_.ops[wide].dimensions = {last};
    return map(opcode::add, {x, wide});
  }
  std::int32_t relu(std::int32_t x) {
    const std::int32_t zero = add(opcode::constant, {}, {});
    return map(opcode::maximum, {x, add(opcode::broadcast, shape(x), {zero})});
  }
  // Sum over the last dimension, in the shape of x.
  std::int32_t sums(std::int32_t x) {
    Shape rows = shape(x);
    rows[--rows.rank] = 0;
    const std::int32_t sum = add(opcode::reduce, rows, {x});
    program_.ops[sum].dimensions = {rows.rank};
    return add(opcode::broadcast, shape(x), {sum});
  }
  std::int32_t normalise(std::int32_t x) {
    return bias(map(opcode::multiply, {x, map(opcode::rsqrt, {sums(x)})}));
  }
  std::int32_t softmax(std::int32_t x) {
    x = map(opcode::exponential, {x});
    return map(opcode::divide, {x, sums(x)});
  }
  std::int32_t concatenate(std::int32_t x, std::int32_t with) {
    Shape out = shape(x);
    out[out.rank - 1] += width(with);
    const std::int32_t y = add(opcode::concatenate, out, {x, with});
    program_.ops[y].dimensions = {out.rank - 1};
    return y;
  }
  // Halves the spatial dimensions.
  std::int32_t pool(std::int32_t x) {
    Shape out = shape(x), size = Shape::filled(out.rank, 1);
    for (int i = 1; i < out.rank - 1; ++i) {
      out[i] = (out[i] + 1) / 2;
      size[i] = 2;
    }
    const std::int32_t y = add(opcode::reduce_window, out, {x});
    if (out.rank < 5) {  // columns of a fifth dimension are constant
      const Shape none = Shape::filled(out.rank, 0);
      program_.ops[y].window = {size, size, none, none, Shape::filled(out.rank, 1)};
    }
    return y;
  }

 private:
  std::int32_t product(std::int32_t a, std::int32_t b, const Shape& out,
                       std::array<int, 2> contracted, std::uint8_t code = opcode::dot) {
    const std::int32_t y = add(code, out, {a, b});
    Op& op = program_.ops[y];
    op.contracted = contracted;
    op.flops =
        2.0 * static_cast<double>(out.elements()) * static_cast<double>(shape(a)[contracted[0]]);
    return y;
  }

  Program& program_;
  const Dtype type_;
  std::vector<std::int32_t> inputs_;
};

// The forward pass: units of one family, one after the other. All members share the family's draws.
class Forward {
 public:
  Forward(const ModelSpec& spec, std::int64_t units, Program& program)
      : spec_(spec), units_(units), on_(program, spec.type), rng_(spec.family) {}

  std::int32_t write() {
    const bool images = spec_.kind == Kind::convolution;
    const bool volume = images && pick(1, 5) == 5;
    width_ = images ? 16 * pick(2, 7) : 64 * pick(4, 16);
    const std::int64_t side = volume ? 16 : 4 * pick(5, 14), rows = 32 * pick(1, 6);
    rows_ = rows;
    first_ = pick(1, 3);
    second_ = pick(1, 4);
    for (bool& flag : flags_) flag = pick(0, 1) == 1;
    if (spec_.nodes < kSmall) {
      first_ = 1;
      flags_[2] = false;
    }
    Shape input{spec_.batch * rows, width_};
    if (images) {
      input = {spec_.batch, side, side};
      if (volume) input.push(side);
      input.push(width_ / 2);
    }
    std::int32_t x = on_.input(input);
    for (std::int64_t number = 0; number < units_; ++number) x = unit(x, number);
    if (!images || spec_.nodes < kSmall) return x;
    while (on_.shape(x)[1] > 7) x = on_.pool(x);
    const std::int64_t features = on_.shape(x).elements() / spec_.batch;
    return on_.bias(on_.dot(on_.reshape(x, {spec_.batch, features}), 1000));
  }
  const std::vector<std::int32_t>& inputs() const { return on_.inputs(); }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }

  std::int32_t unit(std::int32_t x, std::int64_t number) {
    switch (spec_.kind) {
      case Kind::convolution:
        return convolutions(x, number);
      case Kind::attention:
        return number % 2 ? attention(x) : dense(x);
      case Kind::recurrent:
        return recurrent(x, number);
      case Kind::mixture:
        return number % 2 ? mixture(x) : dense(x);
      case Kind::embedding:
        return number % 2 ? lookup(x) : dense(x);
    }
    return x;
  }

  // One to three convolutions, with a side branch or a residual connection.
  std::int32_t convolutions(std::int32_t x, std::int64_t number) {
    const std::int64_t stage = std::max<std::int64_t>(1, units_ / 4);
    if (number > 0 && number % stage == 0 && on_.shape(x)[1] >= 8) {
      x = on_.pool(x);
      width_ = std::min<std::int64_t>(2 * width_, 512);
    }
    std::int32_t y = x;
    for (std::int64_t i = 0; i < first_; ++i) {
      y = on_.convolution(y, width_, i > 0 || flags_[0] ? 3 : 2 * (second_ / 2) + 1);
      y = on_.relu(flags_[1] ? on_.normalise(y) : on_.bias(y));
    }
    if (flags_[2]) return on_.concatenate(y, on_.relu(on_.convolution(x, width_ / 2, 1)));
    if (!flags_[3]) return y;
    if (on_.shape(x) != on_.shape(y)) x = on_.convolution(x, width_, 1);
    return on_.relu(on_.map(opcode::add, {y, x}));
  }

  // Two dots with a function between them, around a residual connection.
  std::int32_t dense(std::int32_t x) {
    std::int32_t y = on_.dot(x, (1 + second_) * width_);
    if (flags_[0]) y = on_.bias(y);
    y = flags_[1] ? on_.map(opcode::multiply, {y, on_.map(opcode::tanh, {y})}) : on_.relu(y);
    return join(on_.dot(y, on_.width(x)), x);
  }
  std::int32_t join(std::int32_t y, std::int32_t x) {
    const std::int32_t sum = on_.map(opcode::add, {y, x});
    return flags_[2] ? on_.normalise(sum) : sum;
  }

  std::int32_t attention(std::int32_t x) {
    const auto heads = [&] {
      const Shape split{spec_.batch, rows_, width_ / 64, 64};
      return on_.transpose(on_.reshape(on_.dot(x, width_), split), {0, 2, 1, 3});
    };
    const std::int32_t query = heads(), key = heads(), value = heads();
    const std::int32_t weights = on_.softmax(on_.batch_dot(query, key, true));
    std::int32_t y = on_.transpose(on_.batch_dot(weights, value, false), {0, 2, 1, 3});
    y = on_.reshape(y, {spec_.batch * rows_, width_});
    return join(on_.dot(y, width_), x);
  }

  // A step of gates; with shared weights, the same step repeats.
  std::int32_t recurrent(std::int32_t x, std::int64_t number) {
    std::int32_t y = -1;
    for (std::int64_t gate = 0; gate <= first_; ++gate) {
      if (number == 0 || flags_[3]) weights_.push_back(on_.weight({width_, width_}));
      const auto own = flags_[3] ? weights_.size() - 1 : static_cast<std::size_t>(gate);
      const std::int32_t z = on_.map(gate ? opcode::exponential : opcode::tanh,
                                     {on_.bias(on_.dot_with(weights_[own], x))});
      y = gate ? on_.map(flags_[0] ? opcode::multiply : opcode::divide, {y, z}) : z;
    }
    return join(y, x);
  }

  // Experts whose outputs are weighted by a softmax of a small dot.
  std::int32_t mixture(std::int32_t x) {
    const std::int64_t rows = on_.shape(x)[0];
    const std::int32_t gates = on_.softmax(on_.dot(x, 8));
    std::int32_t sum = x;
    for (std::int64_t expert = 0; expert <= first_; ++expert) {
      const std::int32_t gate = on_.reshape(on_.add(opcode::slice, {rows, 1}, {gates}), {rows});
      const std::int32_t wide = on_.add(opcode::broadcast, on_.shape(x), {gate});
      const std::int32_t y = on_.dot(on_.relu(on_.dot(x, second_ * width_)), width_);
      sum = on_.map(opcode::add, {sum, on_.map(opcode::multiply, {y, wide})});
    }
    return flags_[3] ? on_.normalise(sum) : sum;
  }

  // Looks up several rows of a table for each row of x, by one-hot products, and appends them to x.
  std::int32_t lookup(std::int32_t x) {
    const std::int64_t rows = on_.shape(x)[0], bag = 1 + first_, size = 16 * second_;
    const std::int32_t ids = on_.input({rows * bag, 512 * (1 + second_)});
    const std::int32_t found = on_.reshape(on_.dot(ids, size), {rows, bag * size});
    return on_.relu(on_.bias(on_.dot(on_.concatenate(x, found), width_)));
  }

  const ModelSpec& spec_;
  const std::int64_t units_;
  Layers on_;
  CounterRng rng_;
  std::int64_t width_ = 0, rows_ = 0, first_ = 0, second_ = 0;
  std::array<bool, 4> flags_{};
  std::vector<std::int32_t> weights_;  // of recurrent units
};

// Forward and backward pass of a number of units.
struct Body {
  Program program;
  std::vector<Weight> weights;

  Body(const ModelSpec& spec, std::int64_t units) {
    program.ops.reserve(spec.nodes);
    Forward forward(spec, units, program);
    const std::int32_t y = forward.write();
    program.splits = {0, program.nodes()};
    weights = add_gradients(program, y, forward.inputs());
  }
  bool fits(const ModelSpec& spec) const {
    return static_cast<double>(program.nodes()) <=
               spec.body_share * static_cast<double>(spec.nodes) &&
           program.config_nodes() <= (spec.config_nodes ? spec.config_nodes : kMostConfigNodes);
  }
};

// The body with as many units as fit, at least one.
Body largest_body(const ModelSpec& spec) {
  std::int64_t units = 1, step = 1;
  while (Body(spec, units + step).fits(spec)) units += std::exchange(step, 2 * step);
  while ((step /= 2) > 0) {
    if (Body(spec, units + step).fits(spec)) units += step;
  }
  return Body(spec, units);
}

// Flattens weights until the number of configurable nodes is reached.
void reach_config_nodes(const ModelSpec& spec, Body& body) {
  if (!spec.config_nodes) return;
  Program& program = body.program;
  for (std::size_t i = 0; program.config_nodes() < spec.config_nodes; ++i) {
    const std::int32_t weight = body.weights[i % body.weights.size()].value;
    program.add(opcode::reshape, spec.type, {program[weight].shape.elements()}, {weight});
  }
  if (program.config_nodes() == spec.config_nodes) return;
  throw ConfigError(
      fmt::format("a model of {} nodes cannot have {} configurable nodes: its smallest form has {}",
                  spec.nodes, spec.config_nodes, program.config_nodes()));
}

}  // namespace

Program build_model(const ModelSpec& spec) {
  Body body = largest_body(spec);
  reach_config_nodes(spec, body);
  add_optimizer(spec, body.weights, body.program);
  body.program.splits.push_back(body.program.nodes());
  std::int32_t parameters = 0;
  for (Op& op : body.program.ops) {
    if (op.code == opcode::parameter) op.number = parameters++;
  }
  return std::move(body.program);
}

}  // namespace tpudist::synth
