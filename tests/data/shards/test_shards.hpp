#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "data/hdf5/hdf5_dataset.hpp"
#include "data/schema/feature_schema.hpp"
#include "data/shards/config_codec.hpp"
#include "data/shards/manifest.hpp"
#include "data/shards/shard_reader.hpp"

namespace tpudist::test {

// All configurations of a graph as float32, from its shard, with codes or without.
inline std::vector<float> config_features(const GraphReader& reader, const GraphSummary& graph) {
  if (!reader.coded()) return reader.read_config_features(0, graph.configs);
  std::vector<float> values(
      static_cast<std::size_t>(graph.configs * graph.config_nodes * kLayoutConfigFeatures));
  std::visit(
      [&]<typename Code>(const Array<Code>& codes) {
        decode_configs<Code>(reader.read_states(), codes, values);
      },
      reader.read_codes(0, graph.configs));
  return values;
}

// Runs change(file) on a shard that is open for writing.
template <typename Change>
void edit_shard(const std::filesystem::path& shard, const Change& change) {
  const Hdf5Lock lock;
  const Hdf5Id file(H5Fopen(shard.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  ASSERT_GE(file.get(), 0);
  change(file);
}

// Overwrites all values of a dataset of the first graph.
template <typename T>
void overwrite_dataset(const std::filesystem::path& shard, const std::string& name,
                       const std::vector<T>& values) {
  edit_shard(shard, [&](const Hdf5Id& file) {
    const Hdf5Id data(H5Dopen2(file.get(), ("/graphs/000000/" + name).c_str(), H5P_DEFAULT),
                      H5Dclose);
    ASSERT_GE(H5Dwrite(data.get(), hdf5_type(element_type<T>()), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       values.data()),
              0);
  });
}

// Makes the manifest of a collection agree with its only shard, which was changed.
inline void update_manifest(const std::filesystem::path& shard_root, const Collection& collection) {
  const auto folder = shard_root / collection.folder();
  Manifest manifest = read_manifest(folder / kManifestName, collection);
  Manifest::Shard& shard = manifest.shards.at(0);
  shard.bytes = std::filesystem::file_size(folder / shard.file);
  shard.hash = hash_file(folder / shard.file);
  write_manifest(manifest, folder / kManifestName);
}

}  // namespace tpudist::test
