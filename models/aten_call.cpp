#include "models/aten_call.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

namespace tpudist {

AtenCall::AtenCall(const AtenPass& pass, const UnitInput& input, const StagedUnit& staged,
                   int members)
    : pass_(pass), tapes_(members) {
  const auto empty = [&](at::IntArrayRef shape, at::ScalarType type) {
    return at::empty(shape, at::TensorOptions(type).device(pass.device()));
  };
  const NetworkLayout& layout = pass.layout();
  const std::int64_t rows = input.plan->rows(layout.layers.size());
  arrays_ = empty(staged.buffer.sizes(), at::kByte);
  parameters_ = empty({members, layout.table.length()}, at::kFloat);
  unit_ = view_unit(input, staged, arrays_, layout.config_features);
  values_ = empty({members, rows}, at::kDouble);
  row_gradient_ = empty({members, rows}, at::kFloat);
  gradient_ = at::empty_like(parameters_);
}

void AtenCall::load(const StagedUnit& staged, const MemberRange& members) {
  arrays_.copy_(staged.buffer, /*non_blocking=*/true);
  const float* const first = members.flat.data() + members.first * parameters_.size(1);
  parameters_.copy_(at::from_blob(const_cast<float*>(first), parameters_.sizes(), at::kFloat));
}

void AtenCall::load_row_gradient(const at::Tensor& gradient) {
  row_gradient_.copy_(gradient);
}

void AtenCall::forward(bool keep) {
  for (int m = 0; m < members(); ++m) {
    Tape tape = pass_.forward(parameters_[m], unit_);
    values_[m].copy_(tape.values);
    if (keep) tapes_[m] = std::move(tape);
  }
}

void AtenCall::backward(const std::vector<bool>& needed) {
  for (int m = 0; m < members(); ++m) {
    gradient_[m].copy_(
        pass_.backward(parameters_[m], unit_, tapes_[m], row_gradient_[m], needed[m]));
  }
}

}  // namespace tpudist
