#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/loading/dataset.hpp"

namespace tpudist {

// The smallest and the largest of added numbers.
template <typename T>
struct Range {
  T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();

  void add(T value) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  bool holds(const Range& other) const { return other.least >= least && other.most <= most; }
  bool operator==(const Range&) const = default;
};

struct TrainedGraph {
  std::string name;           // without collection
  std::vector<bool> members;  // [M] of a run that trained on the graph, or began from such weights

  bool operator==(const TrainedGraph&) const = default;
};

// The graphs that members trained on. A graph has two keys: one of its source file, and one of its
// name and size, which other collections share. Data sets may use a name for several graphs.
struct TrainedOn : std::map<std::uint64_t, TrainedGraph> {
  void add(const GraphEntry& graph, const std::vector<bool>& members);
  bool knows(const GraphEntry& graph, std::size_t member) const;
  // The graphs that members know, else the known model families; empty: none.
  std::string text(const Dataset& graphs) const;
};

// What graphs have. A run keeps this of its training graphs, to show later how another module
// differs from them. Plain data.
struct SeenGraphs {
  std::int64_t graphs = 0;
  std::string reduction = "none";           // data.reduce, which left out nodes
  Range<std::int64_t> nodes, config_nodes;  // of a graph: all, and configurable
  std::set<int> opcodes;                    // numbers
  std::vector<Range<float>> features;       // of each column of node_feat
  TrainedOn trained_on;

  // Adds a graph of `nodes` nodes; opcodes and features may be of a part of them.
  void add(std::int64_t nodes, std::int64_t config_nodes, std::span<const std::uint8_t> opcodes,
           std::span<const float> features);
  bool operator==(const SeenGraphs&) const = default;
};

SeenGraphs seen_graphs(const Dataset& dataset);

// The parts of a module outside the seen ranges. Plain data.
struct UnseenParts {
  std::vector<int> opcodes;                  // numbers that were never seen
  std::vector<std::size_t> features;         // columns that leave their range
  bool nodes = false, config_nodes = false;  // whether the number leaves the range

  bool any() const { return nodes || config_nodes || !opcodes.empty() || !features.empty(); }
};

// Throws DataError if the numbers of columns differ.
UnseenParts unseen_parts(const SeenGraphs& module, const SeenGraphs& seen);

// One sentence, "" if all was seen: "2 opcodes never seen (fft, sort), 12 of 140 ...". A schema
// other than TpuGraphs' has its own opcodes: "(opcode 17, opcode 203)".
std::string unseen_text(const SeenGraphs& module, const SeenGraphs& seen,
                        const FeatureSchema& schema);

// SeenGraphs as a JSON file of this name in a run folder. Reading throws IoError, and DataError for
// any other content.
inline constexpr const char* kSeenGraphsFile = "seen_graphs.json";
std::string seen_graphs_text(const SeenGraphs& seen);
SeenGraphs read_seen_graphs(const std::filesystem::path& file);

}  // namespace tpudist
