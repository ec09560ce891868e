#pragma once

#include <optional>

#include "data/convert/graph_schema.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/npz/feature_stream.hpp"

namespace tpudist {

// Reads the configurations of one graph several times. If the array fits in one block, it is read
// from the file only once. Borrows its arguments.
class ConfigPasses {
 public:
  ConfigPasses(const NpzReader& npz, const Collection& collection)
      : npz_(npz), collection_(collection) {}

  // Starts a pass: a stream of the configurations from the first one on.
  FeatureStream& start();
  // Reads the current pass to its end, starting with `block`. Returns the type that holds all
  // values of the array: i8, i16, i32 or f32. `least` is the type that the values before `block`
  // need. Throws DataError if a value is not finite.
  ElementType type_of_rest(const FeatureStream::Block* block, ElementType least);

 private:
  const NpzReader& npz_;
  const Collection& collection_;
  std::optional<FeatureStream> stream_;
};

}  // namespace tpudist
