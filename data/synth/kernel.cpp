#include "data/synth/kernel.hpp"

#include <iterator>

#include "core/random.hpp"

namespace tpudist::synth {
namespace {

constexpr std::uint64_t kShapeStream = 1;

enum class Heavy { none, convolution, dot, reduction };

Shape draw_shape(CounterRng& rng, Heavy heavy) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[rng.below(values.size())];
  };
  if (heavy == Heavy::dot || (heavy != Heavy::convolution && rng.below(2) == 0)) {
    return {pick({32, 64, 128, 384, 512, 1000, 1536, 4096}),
            pick({128, 256, 384, 768, 1000, 1024, 3072})};
  }
  const std::int64_t side = pick({5, 7, 12, 14, 26, 28, 54, 56});
  return {pick({8, 16, 32, 64}), side, side, pick({32, 64, 96, 128, 192, 256, 384})};
}

// Adds the heavy operation on two fresh parameters and returns it.
std::int32_t add_heavy(Heavy heavy, CounterRng& rng, const Shape& out, Dtype type,
                       Program& program) {
  const std::int64_t contracted = std::int64_t{64} << rng.below(5);
  Shape in = out;
  const int last = out.rank - 1;
  in[last] = contracted;
  const bool convolution = heavy == Heavy::convolution;
  const std::int64_t window = convolution ? 1 + 2 * static_cast<std::int64_t>(rng.below(3)) : 1;
  const Shape weight =
      convolution ? Shape{window, window, contracted, out[last]} : Shape{contracted, out[last]};
  const std::int32_t x = program.add(opcode::parameter, type, in);
  const std::int32_t w = program.add(opcode::parameter, type, weight);
  const std::int32_t y =
      program.add(convolution ? opcode::convolution : opcode::dot, type, out, {x, w});
  Op& op = program.ops[static_cast<std::size_t>(y)];
  op.flops =
      2 * static_cast<double>(out.elements()) * static_cast<double>(contracted * window * window);
  if (convolution) {
    op.convolution = ConvolutionKind::forward;
    op.window = {
        {window, window}, {1, 1}, {window / 2, window / 2}, {window / 2, window / 2}, {1, 1}};
  }
  return y;
}

}  // namespace

Program build_kernel(const KernelSpec& spec) {
  CounterRng rng(mix_key({spec.key, kShapeStream}));
  const Dtype type = rng.below(2) ? Dtype::bf16 : Dtype::f32;
  auto heavy = static_cast<Heavy>(rng.below(4));
  if (spec.nodes < 12) heavy = Heavy::none;
  const Shape shape = draw_shape(rng, heavy);
  Program program;
  program.splits = {0, spec.nodes};
  std::int32_t value = heavy == Heavy::convolution || heavy == Heavy::dot
                           ? add_heavy(heavy, rng, shape, type, program)
                           : program.add(opcode::parameter, type, shape);
  const std::int64_t tail = heavy == Heavy::reduction ? 2 : 1;
  while (program.nodes() < spec.nodes - tail) {
    const std::int64_t left = spec.nodes - tail - program.nodes();
    const std::uint64_t kind = left >= 3 ? rng.below(4) : left == 2 ? 1 + rng.below(2) : 2;
    constexpr std::uint8_t kBinary[] = {opcode::add, opcode::multiply, opcode::subtract,
                                        opcode::maximum, opcode::divide};
    constexpr std::uint8_t kUnary[] = {opcode::exponential, opcode::tanh, opcode::negate,
                                       opcode::convert, opcode::copy};
    std::int32_t other = -1;
    if (kind == 0) {  // a bias or a constant, spread over the tensor
      const std::int32_t small =
          rng.below(2) ? program.add(opcode::constant, type, {})
                       : program.add(opcode::parameter, type, {shape[shape.rank - 1]});
      other = program.add(opcode::broadcast, type, shape, {small});
    } else if (kind == 1) {
      other = program.add(opcode::parameter, type, shape);
    }
    value = other >= 0
                ? program.add(kBinary[rng.below(std::size(kBinary))], type, shape, {value, other})
                : program.add(kUnary[rng.below(std::size(kUnary))], type, shape, {value});
  }
  Shape result = shape;
  if (heavy == Heavy::reduction) {
    result = {shape[shape.rank - 1]};
    value = program.add(opcode::reduce, type, result, {value});
    for (int i = 0; i < shape.rank - 1; ++i) program.ops.back().dimensions.push(i);
  }
  program.add(spec.nodes < 4 ? opcode::copy : opcode::fusion, type, result, {value});
  for (std::int32_t i = 0, number = 0; i < program.nodes(); ++i) {
    Op& op = program.ops[static_cast<std::size_t>(i)];
    if (op.code == opcode::parameter) op.number = number++;
  }
  return program;
}

}  // namespace tpudist::synth
