#include "models/inputs/fused_encoder.hpp"

#include <algorithm>

#include "models/inputs/unit_input.hpp"
#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/gemm.hpp"

namespace tpudist {
namespace {

std::vector<FusedEncoder::NodeBlock> node_blocks(const UnitInput& input) {
  std::vector<FusedEncoder::NodeBlock> blocks;
  std::int64_t base = 0;
  for (const auto& graph : input.graphs) {
    for (std::int64_t at = 0; at < graph->nodes(); at += kBlockRows) {
      blocks.push_back({graph->feature_rows() + at * graph->stride(), graph->opcode().data() + at,
                        base + at, std::min(kBlockRows, graph->nodes() - at)});
    }
    base += graph->nodes();
  }
  return blocks;
}

}  // namespace

FusedEncoder::FusedEncoder(const EncoderConfig& config, const FeatureSchema& schema,
                           const ParameterTable& table)
    : opcode_width_(config.opcode_width),
      node_width_(config.node_width),
      width_(config.width),
      node_features_(schema.node_features),
      features_(schema.config_features),
      node_stride_(pad16(opcode_width_ + node_width_)),
      stride_(pad16(width_)) {
  const auto offset = [&](const char* name) { return table.find(name).offset; };
  opcode_ = offset("encoder.opcode.weight");
  node_ = offset("encoder.node.weight");
  node_bias_ = offset("encoder.node.bias");
  join_ = offset("encoder.join.weight");
  join_config_ = join_ + (opcode_width_ + node_width_) * width_;
  join_bias_ = offset("encoder.join.bias");
  end_ = join_bias_ + stride_;
}

// The node's own columns [opcode | node], and their part of the join.
void FusedEncoder::encode_nodes(const FusedCall& call, const Kept& kept, int member,
                                const NodeBlock& block, Rows nodes) const {
  const float* const w = call.weights(member);
  const Rows input{kept.node_input.of(member).row(block.first), node_stride_};
  for (std::int64_t n = 0; n < block.count; ++n) {
    std::copy_n(w + opcode_ + block.opcode[n] * opcode_width_, opcode_width_, input.row(n));
  }
  const Rows columns{input.data + opcode_width_, node_stride_};
  gemm(call.precision, block.count, node_width_, node_features_,
       {block.features, pad16(node_features_)}, {w + node_, node_width_}, 0, columns.data,
       columns.stride);
  bias_relu_rows(columns, block.count, node_width_, w + node_bias_, {}, false);
  gemm(call.precision, block.count, width_, opcode_width_ + node_width_, {input.data, input.stride},
       {w + join_, width_}, 0, nodes.data, nodes.stride);
  bias_relu_rows(nodes, block.count, width_, w + join_bias_, {}, false);
}

MemberRows FusedEncoder::forward(const FusedCall& call, int members, bool needed,
                                 const UnitInput& input, Kept& kept) const {
  const Plan& plan = call.plan;
  kept = {node_blocks(input), call.take(plan.nodes, node_stride_, members)};
  const MemberRows nodes = call.take(plan.nodes, stride_, members),
                   states = call.take(plan.states, stride_, members);
  const std::int64_t node_tasks = static_cast<std::int64_t>(kept.blocks.size()),
                     tasks = node_tasks + block_count(plan.states), config = pad16(features_);
  call.pool.parallel_for(members * tasks, [&](std::int64_t i) {
    const int member = static_cast<int>(i / tasks);
    const std::int64_t task = i % tasks, first = (task - node_tasks) * kBlockRows;
    if (task < node_tasks) {
      const NodeBlock& block = kept.blocks[task];
      encode_nodes(call, kept, member, block, {nodes.of(member).row(block.first), stride_});
      return;
    }
    const std::int64_t count = std::min(kBlockRows, plan.states - first);
    float* const block = block_scratch(0, kBlockRows * config);
    copy_rows({input.states.data() + first * features_, features_}, count, features_,
              {block, config});
    gemm(call.precision, count, width_, features_, {block, config},
         {call.weights(member) + join_config_, width_}, 0, states.of(member).row(first), stride_);
  });
  MemberRows x = call.take(call.rows(0, needed), stride_, members);
  for_blocks(
      call.pool, {0, members}, x.rows, [&](int member, std::int64_t first, std::int64_t count) {
        join_rows(plan.node.data() + first, plan.state.data() + first, count, nodes.of(member),
                  states.of(member), width_, {x.of(member).row(first), stride_});
      });
  return x;
}

// `d_x`: of `rows` rows of the member.
void FusedEncoder::backward_nodes(const FusedCall& call, const Kept& kept, int member,
                                  const NodeBlock& block, Rows d_x, std::int64_t rows,
                                  float* partial) const {
  const float* const w = call.weights(member);
  const std::int64_t columns = opcode_width_ + node_width_;
  const Rows z{block_scratch(1, kBlockRows * stride_), stride_};
  spmm_rows(call.plan.rows_of_node, block.first, block.count, d_x, width_, z, {.sources = rows});
  add_column_sums(z, block.count, width_, partial + join_bias_);
  gemm(call.precision, columns, width_, block.count,
       {kept.node_input.of(member).row(block.first), node_stride_, Transpose::yes},
       {z.data, z.stride}, 1, partial + join_, width_);

  const Rows input{block_scratch(0, kBlockRows * node_stride_), node_stride_};
  gemm(call.precision, block.count, columns, width_, {z.data, z.stride},
       {w + join_, width_, Transpose::yes}, 0, input.data, input.stride);
  const Rows node{input.data + opcode_width_, input.stride};
  add_column_sums(node, block.count, node_width_, partial + node_bias_);
  gemm(call.precision, node_features_, node_width_, block.count,
       {block.features, pad16(node_features_), Transpose::yes}, {node.data, node.stride}, 1,
       partial + node_, node_width_);
  for (std::int64_t n = 0; n < block.count; ++n) {
    float* const opcode = partial + opcode_ + block.opcode[n] * opcode_width_;
    for (std::int64_t c = 0; c < opcode_width_; ++c) opcode[c] += input.row(n)[c];
  }
}

void FusedEncoder::backward_states(const FusedCall& call, const UnitInput& input,
                                   std::int64_t first, std::int64_t count, Rows d_x,
                                   std::int64_t rows, float* partial) const {
  const std::int64_t config = pad16(features_);
  const Rows z{block_scratch(1, kBlockRows * stride_), stride_};
  spmm_rows(call.plan.rows_of_state, first, count, d_x, width_, z, {.sources = rows});
  float* const states = block_scratch(0, kBlockRows * config);
  copy_rows({input.states.data() + first * features_, features_}, count, features_,
            {states, config});
  gemm(call.precision, features_, width_, count, {states, config, Transpose::yes},
       {z.data, z.stride}, 1, partial + join_config_, width_);
}

void FusedEncoder::backward(const FusedCall& call, MemberSet members, const UnitInput& input,
                            const Kept& kept, const MemberRows& d_x,
                            MemberGradients gradients) const {
  const std::int64_t nodes = static_cast<std::int64_t>(kept.blocks.size()),
                     states = block_count(call.plan.states), node_chunks = chunk_count(nodes),
                     chunks = node_chunks + chunk_count(states);
  const Partials partials(call, members.count, chunks, 0, end_);
  call.pool.parallel_for(members.count * chunks, [&](std::int64_t i) {
    const int place = static_cast<int>(i / chunks), member = members.first + place;
    const std::int64_t chunk = i % chunks;
    float* const partial = partials.of(place, chunk);
    std::fill_n(partial, partials.length(), 0.0f);
    const auto for_chunk = [](std::int64_t at, std::int64_t blocks, auto&& body) {
      const std::int64_t size = chunk_blocks(blocks);
      for (std::int64_t b = at * size; b < std::min(blocks, (at + 1) * size); ++b) body(b);
    };
    if (chunk < node_chunks) {
      for_chunk(chunk, nodes, [&](std::int64_t b) {
        backward_nodes(call, kept, member, kept.blocks[b], d_x.of(place), d_x.rows, partial);
      });
    } else {
      for_chunk(chunk - node_chunks, states, [&](std::int64_t b) {
        const std::int64_t first = b * kBlockRows;
        backward_states(call, input, first, std::min(kBlockRows, call.plan.states - first),
                        d_x.of(place), d_x.rows, partial);
      });
    }
  });
  const std::int64_t pieces = partials.pieces();
  call.pool.parallel_for(members.count * pieces, [&](std::int64_t i) {
    const int place = static_cast<int>(i / pieces);
    partials.add_up(place, i % pieces, gradients[members.first + place]);
  });
}

}  // namespace tpudist
