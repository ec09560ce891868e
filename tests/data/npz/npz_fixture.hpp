#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/npz/npz_writer.hpp"
#include "data/schema/collection.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist::test {

inline const Collection kLayout = Collection::parse("layout:xla:random");
inline const Collection kTile = Collection::parse("tile:xla");

// The arrays of a small valid NPZ file, which tests change before they write the file. Layout: 5
// nodes, 4 edges, nodes 1 and 3 configurable, 6 configurations, with 0, 2 and 5 equal. Tile: the
// same graph, 4 configurations, with 1 and 3 equal.
struct NpzFixture {
  bool tile = false;
  std::int64_t n = 5, c = 6;
  std::vector<float> node_feat;
  std::vector<std::uint8_t> node_opcode;
  std::vector<std::int64_t> edge_index, config_ids, runtime, normalizers, splits;
  std::vector<float> features;  // node_config_feat or config_feat
  std::string without;          // leave this array out
  // NumPy's types of node_feat and of `features`, whose values they must hold.
  std::string node_type = "<f4", feature_type = "<f4";

  static NpzFixture layout() {
    NpzFixture f;
    f.fill_graph();
    f.config_ids = {1, 3};
    f.runtime = {100, 300, 101, 400, 500, 102};
    f.splits = {0, 2, 5};
    for (const int state : {0, 1, 0, 2, 3, 0})
      f.append_configuration(2 * kLayoutConfigFeatures, state);
    return f;
  }

  static NpzFixture make_tile() {
    NpzFixture f;
    f.tile = true;
    f.c = 4;
    f.fill_graph();
    f.runtime = {100, 200, 300, 202};
    f.normalizers = {50, 50, 50, 50};
    for (const int state : {0, 1, 2, 1}) f.append_configuration(kTileConfigFeatures, state);
    return f;
  }

  const Collection& collection() const { return tile ? kTile : kLayout; }
  std::int64_t config_nodes() const { return static_cast<std::int64_t>(config_ids.size()); }

  void write(const std::filesystem::path& path, NpzOptions options = {}) const {
    std::filesystem::create_directories(path.parent_path());
    NpzWriter npz(path, options);
    const auto add = [&]<typename T>(std::string_view name, std::vector<std::int64_t> shape,
                                     const std::vector<T>& values) {
      if (name != without) npz.add(name, std::move(shape), values);
    };
    if (without != "node_feat") add_as(npz, "node_feat", node_type, {n, kNodeFeatures}, node_feat);
    add("node_opcode", {static_cast<std::int64_t>(node_opcode.size())}, node_opcode);
    add("edge_index", {static_cast<std::int64_t>(edge_index.size() / 2), 2}, edge_index);
    add("config_runtime", {static_cast<std::int64_t>(runtime.size())}, runtime);
    if (tile) {
      add("config_runtime_normalizers", {static_cast<std::int64_t>(normalizers.size())},
          normalizers);
      if (without != "config_feat") {
        add_as(npz, "config_feat", feature_type, {c, kTileConfigFeatures}, features);
      }
    } else {
      add("node_config_ids", {config_nodes()}, config_ids);
      add("node_splits", {1, static_cast<std::int64_t>(splits.size())}, splits);
      if (without != "node_config_feat") {
        add_as(npz, "node_config_feat", feature_type, {c, config_nodes(), kLayoutConfigFeatures},
               features);
      }
    }
    npz.finish();
  }

 private:
  template <typename T>
  static void add_converted(NpzWriter& npz, std::string_view name, const std::string& descr,
                            const std::vector<std::int64_t>& shape,
                            const std::vector<float>& values) {
    std::string member = npy_header(descr, shape);
    for (const float value : values) {
      const auto element = static_cast<T>(value);
      member.append(reinterpret_cast<const char*>(&element), sizeof element);
    }
    npz.add_raw(std::string(name) + ".npy", std::as_bytes(std::span(member)));
  }

  static void add_as(NpzWriter& npz, std::string_view name, const std::string& descr,
                     const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    const auto add = [&]<typename T>() { add_converted<T>(npz, name, descr, shape, values); };
    if (descr == "<f4") return npz.add(name, shape, values);
    if (descr == "<f2") return add.operator()<_Float16>();
    if (descr == "<f8") return add.operator()<double>();
    if (descr == "|i1") return add.operator()<std::int8_t>();
    if (descr == "|u1") return add.operator()<std::uint8_t>();
    if (descr == "<i2") return add.operator()<std::int16_t>();
    if (descr == "<u2") return add.operator()<std::uint16_t>();
    if (descr == "<i4") return add.operator()<std::int32_t>();
    if (descr == "<u4") return add.operator()<std::uint32_t>();
    if (descr == "<i8") return add.operator()<std::int64_t>();
    add.operator()<std::uint64_t>();
  }

  void fill_graph() {
    for (std::int64_t i = 0; i < n * kNodeFeatures; ++i)
      node_feat.push_back(static_cast<float>(i) * 0.5f);
    for (std::int64_t i = 0; i < n; ++i) node_opcode.push_back(static_cast<std::uint8_t>(10 * i));
    edge_index = {1, 0, 2, 1, 3, 2, 4, 3};
  }
  void append_configuration(int values, int state) {
    for (int k = 0; k < values; ++k) features.push_back(static_cast<float>((k + state) % 7 - 1));
  }
};

}  // namespace tpudist::test
