#include "data/loading/module_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/convert/graph_schema.hpp"
#include "data/convert/source_npz.hpp"
#include "data/hdf5/element_type.hpp"
#include "data/loading/open_graph.hpp"
#include "data/shards/config_codec.hpp"

namespace tpudist {
namespace {

// Numbers rows by first occurrence; equal bytes get equal numbers.
std::vector<std::int32_t> number_equal_rows(std::span<const std::byte> rows,
                                            std::size_t row_bytes) {
  std::unordered_map<std::string_view, std::int32_t> numbers;
  std::vector<std::int32_t> group;
  for (std::size_t at = 0; at < rows.size(); at += row_bytes) {
    const std::string_view row(reinterpret_cast<const char*>(&rows[at]), row_bytes);
    group.push_back(numbers.emplace(row, static_cast<std::int32_t>(numbers.size())).first->second);
  }
  return group;
}

// Reads the configurations of one graph into memory, in the form that a shard would have
// (data/convert/graph_converter.cpp).
class ConfigReader {
 public:
  ConfigReader(const NpzReader& npz, const Collection& collection, const GraphSizes& sizes,
               OpenGraph& graph)
      : passes_(npz, collection), collection_(collection), sizes_(sizes), graph_(graph) {}

  void read() {
    graph_.chunk_rows = sizes_.configs;
    graph_.chunks.resize(1);
    if (collection_.is_tile()) {
      type_ = passes_.type_of_rest(passes_.start().next(), ElementType::i8);
    } else if (read_codes()) {
      return;
    }
    read_features();
  }

 private:
  // Returns false, with type_ set, if codes do not pay.
  bool read_codes() {
    const auto nodes = static_cast<std::size_t>(sizes_.config_nodes);
    const int features = collection_.schema.config_features;
    ConfigEncoder encoder(sizes_.config_nodes, features);
    std::vector<std::uint8_t> bytes;  // the codes so far if they fit; else see `words`
    std::vector<std::uint16_t> words, codes;
    FeatureStream& stream = passes_.start();
    while (const auto* block = stream.next()) {
      const std::int64_t known = encoder.state_count();
      codes.resize(static_cast<std::size_t>(block->rows) * nodes);
      const bool repeat = encoder.encode(block->values, codes);
      // Only a new state can have a value that is not finite.
      if (encoder.state_count() != known) stream.check_finite(*block);
      if (!repeat) {
        type_ = passes_.type_of_rest(block, narrowest_type(encoder.states().features));
        return false;
      }
      if (encoder.max_states_per_node() <= 256) {
        bytes.insert(bytes.end(), codes.begin(), codes.end());
      } else {
        words.insert(words.end(), bytes.begin(), bytes.end());
        bytes = std::vector<std::uint8_t>();
        words.insert(words.end(), codes.begin(), codes.end());
      }
    }
    if (!coding_pays(sizes_.configs, sizes_.config_nodes, features, encoder.state_count(),
                     words.empty() ? 1 : 2)) {
      type_ = narrowest_type(encoder.states().features);
      return false;
    }
    graph_.coded = true;
    graph_.width = sizes_.config_nodes;
    graph_.states = encoder.states();
    const auto keep = [&]<typename Code>(std::vector<Code>& all) {
      graph_.times.group = number_equal_rows(std::as_bytes(std::span(all)), nodes * sizeof(Code));
      graph_.chunks.front().codes = Array<Code>(std::move(all));
    };
    words.empty() ? keep(bytes) : keep(words);
    return true;
  }

  void read_features() {
    std::vector<std::byte> features;
    FeatureStream& stream = passes_.start();
    while (const auto* block = stream.next()) {
      const std::size_t bytes = block->values.size() * element_bytes(type_);
      features.resize(features.size() + bytes);
      narrow(block->values, type_, std::span(features).last(bytes));
    }
    graph_.width = sizes_.config_values;
    graph_.times.group = number_equal_rows(
        features, static_cast<std::size_t>(sizes_.config_values) * element_bytes(type_));
    graph_.chunks.front().type = type_;
    graph_.chunks.front().features = std::move(features);
  }

  ConfigPasses passes_;
  const Collection& collection_;
  const GraphSizes& sizes_;
  OpenGraph& graph_;
  ElementType type_ = ElementType::i8;  // of the features, if not coded
};

// Throws if the file is a graph of the other kind, which lacks some arrays.
void require_kind(const NpzReader& npz, const Collection& collection) {
  const std::string_view own = collection.is_tile() ? "config_feat" : "node_config_feat";
  const std::string_view other = collection.is_tile() ? "node_config_feat" : "config_feat";
  if (npz.contains(own) || !npz.contains(other)) return;
  throw DataError(fmt::format(
      "{}: has {} and not {}: it is no graph of {}; rank it with a run of {} "
      "graphs",
      npz.path().string(), other, own, collection.name, collection.is_tile() ? "layout" : "tile"));
}

Module read_npz(const NpzReader& npz, const std::filesystem::path& path,
                const Collection& collection, const GraphReduction& reduction) {
  require_kind(npz, collection);
  const GraphSizes sizes = read_graph_sizes(npz, collection, /*needs_run_times=*/false);
  OpenGraph graph;
  graph.graph = read_graph(npz, collection, sizes);
  std::optional<RunTimes> times = read_optional_run_times(npz, collection, sizes);
  const bool has_times = times.has_value();
  if (has_times) {
    graph.times = *std::move(times);
  } else {
    graph.times.runtime = std::vector<std::int64_t>(static_cast<std::size_t>(sizes.configs));
  }
  ConfigReader(npz, collection, sizes, graph).read();
  graph.entry.name = graph.graph.name;
  graph.entry.schema = collection.schema;
  graph.entry.split = "test";
  graph.entry.shard = path;
  graph.entry.nodes = sizes.nodes;
  graph.entry.edges = sizes.edges;
  graph.entry.configs = sizes.configs;
  graph.entry.config_nodes = sizes.config_nodes;
  graph.entry.source = {path.string(), std::filesystem::file_size(path), hash_file(path)};
  DatasetOptions options;
  options.shards = path;
  options.collection = collection;
  options.split = "test";
  options.reduction = reduction;
  std::vector<OpenGraph> graphs;
  graphs.push_back(std::move(graph));
  return {Dataset::of_graphs(options, std::move(graphs)), has_times, {}, 0, nullptr};
}

// The only graph of a source, or the named one.
int graph_of(const SourceNpz& source, const std::filesystem::path& path, const std::string& name) {
  const std::vector<std::string> names = source.names();
  if (names.size() == 1 && name.empty()) return 0;
  const int found = source.find(name);
  if (found >= 0) return found;
  const std::vector<std::string> near = near_names(name, names);
  throw DataError(fmt::format("{}: {} of its {} modules: name one of them with --module: {}",
                              path.string(), name.empty() ? "which" : name + " is none",
                              names.size(), first_of(near.empty() ? names : near, 10)));
}

}  // namespace

Module read_module(const std::filesystem::path& path, const Collection& collection,
                   const GraphReduction& reduction, const std::string& name,
                   const ConfigRequest& request) {
  const SourceNpz source(path, collection, request);
  const int index = graph_of(source, path, name);
  std::optional<Module> module;
  source.with_npz(index, [&](const std::filesystem::path& npz) {
    module = read_npz(NpzReader(npz), path, collection, reduction);
  });
  module->config_numbers = source.config_numbers(index);
  if (source.made() || !module->config_numbers.empty()) module->standard = source.standard(index);
  module->made = source.made();
  return *std::move(module);
}

}  // namespace tpudist
