#include <algorithm>

#include "models/kernels/cpu_blocks.hpp"
#include "models/executors/cpu_pass.hpp"
#include "models/kernels/gemm.hpp"
#include "models/inputs/graph_input.hpp"

namespace tpudist {

void CpuPass::backward_nodes(const NodeBlock& block, int member, Members members,
                             float* partial) const {
  const NetworkLayout& net = layout_;
  const float* const w = weights(member);
  const std::int64_t columns = net.opcode_width + net.node_width;
  const Rows z{block_scratch(1, kBlockRows * net.stride), net.stride};
  spmm_rows(plan_.rows_of_node, block.first, block.count,
            d_preactivation_.of(member - members.first), net.width, z,
            {.sources = rows(0, members.needed)});
  add_column_sums(z, block.count, net.width, partial + net.join_bias);
  gemm(layout_.precision, columns, net.width, block.count,
       {node_input_.of(member).row(block.first), net.node_stride, Transpose::yes},
       {z.data, z.stride}, 1, partial + net.join_weight, net.width);

  const Rows input{block_scratch(0, kBlockRows * net.node_stride), net.node_stride};
  gemm(layout_.precision, block.count, columns, net.width, {z.data, z.stride},
       {w + net.join_weight, net.width, Transpose::yes}, 0, input.data, input.stride);
  const Rows node{input.data + net.opcode_width, input.stride};
  add_column_sums(node, block.count, net.node_width, partial + net.node_bias);
  gemm(layout_.precision, kNodeFeatures, net.node_width, block.count,
       {block.features, GraphInput::stride, Transpose::yes}, {node.data, node.stride}, 1,
       partial + net.node_weight, net.node_width);
  for (std::int64_t n = 0; n < block.count; ++n) {
    float* const opcode = partial + net.opcode_weight + block.opcode[n] * net.opcode_width;
    for (std::int64_t c = 0; c < net.opcode_width; ++c) opcode[c] += input.row(n)[c];
  }
}

void CpuPass::backward_states(int place, Members members, std::int64_t first, std::int64_t count,
                              float* partial) const {
  const std::int64_t features = layout_.config_features, stride = pad16(features);
  const Rows z{block_scratch(1, kBlockRows * layout_.stride), layout_.stride};
  spmm_rows(plan_.rows_of_state, first, count, d_preactivation_.of(place), layout_.width, z,
            {.sources = rows(0, members.needed)});
  float* const states = block_scratch(0, kBlockRows * stride);
  copy_rows({input_.states.data() + first * features, features}, count, features, {states, stride});
  gemm(layout_.precision, features, layout_.width, count, {states, stride, Transpose::yes},
       {z.data, z.stride}, 1, partial + layout_.join_config, layout_.width);
}

void CpuPass::backward_encoder(Members members, Partials& partials) {
  const std::int64_t node_blocks = node_blocks_.size(), state_blocks = block_count(plan_.states);
  const std::int64_t node_chunks = chunk_count(node_blocks),
                     state_chunks = chunk_count(state_blocks);
  partials = take_partials(members, node_chunks + state_chunks, 0, layout_.encoder_end);
  const auto fresh = [&](int place, std::int64_t part) {
    float* const partial = partials.of(place, part);
    std::fill_n(partial, partials.length, 0.0f);
    return partial;
  };
  const auto nodes = [&](int member, std::int64_t chunk, std::int64_t begin, std::int64_t end) {
    const int place = member - members.first;
    float* const partial = fresh(place, chunk);
    for (std::int64_t block = begin; block < end; ++block) {
      backward_nodes(node_blocks_[block], member, members, partial);
    }
  };
  const auto states = [&](int member, std::int64_t chunk, std::int64_t begin, std::int64_t end) {
    const int place = member - members.first;
    float* const partial = fresh(place, node_chunks + chunk);
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlockRows;
      backward_states(place, members, first, std::min(kBlockRows, plan_.states - first), partial);
    }
  };
  for_chunks(members, node_blocks, nodes);
  for_chunks(members, state_blocks, states);
}

}  // namespace tpudist
