#include "data/convert/config_passes.hpp"

#include <algorithm>

#include "data/hdf5/narrow.hpp"

namespace tpudist {

FeatureStream& ConfigPasses::start() {
  if (!stream_ || !stream_->restart()) stream_.emplace(open_config_features(npz_, collection_));
  return *stream_;
}

ElementType ConfigPasses::type_of_rest(const FeatureStream::Block* block, ElementType least) {
  ElementType type = least;
  for (; block; block = stream_->next()) {
    const ElementType own = narrowest_type(block->values);
    if (own == ElementType::f32) stream_->check_finite(*block);
    type = std::max(type, own);  // ElementType is in rising order
  }
  return type;
}

}  // namespace tpudist
