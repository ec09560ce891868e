#include "data/synth/tape.hpp"

namespace tpudist::synth {
namespace {

Shape without_last(Shape shape) {
  shape[--shape.rank] = 0;
  return shape;
}

Window window_of(const Shape& size, std::int64_t stride) {
  Window window;
  window.size = size;
  window.stride = Shape::filled(size.rank, stride);
  for (const std::int64_t side : size.view()) {
    window.pad_low.push((side - 1) / 2);
    window.pad_high.push(side / 2);
  }
  window.base_dilation = Shape::filled(size.rank, 1);
  return window;
}

}  // namespace

void Tape::record(Kind kind, std::int32_t y, std::int32_t x, std::int32_t other, std::int64_t nodes,
                  std::int64_t config_nodes) {
  steps_.push_back({kind, y, x, other});
  pending_nodes_ += nodes;
  pending_config_nodes_ += config_nodes;
}

std::int32_t Tape::parameter(const Shape& shape) {
  const std::int32_t op = program_.add(opcode::parameter, type_, shape);
  at(op).number = parameters_++;
  return op;
}

std::int32_t Tape::broadcast_constant(const Shape& shape) {
  const std::int32_t scalar = program_.add(opcode::constant, type_, {});
  return program_.add(opcode::broadcast, type_, shape, {scalar});
}

std::int32_t Tape::convolution(std::int32_t x, std::int64_t channels, std::int64_t kernel,
                               std::int64_t stride) {
  const Shape in = shape(x);
  Shape weight = Shape::filled(in.rank - 2, kernel), out{in[0]};
  weight.push(in[in.rank - 1]);
  weight.push(channels);
  for (int i = 1; i < in.rank - 1; ++i) out.push((in[i] + stride - 1) / stride);
  out.push(channels);
  const std::int32_t w = parameter(weight);
  const std::int32_t y = program_.add(opcode::convolution, type_, out, {x, w});
  at(y).convolution = ConvolutionKind::forward;
  at(y).window = window_of(Shape::filled(in.rank - 2, kernel), stride);
  at(y).flops =
      2.0 * static_cast<double>(out.elements() / channels) * static_cast<double>(weight.elements());
  record(Kind::convolution, y, x, w, 2, 2);
  return y;
}

std::int32_t Tape::dot(std::int32_t x, std::int64_t features) {
  const Shape in = shape(x);
  const std::int32_t w = parameter({in[1], features});
  const std::int32_t y = program_.add(opcode::dot, type_, {in[0], features}, {x, w});
  at(y).flops = 2.0 * static_cast<double>(in.elements()) * static_cast<double>(features);
  record(Kind::dot, y, x, w, 2, 2);
  return y;
}

std::int32_t Tape::batch_dot(std::int32_t a, std::int32_t b, bool transposed) {
  Shape out = shape(a);
  out[3] = shape(b)[transposed ? 2 : 3];
  const std::int32_t y = program_.add(opcode::dot, type_, out, {a, b});
  at(y).flops = 2.0 * static_cast<double>(shape(a).elements()) * static_cast<double>(out[3]);
  record(Kind::batch_dot, y, a, b, 1, 1);
  return y;
}

std::int32_t Tape::reshape(std::int32_t x, const Shape& to) {
  const std::int32_t y = program_.add(opcode::reshape, type_, to, {x});
  record(Kind::reshape, y, x, -1, 1, 1);
  return y;
}

std::int32_t Tape::transpose(std::int32_t x, const Shape& order) {
  Shape out = shape(x);
  for (int i = 0; i < order.rank; ++i) out[i] = shape(x)[static_cast<int>(order[i])];
  const std::int32_t y = program_.add(opcode::transpose, type_, out, {x});
  at(y).dimensions = order;
  record(Kind::transpose, y, x, -1, 1);
  return y;
}

std::int32_t Tape::elementwise(std::uint8_t code, std::int32_t x) {
  const std::int32_t y = program_.add(code, type_, shape(x), {x});
  record(Kind::elementwise, y, x, -1, 1);
  return y;
}

std::int32_t Tape::combine(std::uint8_t code, std::int32_t x, std::int32_t with) {
  const std::int32_t y = program_.add(code, type_, shape(x), {x, with});
  record(Kind::elementwise, y, x, -1, 1);
  return y;
}

std::int32_t Tape::bias(std::int32_t x) {
  const Shape out = shape(x);
  const std::int32_t b = parameter({out[out.rank - 1]});
  const std::int32_t wide = program_.add(opcode::broadcast, type_, out, {b});
  at(wide).dimensions = {out.rank - 1};
  const std::int32_t y = program_.add(opcode::add, type_, out, {x, wide});
  record(Kind::bias, y, x, b, 1);
  return y;
}

std::int32_t Tape::relu(std::int32_t x) {
  const std::int32_t zero = broadcast_constant(shape(x));
  const std::int32_t y = program_.add(opcode::maximum, type_, shape(x), {x, zero});
  record(Kind::elementwise, y, x, -1, 1);
  return y;
}

std::int32_t Tape::max_pool(std::int32_t x) {
  Shape out = shape(x), size = Shape::filled(out.rank, 1);
  for (int i = 1; i < out.rank - 1; ++i) {
    out[i] = (out[i] + 1) / 2;
    size[i] = 2;
  }
  const std::int32_t y = program_.add(opcode::reduce_window, type_, out, {x});
  if (out.rank < 5) at(y).window = window_of(size, 1);  // columns of a fifth dimension are constant
  if (out.rank < 5) at(y).window.stride = size;
  record(Kind::max_pool, y, x, -1, 2);
  return y;
}

std::int32_t Tape::normalise(std::int32_t x) {
  const Shape out = shape(x);
  const int last = out.rank - 1;
  const std::int32_t mean = program_.add(opcode::reduce, Dtype::f32, without_last(out), {x});
  at(mean).dimensions = {last};
  const std::int32_t inverse = program_.add(opcode::rsqrt, Dtype::f32, shape(mean), {mean});
  const std::int32_t wide = program_.add(opcode::broadcast, type_, out, {inverse});
  return bias(combine(opcode::multiply, x, wide));
}

std::int32_t Tape::softmax(std::int32_t x) {
  const std::int32_t exp = elementwise(opcode::exponential, x);
  const std::int32_t sum = program_.add(opcode::reduce, type_, without_last(shape(x)), {exp});
  at(sum).dimensions = {shape(x).rank - 1};
  const std::int32_t wide = program_.add(opcode::broadcast, type_, shape(x), {sum});
  return combine(opcode::divide, exp, wide);
}

std::int32_t Tape::concatenate(std::int32_t x, std::int32_t side) {
  Shape out = shape(x);
  out[out.rank - 1] += shape(side)[out.rank - 1];
  const std::int32_t y = program_.add(opcode::concatenate, type_, out, {x, side});
  at(y).dimensions = {out.rank - 1};
  record(Kind::max_pool, y, x, -1, 2);  // backward: a slice of the gradient
  return y;
}

void Tape::begin_block(std::int32_t x) {
  record(Kind::block, x, x, -1, 0);
}

std::int32_t Tape::add_residual(std::int32_t y, std::int32_t x) {
  const std::int32_t sum = program_.add(opcode::add, type_, shape(y), {y, x});
  record(Kind::residual, sum, y, -1, 1);
  return sum;
}

void Tape::begin_branch() {
  record(Kind::branch_begin, -1, -1, -1, 1);
}

void Tape::end_branch() {
  record(Kind::branch_end, -1, -1, -1, 0);
}

std::int32_t Tape::reduce_to_last(std::int32_t x) {
  const Shape in = shape(x);
  const std::int32_t sum = program_.add(opcode::reduce, type_, {in[in.rank - 1]}, {x});
  for (int i = 0; i < in.rank - 1; ++i) at(sum).dimensions.push(i);
  return sum;
}

std::int32_t Tape::backward_convolution(const Step& step, std::int32_t gradient) {
  const Window forward = program_[step.y].window;
  const double flops = program_[step.y].flops;
  const std::int32_t dw =
      program_.add(opcode::convolution, type_, shape(step.other), {step.x, gradient});
  at(dw).convolution = ConvolutionKind::kernel_gradient;
  Shape spatial;
  for (int i = 1; i < shape(gradient).rank - 1; ++i) spatial.push(shape(gradient)[i]);
  at(dw).window = forward;
  at(dw).window.size = spatial;
  if (forward.stride[0] > 1) at(dw).window.pad_high[0] = -1;
  at(dw).flops = flops;
  weights_.push_back({step.other, dw});

  const std::int32_t dx =
      program_.add(opcode::convolution, type_, shape(step.x), {gradient, step.other});
  at(dx).convolution = ConvolutionKind::input_gradient;
  at(dx).window = forward;
  at(dx).window.stride = Shape::filled(spatial.rank, 1);
  at(dx).window.base_dilation = forward.stride;
  at(dx).window.reversed = true;
  at(dx).flops = flops;
  return dx;
}

std::int32_t Tape::backward_dot(const Step& step, std::int32_t gradient) {
  const double flops = program_[step.y].flops;
  const std::int32_t dw = program_.add(opcode::dot, type_, shape(step.other), {step.x, gradient});
  at(dw).flops = flops;
  weights_.push_back({step.other, dw});
  const std::int32_t dx = program_.add(opcode::dot, type_, shape(step.x), {gradient, step.other});
  at(dx).flops = flops;
  return dx;
}

// A slice or a spread gradient: the layout goes through.
std::int32_t Tape::backward_max_pool(const Step& step, std::int32_t gradient) {
  const bool shrinks = shape(step.x).elements() < shape(gradient).elements();
  const std::int32_t spread =
      program_.add(shrinks ? opcode::slice : opcode::pad, type_, shape(step.x), {gradient});
  return program_.add(opcode::multiply, type_, shape(step.x), {spread, step.x});
}

void Tape::backward(std::int32_t y) {
  std::int32_t gradient = broadcast_constant(shape(y));
  gradient = program_.add(opcode::subtract, type_, shape(y), {y, gradient});
  std::vector<std::int32_t> sides;  // gradients that meet again at the start of the block
  std::int32_t main = -1;           // the main path's, while a side branch is worked on
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    switch (step->kind) {
      case Kind::convolution:
        gradient = backward_convolution(*step, gradient);
        break;
      case Kind::dot:
        gradient = backward_dot(*step, gradient);
        break;
      case Kind::batch_dot: {
        const double flops = program_[step->y].flops;
        gradient = program_.add(opcode::dot, type_, shape(step->x), {gradient, step->other});
        at(gradient).flops = flops;
        break;
      }
      case Kind::reshape:
        gradient = program_.add(opcode::reshape, type_, shape(step->x), {gradient});
        break;
      case Kind::transpose: {
        const Shape order = program_[step->y].dimensions;
        gradient = program_.add(opcode::transpose, type_, shape(step->x), {gradient});
        for (int i = 0; i < order.rank; ++i) at(gradient).dimensions.push(0);
        for (int i = 0; i < order.rank; ++i)
          at(gradient).dimensions[static_cast<int>(order[i])] = i;
        break;
      }
      case Kind::elementwise:
        gradient = program_.add(opcode::multiply, type_, shape(step->x), {gradient, step->y});
        break;
      case Kind::max_pool:
        gradient = backward_max_pool(*step, gradient);
        break;
      case Kind::bias:
        weights_.push_back({step->other, reduce_to_last(gradient)});
        break;
      case Kind::residual:
        sides.push_back(gradient);
        break;
      case Kind::branch_end:
        main = gradient;
        break;
      case Kind::branch_begin:
        sides.push_back(gradient);
        gradient = main;
        break;
      case Kind::block:
        for (const std::int32_t side : sides) {
          gradient = program_.add(opcode::add, type_, shape(step->x), {gradient, side});
        }
        sides.clear();
        break;
    }
  }
  steps_.clear();
  pending_nodes_ = pending_config_nodes_ = 0;
}

}  // namespace tpudist::synth
