#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "core/thread_pool.hpp"
#include "models/buffer_pool.hpp"
#include "models/executor.hpp"
#include "models/row_kernels.hpp"

namespace tpudist {

// What a pass is for: scores alone; or a gradient too, of all scores or of what is left when a
// shift of a slate's scores changes nothing (then only the rows that the plan calls needed are
// run).
enum class PassKind { scores, gradient, gradient_of_differences };

// One call of the CPU executor: forward, and backward from what forward kept. Work is cut into
// (member, fixed block of rows) tasks that the pool's threads share; a task runs on its thread
// alone, so the bits depend on the rows only.
//
// Plans whose rows are all their own run layers of aligned rows: a block's neighbours are summed
// (or the largest taken) and multiplied by the weights together with its own states, and summed
// again in the backward pass, which costs less than to keep them. Weight gradients are summed
// within fixed chunks of rows, chunk after chunk into partial sums that are added in order.
//
// Plans that share rows run layers of shared rows (cpu_shared_rows.cpp): each distinct past and
// each distinct sum of neighbours is multiplied by its weights once, and a row adds up what it
// takes. A tile of a weight gradient is one product over all rows.
class CpuPass {
 public:
  CpuPass(const NetworkLayout& layout, double output_scale, ThreadPool& pool, BufferPool& buffers,
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
  struct Group {
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
  void for_blocks(Group group, std::int64_t rows, const BlockTask& task) const;
  void for_chunks(Group group, std::int64_t blocks, const ChunkTask& task) const;

  // Runs other[0 .. others - 1] for each member, then the blocks of all ranges.
  void for_ranges(Group group, std::span<const std::int64_t> rows, const RangeTask& task,
                  std::int64_t others = 0,
                  const std::function<void(int member, std::int64_t i)>& other = {}) const;
  // Rows before layer `layer` (or behind the last), and groups of an edge set, that a pass runs.
  std::int64_t rows(std::size_t layer, bool needed) const {
    return needed ? plan_.needed_rows(layer) : plan_.rows(layer);
  }
  std::int64_t groups(std::size_t layer, std::size_t set, bool needed) const {
    return needed ? plan_.needed_part[layer].groups[set]
                  : plan_.steps[layer]->edges[set].sum.in.rows();
  }
  bool forward_needed() const { return kind_ == PassKind::gradient_of_differences; }
  bool keep() const { return kind_ != PassKind::scores; }

  void list_node_blocks();
  void encode_nodes();
  void encode_states();
  void join();
  bool kept(std::size_t layer) const;
  void forward_layer(std::size_t layer, Group members);
  void run_again(std::size_t layer, Group members);
  void forget_states(std::size_t layer, Group members);
  void forward_aligned(std::size_t layer, Group members);
  void fill_input(std::size_t layer, int member, std::int64_t first, std::int64_t count,
                  float* block) const;
  void apply_head(int member, std::int64_t first, std::int64_t count, ConstRows out);
  UnitScores read_out() const;

  void forward_shared(std::size_t layer, Group members);
  void take_sums(std::size_t layer);
  void aggregate(std::size_t layer, std::size_t set, int member, std::int64_t first,
                 std::int64_t count, Rows sums) const;
  void spread_to_neighbours(std::size_t layer, std::size_t set, int member, std::int64_t first,
                            std::int64_t count, ConstRows best, ConstRows gradient, Rows below,
                            const GatherOptions& options) const;
  void sum_neighbours(std::size_t layer, std::size_t set, int member, std::int64_t first,
                      std::int64_t count) const;
  void make_sums(std::size_t layer, Group members);
  void make_products(std::size_t layer, Group members, const MemberRows& own,
                     std::span<const MemberRows> products);

  void backward_group(Group group, const ScoreGradient& score_gradient,
                      std::span<const std::span<float>> gradients);
  void spread_scores(Group group, std::span<const double> score_gradient);
  void backward_aligned(std::size_t layer, Group group, Partials& partials);
  void backward_block(std::size_t layer, int member, int place, std::int64_t first,
                      std::int64_t count, bool fresh, float* partial);
  void fill_output_gradient(std::size_t layer, int member, int place, std::int64_t first,
                            std::int64_t count, Rows block, ConstRows mask) const;
  void join_gradient_aligned(Group group);

  void backward_head(Group group, std::span<const std::span<float>> gradients);
  void backward_shared(std::size_t layer, Group group, std::span<const std::span<float>> gradients);

  void backward_encoder(Group group, Partials& partials);
  void backward_nodes(const NodeBlock& block, int member, Group group, float* partial) const;
  void backward_states(int place, Group group, std::int64_t first, std::int64_t count,
                       float* partial) const;
  Partials take_partials(Group group, std::int64_t parts, std::int64_t begin, std::int64_t end);
  void add_partials(const Partials& partials, Group group,
                    std::span<const std::span<float>> gradients) const;
  void clear_padding(std::span<const std::span<float>> gradients) const;

  const NetworkLayout& layout_;
  const double output_scale_;
  ThreadPool& pool_;
  BufferPool& buffers_;
  const UnitInput& input_;
  const Plan& plan_;
  const PassKind kind_;
  const bool recompute_;  // keep every other layer's states only
  const Group all_;
  AlignedFloats aligned_;  // a copy of the parameters where the caller's are not aligned
  const float* weights_ = nullptr;
  std::vector<NodeBlock> node_blocks_;

  MemberRows node_input_;      // [opcode | node]
  MemberRows nodes_, states_;  // their parts of the join
  std::vector<MemberRows> x_;  // states before layer 0 .. L
  std::vector<std::vector<MemberRows>>
      sums_;                    // [layers][edge sets] of the groups, shared rows only
  std::vector<double> values_;  // [members, rows of the last layer] of the head
  // Aligned rows: d loss / d layer input of the layer above and of this one. Shared rows: above_ is
  // d loss / d layer output before the activation. Behind the layers above_ is that of the join.
  MemberRows above_, below_;
  // Aligned rows: the neighbours' maxima of the layer that above_ (below_) belongs to, if any.
  MemberRows above_best_, below_best_;
  std::vector<float> row_gradient_;  // [group, rows of the last layer] d loss / d value
};

}  // namespace tpudist
