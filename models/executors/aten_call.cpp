#include "models/executors/aten_call.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include "models/executors/aten_replay.hpp"

namespace tpudist {

AtenCall::AtenCall(const AtenPass& pass, const UnitInput& input, const StagedUnit& staged,
                   int members, bool backward, Recorder* recorder)
    : pass_(pass), recorder_(recorder), graphs_(input.graphs), tapes_(backward ? members : 0) {
  const auto empty = [&](at::IntArrayRef shape, at::ScalarType type) {
    return at::empty(shape, at::TensorOptions(type).device(pass.device()));
  };
  const NetworkLayout& layout = pass.layout();
  const std::int64_t rows = input.plan->rows(layout.layers.size());
  arrays_ = empty(staged.buffer.sizes(), at::kByte);
  parameters_ = empty({members, layout.table.length()}, at::kFloat);
  unit_ = view_unit(input, staged, arrays_, layout.config_features);
  values_ = empty({members, rows}, at::kDouble);
  if (!backward) return;
  row_gradient_ = empty({members, rows}, at::kFloat);
  gradient_ = at::empty_like(parameters_);
}

AtenCall::~AtenCall() = default;

void AtenCall::load(const StagedUnit& staged, const MemberRange& members) {
  arrays_.copy_(staged.buffer, /*non_blocking=*/true);
  const float* const first = members.flat.data() + members.first * parameters_.size(1);
  parameters_.copy_(at::from_blob(const_cast<float*>(first), parameters_.sizes(), at::kFloat));
}

void AtenCall::load_row_gradient(const at::Tensor& gradient) {
  row_gradient_.copy_(gradient);
}

void AtenCall::forward() {
  if (!recorder_) return run_forward();
  if (!forward_) forward_ = recorder_->record([this] { run_forward(); });
  forward_->run();
}

void AtenCall::backward(const std::vector<bool>& needed) {
  if (!recorder_) return run_backward(needed);
  auto& recording = backward_[needed];
  if (!recording) recording = recorder_->record([this, needed] { run_backward(needed); });
  recording->run();
}

void AtenCall::run_forward() {
  for (int m = 0; m < members(); ++m) {
    Tape tape = pass_.forward(parameters_[m], unit_);
    values_[m].copy_(tape.values);
    if (!tapes_.empty()) tapes_[m] = std::move(tape);
  }
}

void AtenCall::run_backward(const std::vector<bool>& needed) {
  for (int m = 0; m < members(); ++m) {
    gradient_[m].copy_(
        pass_.backward(parameters_[m], unit_, tapes_[m], row_gradient_[m], needed[m]));
  }
}

}  // namespace tpudist
