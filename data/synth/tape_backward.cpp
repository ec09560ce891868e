#include "data/synth/tape.hpp"

namespace tpudist::synth {

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
std::int32_t Tape::backward_pool(const Step& step, std::int32_t gradient) {
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
      case Kind::pool:
        gradient = backward_pool(*step, gradient);
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
