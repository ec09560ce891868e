#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "core/buffer_cache.hpp"
#include "core/thread_pool.hpp"
#include "models/executors/executor.hpp"
#include "models/kernels/row_kernels.hpp"

namespace tpudist {

// What a pass is for. `gradient_of_differences` is for losses that are translation-invariant
// whatever the scores: it runs the rows that the plan calls needed and no others.
enum class PassKind { scores, gradient, gradient_of_differences };

// One call of the CPU executor: forward, and backward from what forward kept. Work is cut into
// (member, fixed block of rows) tasks that the pool's threads share; a task runs on its thread
// alone, so the bits depend on the rows only.
//
// Layers of dense plans: the neighbours of a block of rows are aggregated and multiplied by the
// weights together with the rows' own states. The backward pass aggregates them again, which costs
// less than to keep the result. Weight gradients are summed within fixed chunks of rows, chunk
// after chunk, into partial sums that are added in order.
//
// Layers of refined plans (cpu_pass_refined.cpp): each row before the layer and each neighbourhood
// is multiplied by its weights once, and a row behind the layer adds up the products that it takes.
// A tile of a weight gradient is one product over all rows.
class CpuPass {
 public:
  CpuPass(const NetworkLayout& layout, double output_scale, ThreadPool& pool, BufferCache& buffers,
          const MemberRange& members, const UnitInput& input, PassKind kind, bool recompute);

  UnitScores forward();
  // Once, after forward. The gradients must lie on 64-byte boundaries.
  void backward(const ScoreGradient& score_gradient, std::span<const std::span<float>> gradients);

 private:
  // A matrix for each member: [members, rows, stride].
  struct MemberRows {
    Buffer buffer;
    std::int64_t rows = 0, stride = 0;
    Rows of(int member) const { return {buffer.data() + member * rows * stride, stride}; }
  };
  // Rows of node inputs that lie together: of one graph.
  struct NodeBlock {
    const float* features;
    const std::int32_t* opcode;
    std::int64_t first, count;
  };
  // Members whose backward pass runs together, and whether it runs the needed rows only.
  struct Members {
    int first, count;
    bool needed = false;
  };
  // Partial gradients [members, parts, length] of one range of the parameters.
  struct Partials {
    Buffer buffer;
    std::int64_t parts = 0, begin = 0, length = 0;
    float* of(int member, std::int64_t part) const {
      return buffer.data() + (member * parts + part) * length;
    }
  };
  using BlockTask = std::function<void(int member, std::int64_t first, std::int64_t count)>;
  using ChunkTask =
      std::function<void(int member, std::int64_t chunk, std::int64_t begin, std::int64_t end)>;
  // A block of rows of one of several matrices.
  using RangeTask =
      std::function<void(int member, std::size_t range, std::int64_t first, std::int64_t count)>;

  const float* weights(int member) const { return weights_ + member * layout_.table.length(); }
  MemberRows take(std::int64_t rows, std::int64_t stride, int members);
  void for_blocks(Members members, std::int64_t rows, const BlockTask& task) const;
  void for_chunks(Members members, std::int64_t blocks, const ChunkTask& task) const;

  // Runs other[0 .. others - 1] for each member, then the blocks of all ranges.
  void for_ranges(Members members, std::span<const std::int64_t> rows, const RangeTask& task,
                  std::int64_t others = 0,
                  const std::function<void(int member, std::int64_t i)>& other = {}) const;
  // How many rows before layer `layer` (or behind the last), and how many neighbourhoods of an edge
  // set, a pass runs.
  std::int64_t rows(std::size_t layer, bool needed) const {
    return needed ? plan_.needed_rows(layer) : plan_.rows(layer);
  }
  std::int64_t neighbourhoods(std::size_t layer, std::size_t set, bool needed) const {
    return needed ? plan_.needed_counts[layer].neighbourhoods[set]
                  : plan_.layers[layer]->edges[set].aggregate.forward.rows();
  }
  bool forward_needed() const { return kind_ == PassKind::gradient_of_differences; }
  bool keep() const { return kind_ != PassKind::scores; }

  void list_node_blocks();
  void encode_nodes();
  void encode_states();
  void join();
  bool kept(std::size_t layer) const;
  void forward_layer(std::size_t layer, Members members);
  void run_again(std::size_t layer, Members members);
  void forget_states(std::size_t layer, Members members);
  void forward_dense(std::size_t layer, Members members);
  void fill_input(std::size_t layer, int member, std::int64_t first, std::int64_t count,
                  float* block) const;
  void apply_head(int member, std::int64_t first, std::int64_t count, ConstRows out);
  UnitScores read_out() const;

  void forward_refined(std::size_t layer, Members members);
  void take_sums(std::size_t layer);
  void aggregate(std::size_t layer, std::size_t set, int member, std::int64_t first,
                 std::int64_t count, Rows sums) const;
  void spread_to_neighbours(std::size_t layer, std::size_t set, int member, std::int64_t first,
                            std::int64_t count, ConstRows best, ConstRows gradient, Rows d_x,
                            const SpmmOptions& options) const;
  void sum_neighbours(std::size_t layer, std::size_t set, int member, std::int64_t first,
                      std::int64_t count) const;
  void make_sums(std::size_t layer, Members members);
  void make_products(std::size_t layer, Members members, const MemberRows& own,
                     std::span<const MemberRows> products);

  void backward_members(Members members, const ScoreGradient& score_gradient,
                        std::span<const std::span<float>> gradients);
  void spread_scores(Members members, std::span<const double> score_gradient);
  void backward_dense(std::size_t layer, Members members, Partials& partials);
  void backward_block(std::size_t layer, int member, int place, std::int64_t first,
                      std::int64_t count, bool fresh, float* partial);
  void fill_output_gradient(std::size_t layer, int member, int place, std::int64_t first,
                            std::int64_t count, Rows block, ConstRows mask) const;
  void join_gradient_dense(Members members);

  void backward_head(Members members, std::span<const std::span<float>> gradients);
  void backward_refined(std::size_t layer, Members members,
                        std::span<const std::span<float>> gradients);

  void backward_encoder(Members members, Partials& partials);
  void backward_nodes(const NodeBlock& block, int member, Members members, float* partial) const;
  void backward_states(int place, Members members, std::int64_t first, std::int64_t count,
                       float* partial) const;
  Partials take_partials(Members members, std::int64_t parts, std::int64_t begin, std::int64_t end);
  void add_partials(const Partials& partials, Members members,
                    std::span<const std::span<float>> gradients) const;
  void clear_padding(std::span<const std::span<float>> gradients) const;

  const NetworkLayout& layout_;
  const double output_scale_;
  ThreadPool& pool_;
  BufferCache& buffers_;
  const UnitInput& input_;
  const Plan& plan_;
  const PassKind kind_;
  const bool recompute_;  // keep every other layer's states only
  const Members all_;
  AlignedFloats aligned_;  // a copy of the parameters where the caller's are not aligned
  const float* weights_ = nullptr;
  std::vector<NodeBlock> node_blocks_;

  MemberRows node_input_;      // [opcode | node]
  MemberRows nodes_, states_;  // their parts of the join
  std::vector<MemberRows> x_;  // states before layer 0 .. L
  std::vector<std::vector<MemberRows>>
      sums_;                    // [layers][edge sets] aggregated neighbourhoods, refined plans only
  std::vector<double> values_;  // [members, rows of the last layer] of the head
  // Dense plans: d loss / d input of the layer above and of the layer in question, and where these
  // layers take maxima, the maxima.
  MemberRows d_input_above_, d_input_;
  MemberRows maxima_above_, maxima_;
  // d loss / d output before the activation: in refined plans of the layer in question, and in all
  // plans, behind the layers, of the encoder's join.
  MemberRows d_preactivation_;
  std::vector<float> row_gradient_;  // [members, rows of the last layer] d loss / d value
};

}  // namespace tpudist
