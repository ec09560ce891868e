#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/hlo/hlo_module.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {

// A module as the arrays of a TpuGraphs graph. Nodes are the instructions of all computations, in
// the order of the file.
struct HloGraph {
  std::vector<float> node_features;       // [n, 140]
  std::vector<std::uint8_t> opcodes;      // [n], 0: unknown
  std::vector<std::int64_t> edges;        // [m, 2] (consumer, producer), ascending
  std::vector<std::int64_t> node_splits;  // 0, ends of computations that are loops, ..., n
  // Opcodes and types that the features cannot express: their columns are 0.
  std::set<std::string> unknown_opcodes;
  std::set<std::int64_t> unknown_element_types;

  std::int64_t nodes() const { return std::ssize(opcodes); }
};

// Writes the numbers of a row of features from left to right.
class FeatureRow {
 public:
  explicit FeatureRow(float* to) : to_(to) {}
  void number(std::int64_t value) { *to_++ = static_cast<float>(value); }
  // Writes the first `count` elements, 0 for missing ones.
  void list(const std::vector<std::int64_t>& values, std::size_t count);
  // As `list`, then sum and product of all elements, in int64 that wraps around.
  void measured(const std::vector<std::int64_t>& values, std::size_t count,
                std::uint64_t product_of_none = 1);
  float* end() const { return to_; }

 private:
  float* to_;
};

// The 140 columns of node_feat of an instruction, in the order of the data set's extractor (see
// featurise): type one-hot, dimensions with sum and product, window, convolution dimension numbers,
// ..., layout. Columns of types and opcodes that the extractor does not know are 0.
void write_node_features(const HloInstruction& instruction, bool is_root,
                         std::span<float, kNodeFeatures> to);

// The features of the data set's extractor (google-research-datasets/tpu_graphs,
// process_data/xla/featurizers.h and hlo_encoder.cc). Throws DataError, beginning with `where`, for
// duplicate names and numbers, operands and computations that are not defined before, a wrong
// number of operands, dimensions that a tensor does not have, and a computation without its root.
HloGraph featurise(const HloModule& module, std::string_view where);

// The number of an opcode in the data set's list; 0 for an unknown opcode, and for the last one,
// tan, whose number 120 has no row in a table of 120 opcodes.
std::uint8_t opcode_number(std::string_view opcode);

// The name of an opcode number; "unknown" for a number without a name.
std::string_view opcode_name(std::uint8_t number);

// Whether layouts of the opcode are configured: convolution, dot and reshape.
bool takes_layouts(std::string_view opcode);

// The names of the columns of node_feat, as in the data set's extractor; [140].
std::vector<std::string> node_feature_names();

}  // namespace tpudist
