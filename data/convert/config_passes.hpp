#pragma once

#include <optional>

#include "data/convert/graph_schema.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/npz/feature_stream.hpp"

namespace tpudist {

// Passes over the configurations of one graph. An array of one block is read once for all of them.
// Borrows what it is made of.
class ConfigPasses {
 public:
  ConfigPasses(const NpzReader& npz, const Collection& collection)
      : npz_(npz), collection_(collection) {}

  // The configurations from the first one on.
  FeatureStream& start();
  // Goes on to the end from `block` of the pass under way, and returns the type that holds all values
  // of the array, i8, i16, i32 or f32. Those before `block` need `least`. Throws DataError where a
  // value is not finite.
  ElementType type_of_rest(const FeatureStream::Block* block, ElementType least);

 private:
  const NpzReader& npz_;
  const Collection& collection_;
  std::optional<FeatureStream> stream_;
};

}  // namespace tpudist
