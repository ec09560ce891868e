#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/aligned.hpp"
#include "core/array.hpp"
#include "core/tpugraphs.hpp"

namespace tpudist {

struct EncodedGraph;

// The forms of node features that a GraphInput can hold.
enum class FeatureForms { both, rows, raw };

// The arrays of a GraphInput, in memory of their own or in a file that processes share.
struct GraphArrays {
  Array<float> rows;           // [nodes, GraphInput::stride], aligned to 64 bytes; or none
  Array<float> raw;            // [nodes, kNodeFeatures]; or none
  Array<std::int32_t> opcode;  // [nodes]
  // What an encoder makes of the nodes (EncodedGraph): features [nodes, F], and codes; or none.
  Array<float> encoded;
  Array<std::int32_t> codes;

  // All but what an encoder makes. `node_features` [nodes, kNodeFeatures] raw, `opcodes` [nodes].
  // Throws DataError when the lengths do not fit or an opcode is not below kOpcodes.
  static GraphArrays of(std::span<const float> node_features, std::span<const std::uint8_t> opcodes,
                        FeatureForms forms);

  // Calls body(array) for each array in a fixed order; G is GraphArrays, const or not.
  template <typename G, typename Body>
  static void for_each(G& graph, Body&& body) {
    body(graph.rows);
    body(graph.raw);
    body(graph.opcode);
    body(graph.encoded);
    body(graph.codes);
  }
};

// The node inputs of one graph in the form that networks take: features raw or as sign(x) *
// log1p|x|, or both, and opcodes. Made once for each graph and shared between threads. Immutable
// once it is shared.
class GraphInput {
 public:
  // Floats from node to node: kNodeFeatures, then zeros.
  static constexpr std::int64_t stride = pad16(kNodeFeatures);

  // Features in both forms; see GraphArrays::of.
  GraphInput(std::span<const float> node_features, std::span<const std::uint8_t> opcodes);
  // Throws DataError when the lengths do not fit. What an encoder made is not taken over.
  explicit GraphInput(const GraphArrays& arrays);

  // What the arrays of a graph of so many nodes take, apart from copies for networks.
  static std::uint64_t bytes(std::int64_t nodes, FeatureForms forms);

  std::int64_t nodes() const { return static_cast<std::int64_t>(opcode_.size()); }
  // [nodes, stride], aligned to 64 bytes: sign(x) * log1p|x|. Throws Error where they are not held.
  const float* feature_rows() const {
    if (rows_.empty() && nodes() > 0) refuse_form();
    return rows_.data();
  }
  std::span<const std::int32_t> opcode() const { return opcode_; }
  // [nodes, kNodeFeatures] as they were given. Throws Error where they are not held.
  std::span<const float> raw_features() const {
    if (raw_.empty() && nodes() > 0) refuse_form();
    return raw_;
  }

  // What the encoder of a composed network makes of the nodes before any weight, set once before
  // the graph is shared. Null: every unit makes it anew.
  const std::shared_ptr<const EncodedGraph>& encoded() const { return encoded_; }
  void set_encoded(std::shared_ptr<const EncodedGraph> nodes) { encoded_ = std::move(nodes); }

 private:
  [[noreturn]] static void refuse_form();

  Array<float> rows_, raw_;
  Array<std::int32_t> opcode_;
  std::shared_ptr<const EncodedGraph> encoded_;
};

}  // namespace tpudist
