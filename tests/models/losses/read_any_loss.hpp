#pragma once

#include <memory>

#include "models/losses/losses.hpp"

namespace tpudist {

// The loss of a document such as "loss: {mape: {}}". Throws ConfigError.
inline std::unique_ptr<SlateLoss> read_any_loss(const char* yaml,
                                                TargetKind targets = TargetKind::nanoseconds) {
  ConfigDocument document = ConfigDocument::parse(yaml, "test.yaml");
  auto loss = read_loss(document.root().child("loss"), targets);
  document.finish();
  return loss;
}

}  // namespace tpudist
