#include "data/synth/program.hpp"

namespace tpudist::synth {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

int bytes_of(Dtype type) {
  switch (type) {
    case Dtype::pred:
      return 1;
    case Dtype::bf16:
      return 2;
    case Dtype::s32:
    case Dtype::f32:
      return 4;
    case Dtype::tuple:
      return 0;
  }
  return 0;
}

Shape Shape::filled(int rank, std::int64_t value) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push(value);
  return shape;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : view()) product *= dim;
  return product;
}

Layout default_layout(const Shape& shape) {
  return {static_cast<std::int8_t>(shape.rank - 1),
          static_cast<std::int8_t>(shape.rank > 1 ? shape.rank - 2 : -1)};
}

double padded_elements(const Shape& shape, Layout layout) {
  double product = 1;
  for (int i = 0; i < shape.rank; ++i) {
    product *= static_cast<double>(i == layout.minor    ? round_up(shape[i], 128)
                                   : i == layout.second ? round_up(shape[i], 8)
                                                        : shape[i]);
  }
  return product;
}

std::int32_t Program::add(std::uint8_t code, Dtype type, Shape shape,
                          std::vector<std::int32_t> operands) {
  Op& op = ops.emplace_back();
  op.code = code;
  op.type = type;
  op.shape = shape;
  op.operands = std::move(operands);
  edges_ += static_cast<std::int64_t>(op.operands.size());
  config_nodes_ += op.configurable();
  return static_cast<std::int32_t>(ops.size()) - 1;
}

}  // namespace tpudist::synth
