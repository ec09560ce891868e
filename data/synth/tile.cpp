#include "data/synth/tile.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/random.hpp"
#include "data/schema/collection.hpp"

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
  Op& op = program.ops[y];
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
    if (kind == 0) {  // a bias or constant, broadcast over the tensor
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
    Op& op = program.ops[i];
    if (op.code == opcode::parameter) op.number = number++;
  }
  return program;
}

namespace {

constexpr std::uint64_t kTilingStream = 2;
constexpr double kFastMemory = 4 << 20;  // bytes
constexpr double kTileBytesPerNs = 300, kTileFlopsPerNs = 30000, kElementsPerNs = 800;
constexpr double kIteration = 350;  // ns of overhead
constexpr double kSpill = 3;        // slowdown of tiles that do not fit

// The operation whose output is tiled: the heavy one, or else the largest.
const Op& tiled_op(const Program& kernel) {
  return *std::ranges::max_element(kernel.ops, {}, [](const Op& op) {
    return std::pair(op.flops, op.code == opcode::parameter ? 0 : op.shape.elements());
  });
}

// Tile sizes of one dimension: in vector registers (128 lanes, 8 sublanes) for the two minor ones.
struct Axis {
  std::int64_t size = 1, unit = 1;
  std::int64_t registers() const { return (size + unit - 1) / unit; }
  std::int64_t draw(CounterRng& rng) const {  // one of registers() / 1, 2, 3, ... rounded up, or 1
    const std::int64_t most = registers();
    const auto parts = static_cast<std::int64_t>(
        std::exp(rng.uniform() * std::log(static_cast<double>(most) + 0.999)));
    return (most + parts - 1) / parts;
  }
};

std::vector<Axis> axes_of(const Shape& shape) {
  std::vector<Axis> axes;
  for (int i = 0; i < shape.rank; ++i) {
    axes.push_back({shape[i], i == shape.rank - 1 ? 128 : i == shape.rank - 2 ? 8 : 1});
  }
  return axes;
}

using Bounds = std::vector<std::int64_t>;

// Computes the time of a tiling.
class TileCost {
 public:
  explicit TileCost(const Program& kernel) : op_(tiled_op(kernel)) {
    for (const Op& op : kernel.ops) {
      const bool same = op.shape == op_.shape;
      if (op.code == opcode::parameter) {
        same ? ++inputs_ : 0;
      } else if (op.code != opcode::constant && same) {
        const bool slow = op.code == opcode::exponential || op.code == opcode::tanh ||
                          op.code == opcode::divide || op.code == opcode::rsqrt;
        work_ += slow ? 4 : 1;
      }
    }
    output_ = axes_of(op_.shape);
    if (op_.flops > 0) {
      const Shape& weight = kernel[op_.operands[1]].shape;
      weight_ = axes_of(weight);
      if (weight.rank == 2) weight_.pop_back();  // a dot tiles what it contracts
    }
  }

  const std::vector<Axis>& output() const { return output_; }
  const std::vector<Axis>& weight() const { return weight_; }

  // The elements of one tile. Multiplies `tiles` by the number of tiles.
  static double tile(const std::vector<Axis>& axes, const Bounds& bounds, double& tiles) {
    double elements = 1;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      elements *= static_cast<double>(bounds[i] * axes[i].unit);
      tiles *= std::ceil(static_cast<double>(axes[i].registers()) / static_cast<double>(bounds[i]));
    }
    return elements;
  }

  double footprint(const Bounds& output, const Bounds& weight) const {
    double tiles = 1;
    const double out = tile(output_, output, tiles);
    const double kernel =
        weight_.empty() ? 0 : tile(weight_, weight, tiles) * kernel_columns(output);
    return 2 * bytes_of(op_.type) * (out * (inputs_ + 1) + kernel);  // double buffers
  }

  double time(const Bounds& output, const Bounds& weight) const {
    double tiles = 1, parts = 1;
    const double out = tile(output_, output, tiles);
    const double kernel =
        weight_.empty() ? 0 : tile(weight_, weight, parts) * kernel_columns(output);
    const double flops_per_tile =
        op_.flops / static_cast<double>(op_.shape.elements()) * out / parts;
    const double compute = flops_per_tile / kTileFlopsPerNs + work_ * out / kElementsPerNs / parts;
    const double traffic =
        bytes_of(op_.type) * (out * (inputs_ + 1) / parts + kernel) / kTileBytesPerNs;
    const double spill = std::max(0.0, footprint(output, weight) / kFastMemory - 1);
    return tiles * parts *
           (kIteration + std::max(compute, traffic) + 0.2 * std::min(compute, traffic)) *
           (1 + kSpill * std::min(spill, 1.0));
  }

 private:
  // A dot's weight tile is as wide as the output's.
  double kernel_columns(const Bounds& output) const {
    return op_.code == opcode::dot ? static_cast<double>(output.back() * 128) : 1.0;
  }

  const Op& op_;
  std::vector<Axis> output_, weight_;
  int inputs_ = 0;
  double work_ = 0;
};

void append_sequence(const Bounds& bounds, std::vector<float>& features) {
  double sum = 0, product = bounds.empty() ? 0 : 1;
  for (std::size_t i = 0; i < 6; ++i) {
    features.push_back(i < bounds.size() ? static_cast<float>(bounds[i]) : 0.0f);
    if (i >= bounds.size()) continue;
    sum += static_cast<double>(bounds[i]);
    product *= static_cast<double>(bounds[i]);
  }
  features.push_back(static_cast<float>(sum));
  features.push_back(static_cast<float>(product));
}

}  // namespace

TileConfigs tile_configs(const KernelSpec& spec, const Program& kernel) {
  const TileCost cost(kernel);
  CounterRng rng(mix_key({spec.key, kTilingStream}));
  std::vector<std::pair<Bounds, Bounds>> seen;
  TileConfigs configs;
  double best_footprint = 0;
  for (std::int64_t attempt = 0;
       std::ssize(configs.time) < spec.configs && attempt < 4 * spec.configs; ++attempt) {
    Bounds output, weight;
    for (const Axis& axis : cost.output()) output.push_back(axis.draw(rng));
    for (const Axis& axis : cost.weight()) weight.push_back(axis.draw(rng));
    if (std::ranges::find(seen, std::pair(output, weight)) != seen.end() && rng.uniform() > 0.05) {
      continue;  // few tilings are measured twice
    }
    seen.emplace_back(output, weight);
    append_sequence(weight, configs.features);
    append_sequence(output, configs.features);
    append_sequence({}, configs.features);
    configs.time.push_back(cost.time(output, weight));
    // The rule of thumb: the largest tile that fits.
    const double footprint = cost.footprint(output, weight);
    if (configs.time.size() == 1 || (footprint > best_footprint && footprint <= kFastMemory)) {
      best_footprint = footprint <= kFastMemory ? footprint : 0;
      configs.default_time = configs.time.back();
    }
  }
  return configs;
}

}  // namespace tpudist::synth
