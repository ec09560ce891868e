#include "data/synth/gradients.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tpudist::synth {
namespace {

class Backward {
 public:
  Backward(Program& program, const std::vector<std::int32_t>& inputs)
      : program_(program), trained_(program.ops.size()), gradient_(program.ops.size(), -1) {
    for (std::int32_t i = 0; i < program.nodes(); ++i) {
      const Op& op = program[i];
      const auto depends = [&](std::int32_t operand) { return needed(operand); };
      trained_[static_cast<std::size_t>(i)] = op.code == opcode::parameter
                                                  ? std::ranges::find(inputs, i) == inputs.end()
                                                  : std::ranges::any_of(op.operands, depends);
    }
  }

  std::vector<Weight> run(std::int32_t y) {
    const std::int32_t one = program_.add(opcode::constant, program_[y].type, {});
    const std::int32_t wide = add(opcode::broadcast, y, {one});
    give(y, add(opcode::subtract, y, {y, wide}));
    std::vector<Weight> weights;
    for (std::int32_t i = y; i >= 0; --i) {
      const std::int32_t gradient = gradient_[static_cast<std::size_t>(i)];
      if (gradient < 0) continue;
      if (program_[i].code == opcode::parameter) {
        weights.push_back({i, gradient});
      } else {
        pass_on(i, Op(program_[i]), gradient);
      }
    }
    std::ranges::reverse(weights);
    return weights;
  }

 private:
  bool needed(std::int32_t op) const { return trained_[static_cast<std::size_t>(op)]; }

  // An operation of the shape and type of `like`.
  std::int32_t add(std::uint8_t code, std::int32_t like, std::vector<std::int32_t> operands) {
    return program_.add(code, program_[like].type, Shape(program_[like].shape),
                        std::move(operands));
  }

  void give(std::int32_t op, std::int32_t part) {
    std::int32_t& sum = gradient_[static_cast<std::size_t>(op)];
    sum = sum < 0 ? part : add(opcode::add, op, {sum, part});
  }

  // A product for the gradient of `of`, with the work of `from`.
  Op& product(const Op& from, std::int32_t of, std::int32_t left, std::int32_t right,
              std::array<int, 2> contracted) {
    const std::int32_t number = add(from.code, of, {left, right});
    give(of, number);
    Op& op = program_.ops[static_cast<std::size_t>(number)];
    op.flops = from.flops;
    op.contracted = contracted;
    return op;
  }

  // y [..., p, q] = a b, each contracted over one of its last two dimensions.
  void pass_dot(const Op& op, std::int32_t gradient) {
    const int rank = op.shape.rank;
    const auto [a, b] = std::pair(op.operands[0], op.operands[1]);
    const int free_a = 2 * rank - 3 - op.contracted[0], free_b = 2 * rank - 3 - op.contracted[1];
    if (needed(b)) product(op, b, a, gradient, {free_a, rank - 2});
    if (needed(a)) product(op, a, gradient, b, {rank - 1, free_b});
  }

  void pass_convolution(const Op& op, std::int32_t gradient) {
    const auto [x, w] = std::pair(op.operands[0], op.operands[1]);
    const int last = op.shape.rank - 1;
    if (needed(w)) {
      Op& of_kernel = product(op, w, x, gradient, {0, 0});
      of_kernel.convolution = ConvolutionKind::kernel_gradient;
      of_kernel.window = op.window;
      of_kernel.window.size = {};
      for (int i = 1; i < last; ++i) of_kernel.window.size.push(op.shape[i]);
    }
    if (needed(x)) {
      Op& of_input = product(op, x, gradient, w, {last, last});
      of_input.convolution = ConvolutionKind::input_gradient;
      of_input.window = op.window;
      of_input.window.reversed = true;
    }
  }

  void pass_on(std::int32_t y, const Op& op, std::int32_t gradient) {
    switch (op.code) {
      case opcode::dot:
        return pass_dot(op, gradient);
      case opcode::convolution:
        return pass_convolution(op, gradient);
      case opcode::reduce_window: {
        const std::int32_t spread = add(opcode::pad, op.operands[0], {gradient});
        return give(op.operands[0],
                    add(opcode::multiply, op.operands[0], {spread, op.operands[0]}));
      }
      case opcode::transpose: {
        const std::int32_t back = add(opcode::transpose, op.operands[0], {gradient});
        Shape order = op.dimensions;
        for (int i = 0; i < order.rank; ++i) order[static_cast<int>(op.dimensions[i])] = i;
        program_.ops[static_cast<std::size_t>(back)].dimensions = order;
        return give(op.operands[0], back);
      }
      default:
        break;
    }
    constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 5> kInverse{
        {{opcode::reshape, opcode::reshape},
         {opcode::broadcast, opcode::reduce},
         {opcode::reduce, opcode::broadcast},
         {opcode::slice, opcode::pad},
         {opcode::concatenate, opcode::slice}}};
    const auto inverse =
        std::ranges::find(kInverse, op.code, [](auto& pair) { return pair.first; });
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      const std::int32_t operand = op.operands[k];
      if (!needed(operand)) continue;
      if (inverse != kInverse.end()) {
        give(operand, add(inverse->second, operand, {gradient}));
      } else if (op.code == opcode::add || op.code == opcode::subtract) {
        give(operand, gradient);
      } else {  // by the other factor of a product, by the result of any other function
        const bool factor = op.code == opcode::multiply;
        give(operand, add(opcode::multiply, operand, {gradient, factor ? op.operands[1 - k] : y}));
      }
    }
  }

  Program& program_;
  std::vector<bool> trained_;  // depends on a weight
  std::vector<std::int32_t> gradient_;
};

}  // namespace

std::vector<Weight> add_gradients(Program& program, std::int32_t y,
                                  const std::vector<std::int32_t>& inputs) {
  return Backward(program, inputs).run(y);
}

}  // namespace tpudist::synth
