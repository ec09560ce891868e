#pragma once

#include <memory>

#include "core/config/config.hpp"
#include "models/losses/slate_loss.hpp"

namespace tpudist {

// The targets: run times in nanoseconds (layouts), or run times divided by the normalizer of their
// configuration (tiles).
enum class TargetKind { nanoseconds, normalised };

// Reads `loss:`, a map of weighted terms, e.g. {list_mle: {weight: 1, clip_norm: 500}}, as their
// weighted sum. Throws ConfigError, together with the other mistakes of the document, when there is
// no term or a value is out of range.
std::unique_ptr<SlateLoss> read_loss(ConfigNode loss, TargetKind targets = TargetKind::nanoseconds);

}  // namespace tpudist
