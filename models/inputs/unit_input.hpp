#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "core/array.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/plans/kept_rows.hpp"
#include "models/plans/plan.hpp"

namespace tpudist {

// Mean and 1 / standard deviation of every feature over a member's training graphs; for the
// transform min_max, minimum and 1 / (maximum - minimum). A constant column has scale 0. The
// encoder computes (x - mean) * scale (EncoderConfig).
struct FeatureStatistics {
  std::vector<double> node_mean, node_scale;  // [node features], over the nodes of all graphs
  std::vector<double> config_mean,
      config_scale;  // [config features], over all occurrences of states
};

struct EncodedGraph;

// Which form of node features a GraphInput has.
enum class FeatureForm { rows, raw };

// The arrays of a GraphInput, in own memory or in a file that processes share.
struct GraphArrays {
  Array<float> rows;           // [nodes, stride], aligned to 64 bytes; may be empty
  Array<float> raw;            // [nodes, F]; may be empty
  Array<std::int32_t> opcode;  // [nodes]
  // The content of an EncodedGraph: features [nodes, F], and codes; may be empty.
  Array<float> encoded;
  Array<std::int32_t> codes;

  // All arrays except those of an EncodedGraph. `node_features` [nodes, F] raw, with F of the
  // schema, `opcodes` [nodes]. Throws DataError if the lengths do not match, or if an opcode is not
  // below the schema's number (all are 0 if it has none).
  static GraphArrays of(std::span<const float> node_features, std::span<const std::uint8_t> opcodes,
                        const FeatureSchema& schema, FeatureForm form);

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

// The node inputs of one graph: opcodes, and features raw or as sign(x) * log1p|x|. Made once per
// graph and shared between threads. Immutable after it is shared.
class GraphInput {
 public:
  // Throws DataError when the lengths do not match. The arrays of an EncodedGraph are ignored.
  GraphInput(const GraphArrays& arrays, const FeatureSchema& schema);

  // Size of the arrays for a graph of `nodes` nodes, without copies made for networks.
  static std::uint64_t bytes(std::int64_t nodes, const FeatureSchema& schema, FeatureForm form);

  std::int64_t nodes() const { return static_cast<std::int64_t>(opcode_.size()); }
  // Floats per row of feature_rows(): F, padded with zeros.
  std::int64_t stride() const { return stride_; }
  // [nodes, stride], aligned to 64 bytes: sign(x) * log1p|x|. Throws Error if this form is missing.
  const float* feature_rows() const {
    if (rows_.empty() && nodes() > 0) refuse_form();
    return rows_.data();
  }
  std::span<const std::int32_t> opcode() const { return opcode_; }
  // [nodes, F], unchanged. Throws Error if this form is missing.
  std::span<const float> raw_features() const {
    if (raw_.empty() && nodes() > 0) refuse_form();
    return raw_;
  }

  // The nodes after the transform of a composed network's encoder, set once before the graph is
  // shared. Null: every unit transforms them again.
  const std::shared_ptr<const EncodedGraph>& encoded() const { return encoded_; }
  void set_encoded(std::shared_ptr<const EncodedGraph> nodes) { encoded_ = std::move(nodes); }

 private:
  [[noreturn]] static void refuse_form();

  std::int64_t stride_;
  Array<float> rows_, raw_;
  Array<std::int32_t> opcode_;
  std::shared_ptr<const EncodedGraph> encoded_;
};

class PreparedUnit;

// The purpose of a unit, which decides what Network::prepare_unit makes. `differences`: gradients
// of losses that ignore a shift at all scores (Network::gradient with `common` false).
enum class UnitUse { scores, gradients, differences };

// The input of a network call: the slates of one unit, or of the units of a joined plan. Shared
// parts are held by pointer. Immutable once it is complete.
struct UnitInput {
  // The plan's input rows, in order; in a joined plan the graphs of each run fill it.
  std::vector<std::shared_ptr<const GraphInput>> graphs;
  std::vector<float> states;  // [plan.states, F], the slates' state tables one after another
  std::shared_ptr<const Plan> plan;
  UnitUse use = UnitUse::scores;
  // What layers need of the unit besides its plan, on the network's device. Network::prepare_unit
  // makes it where the network is composed of layers. Null: every call makes its own.
  std::shared_ptr<const PreparedUnit> prepared;
  // Of a plan that computes only the rows that kept.rows lacks (build_kept_plan): the members of
  // the rows are those of the call's parameters. Calls for different members may run at the same
  // time.
  KeptUse kept;

  // [graphs] the input row of each graph's first node.
  std::vector<std::int64_t> graph_begins() const;
};

// Joins units (models/plans/join_plans.hpp): blocks[b][s] is in slot s of block b, or null. The
// result is not prepared.
UnitInput join_units(const std::vector<std::vector<const UnitInput*>>& blocks,
                     std::int64_t config_features);

}  // namespace tpudist
