#include "data/synth/optimizer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"

namespace tpudist::synth {
namespace {

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

}  // namespace

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

}  // namespace tpudist::synth
