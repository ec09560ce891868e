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

// One call of the CPU executor: forward, and backward from what forward kept. Work is cut into
// (member, fixed block of rows) tasks that the pool's threads share; a task runs on its thread
// alone, so the bits depend on the rows only. Gradients are summed within fixed chunks of rows,
// chunk after chunk into partial sums that are added in order.
//
// Kept for backward: the states between the layers, [members, rows, stride] each. The aggregated
// neighbours are computed again where they are needed: that costs less than to write and read them.
class CpuPass {
 public:
  CpuPass(const NetworkLayout& layout, double output_scale, ThreadPool& pool, BufferPool& buffers,
          const MemberRange& members, const UnitInput& input);

  // `keep`: backward will follow.
  UnitScores forward(bool keep);
  void backward(std::span<const double> score_gradient,
                std::span<const std::span<float>> gradients);

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
  // Members whose backward pass runs together, and their partial gradients [members, parts, length]
  // of one range of the parameters.
  struct Group {
    int first, count;
  };
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

  const float* weights(int member) const { return weights_ + member * layout_.table.length(); }
  MemberRows take(std::int64_t rows, std::int64_t stride, int members);
  void for_blocks(Group group, std::int64_t rows, const BlockTask& task) const;
  void for_chunks(Group group, std::int64_t blocks, const ChunkTask& task) const;

  void list_node_blocks();
  void encode_nodes();
  void encode_states();
  void join();
  void forward_layer(std::size_t layer);
  void fill_input(std::size_t layer, int member, std::int64_t first, std::int64_t count,
                  float* block) const;
  UnitScores read_out() const;

  void backward_group(Group group, std::span<const double> score_gradient,
                      std::span<const std::span<float>> gradients);
  void backward_layer(std::size_t layer, Group group, Partials& partials);
  void backward_block(std::size_t layer, int member, int place, std::int64_t first,
                      std::int64_t count, bool fresh, float* partial);
  void fill_output_gradient(std::size_t layer, int place, std::int64_t first, std::int64_t count,
                            Rows block, ConstRows mask) const;
  void backward_encoder(Group group, Partials& partials);
  void backward_nodes(const NodeBlock& block, int member, int place, float* partial) const;
  void backward_states(int place, std::int64_t first, std::int64_t count, float* partial) const;
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
  const Group all_;
  AlignedFloats aligned_;  // a copy of the parameters where the caller's are not aligned
  const float* weights_ = nullptr;
  std::vector<NodeBlock> node_blocks_;

  MemberRows node_input_;            // [opcode | node]
  MemberRows nodes_, states_;        // their parts of the join
  std::vector<MemberRows> x_;        // states before layer 0 .. L
  std::vector<double> values_;       // [members, rows of the last layer] of the head
  MemberRows above_, below_;         // d loss / d layer input of the layer above and of this one
  std::vector<float> row_gradient_;  // [group, rows of the last layer] d loss / d value
};

}  // namespace tpudist
