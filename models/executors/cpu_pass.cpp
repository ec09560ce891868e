#include "models/executors/cpu_pass.hpp"

#include <algorithm>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/gemm.hpp"
#include "models/inputs/graph_input.hpp"

namespace tpudist {

CpuPass::CpuPass(const NetworkLayout& layout, double output_scale, ThreadPool& pool,
                 BufferCache& buffers, const MemberRange& members, const UnitInput& input,
                 PassKind kind, bool recompute)
    : layout_(layout),
      output_scale_(output_scale),
      pool_(pool),
      buffers_(buffers),
      input_(input),
      plan_(*input.plan),
      kind_(kind),
      recompute_(recompute),
      all_{0, members.count},
      x_(layout.layers.size() + 1),
      sums_(layout.layers.size()) {
  const auto own = members.flat.subspan(members.first * layout.table.length(),
                                        members.count * layout.table.length());
  weights_ = own.data();
  if (reinterpret_cast<std::uintptr_t>(weights_) % 64) {
    aligned_.assign(own.begin(), own.end());
    weights_ = aligned_.data();
  }
  list_node_blocks();
}

void CpuPass::list_node_blocks() {
  std::int64_t base = 0;
  for (const auto& graph : input_.graphs) {
    for (std::int64_t at = 0; at < graph->nodes(); at += kBlockRows) {
      node_blocks_.push_back({graph->feature_rows() + at * GraphInput::stride,
                              graph->opcode().data() + at, base + at,
                              std::min(kBlockRows, graph->nodes() - at)});
    }
    base += graph->nodes();
  }
}

CpuPass::MemberRows CpuPass::take(std::int64_t rows, std::int64_t stride, int members) {
  return {buffers_.take(members * rows * stride), rows, stride};
}

void CpuPass::for_blocks(Members members, std::int64_t rows, const BlockTask& task) const {
  const std::int64_t blocks = block_count(rows);
  pool_.parallel_for(members.count * blocks, [&](std::int64_t i) {
    const std::int64_t first = i % blocks * kBlockRows;
    task(members.first + static_cast<int>(i / blocks), first, std::min(kBlockRows, rows - first));
  });
}

void CpuPass::for_chunks(Members members, std::int64_t blocks, const ChunkTask& task) const {
  const std::int64_t chunks = chunk_count(blocks), size = chunk_blocks(blocks);
  pool_.parallel_for(members.count * chunks, [&](std::int64_t i) {
    const std::int64_t chunk = i % chunks;
    task(members.first + static_cast<int>(i / chunks), chunk, chunk * size,
         std::min(blocks, (chunk + 1) * size));
  });
}

void CpuPass::for_ranges(Members members, std::span<const std::int64_t> rows, const RangeTask& task,
                         std::int64_t others,
                         const std::function<void(int, std::int64_t)>& other) const {
  std::vector<std::int64_t> end;  // tasks of one member up to the end of each range
  std::int64_t tasks = others;
  for (const std::int64_t n : rows) {
    const std::int64_t size = refined_block_rows(n);
    end.push_back(tasks += (n + size - 1) / size);
  }
  pool_.parallel_for(members.count * tasks, [&](std::int64_t i) {
    const int member = members.first + static_cast<int>(i / tasks);
    const std::int64_t at = i % tasks;
    if (at < others) return other(member, at);
    const std::size_t range = std::upper_bound(end.begin(), end.end(), at) - end.begin();
    const std::int64_t size = refined_block_rows(rows[range]);
    const std::int64_t first = (at - (range ? end[range - 1] : others)) * size;
    task(member, range, first, std::min(size, rows[range] - first));
  });
}

void CpuPass::encode_nodes() {
  const NetworkLayout& net = layout_;
  node_input_ = take(plan_.nodes, net.node_stride, all_.count);
  nodes_ = take(plan_.nodes, net.stride, all_.count);
  const std::int64_t blocks = node_blocks_.size();
  pool_.parallel_for(all_.count * blocks, [&](std::int64_t i) {
    const NodeBlock& block = node_blocks_[i % blocks];
    const int member = static_cast<int>(i / blocks);
    const float* const w = weights(member);
    const Rows input{node_input_.of(member).row(block.first), net.node_stride};
    const Rows nodes{nodes_.of(member).row(block.first), net.stride};
    for (std::int64_t n = 0; n < block.count; ++n) {
      std::copy_n(w + net.opcode_weight + block.opcode[n] * net.opcode_width, net.opcode_width,
                  input.row(n));
    }
    const Rows columns{input.data + net.opcode_width, net.node_stride};
    gemm(layout_.precision, block.count, net.node_width, kNodeFeatures,
         {block.features, GraphInput::stride}, {w + net.node_weight, net.node_width}, 0,
         columns.data, columns.stride);
    bias_relu_rows(columns, block.count, net.node_width, w + net.node_bias, {}, false);
    gemm(layout_.precision, block.count, net.width, net.opcode_width + net.node_width,
         {input.data, input.stride}, {w + net.join_weight, net.width}, 0, nodes.data, nodes.stride);
    bias_relu_rows(nodes, block.count, net.width, w + net.join_bias, {}, false);
  });
}

void CpuPass::encode_states() {
  const std::int64_t features = layout_.config_features, stride = pad16(features);
  states_ = take(plan_.states, layout_.stride, all_.count);
  for_blocks(all_, plan_.states, [&](int member, std::int64_t first, std::int64_t count) {
    float* const block = block_scratch(0, kBlockRows * stride);
    copy_rows({input_.states.data() + first * features, features}, count, features,
              {block, stride});
    gemm(layout_.precision, count, layout_.width, features, {block, stride},
         {weights(member) + layout_.join_config, layout_.width}, 0, states_.of(member).row(first),
         layout_.stride);
  });
}

void CpuPass::join() {
  const std::int64_t first_rows = rows(0, forward_needed());
  x_[0] = take(first_rows, layout_.stride, all_.count);
  for_blocks(all_, first_rows, [&](int member, std::int64_t first, std::int64_t count) {
    join_rows(plan_.node.data() + first, plan_.state.data() + first, count, nodes_.of(member),
              states_.of(member), layout_.width, {x_[0].of(member).row(first), layout_.stride});
  });
}

// Aggregates a block of neighbourhoods.
void CpuPass::aggregate(std::size_t index, std::size_t set, int member, std::int64_t first,
                        std::int64_t count, Rows sums) const {
  const LayerLayout& layer = layout_.layers[index];
  const SparseMatrix& matrix = plan_.layers[index]->edges[set].aggregate;
  const ConstRows x = x_[index].of(member);
  if (layer.max) {
    spmm_max_rows(matrix.forward, first, count, x, layer.in, sums, matrix.replicas);
  } else {
    spmm_rows(matrix.forward, first, count, x, layer.in, sums, {.replicas = matrix.replicas});
  }
}

// The transpose, for a block of x_[index]: adds to options.base what the gradients of the
// neighbourhoods give its rows. For maxima `best` the gradient is what spmm_max_shares left.
void CpuPass::spread_to_neighbours(std::size_t index, std::size_t set, int member,
                                   std::int64_t first, std::int64_t count, ConstRows best,
                                   ConstRows gradient, Rows d_x, const SpmmOptions& options) const {
  const LayerLayout& layer = layout_.layers[index];
  const Csr& out = plan_.layers[index]->edges[set].aggregate.transposed;
  if (layer.max) {
    const ConstRows x{x_[index].of(member).row(first), x_[index].stride};
    spmm_max_backward_rows(out, first, count, x, best, gradient, layer.in, d_x, options);
  } else {
    spmm_rows(out, first, count, gradient, layer.in, d_x, options);
  }
}

// The layer's input [edge sets | self] for a block of its output rows.
void CpuPass::fill_input(std::size_t index, int member, std::int64_t first, std::int64_t count,
                         float* block) const {
  const LayerLayout& layer = layout_.layers[index];
  const PlanLayer& plan_layer = *plan_.layers[index];
  const ConstRows x = x_[index].of(member);
  for (std::size_t set = 0; set < plan_layer.edges.size(); ++set) {
    aggregate(index, set, member, first, count,
              {block + layer.weights[set].column, layer.input_stride});
  }
  copy_rows({x.row(first), x.stride}, count, layer.in,
            {block + layer.self_column, layer.input_stride});
}

// Values of the last layer's rows.
void CpuPass::apply_head(int member, std::int64_t first, std::int64_t count, ConstRows out) {
  const float* const w = weights(member);
  double* const values = values_.data() + member * x_.back().rows + first;
  dot_rows(out, count, layout_.layers.back().out, w + layout_.head_weight, values);
  for (std::int64_t i = 0; i < count; ++i) values[i] += w[layout_.head_bias];
}

void CpuPass::forward_dense(std::size_t index, Members members) {
  const LayerLayout& layer = layout_.layers[index];
  const std::int64_t rows = this->rows(index + 1, forward_needed());
  const bool last = index + 1 == layout_.layers.size();
  for_blocks(members, rows, [&](int member, std::int64_t first, std::int64_t count) {
    const float* const w = weights(member);
    float* const block = block_scratch(0, kBlockRows * layer.input_stride);
    fill_input(index, member, first, count, block);
    const Rows out{x_[index + 1].of(member).row(first), layer.out_stride};
    for (const WeightPart& part : layer.parts) {
      gemm(layout_.precision, count, layer.out, part.width,
           {block + part.column, layer.input_stride}, {w + part.offset, layer.out},
           &part == &layer.parts[0] ? 0 : 1, out.data, out.stride);
    }
    const ConstRows self{block + layer.self_column, layer.input_stride};
    bias_relu_rows(out, count, layer.out, w + layer.bias, layer.residual ? self : ConstRows{},
                   layer.relu);
    if (last) apply_head(member, first, count, out);
  });
}

UnitScores CpuPass::read_out() const {
  UnitScores scores;
  const std::int64_t slates = plan_.readout.common.forward.rows(),
                     rows = values_.size() / std::max(all_.count, 1);
  scores.members = all_.count;
  scores.configs = plan_.configs;
  scores.delta.resize(all_.count * plan_.configs);
  scores.common.resize(all_.count * slates);
  pool_.parallel_for(all_.count, [&](std::int64_t member) {
    read_out_scores(plan_.readout, std::span(values_).subspan(member * rows, rows), output_scale_,
                    std::span(scores.delta).subspan(member * plan_.configs, plan_.configs),
                    std::span(scores.common).subspan(member * slates, slates));
  });
  return scores;
}

// Whether the forward pass keeps the states before a layer for the backward pass.
bool CpuPass::kept(std::size_t layer) const {
  return keep() && (!recompute_ || layer % 2 == 0 || layer == layout_.layers.size());
}

void CpuPass::forward_layer(std::size_t layer, Members members) {
  const std::int64_t rows = this->rows(layer + 1, forward_needed());
  if (!x_[layer + 1].buffer.data()) {
    x_[layer + 1] = take(rows, layout_.layers[layer].out_stride, all_.count);
  }
  if (layer + 1 == layout_.layers.size()) values_.resize(all_.count * rows);
  if (plan_.is_refined()) {
    forward_refined(layer, members);
  } else {
    forward_dense(layer, members);
  }
}

// Makes what the backward pass of a layer needs and the forward pass did not keep.
void CpuPass::run_again(std::size_t layer, Members members) {
  if (!x_[layer].buffer.data()) forward_layer(layer - 1, members);
  if (plan_.is_refined() && sums_[layer].empty()) make_sums(layer, members);
}

// Gives back states that the backward pass has used: behind the last members, so that the memory of
// one layer is that of the next and in the caches, and what was run again in any case.
void CpuPass::forget_states(std::size_t layer, Members members) {
  if (members.first + members.count == all_.count || !kept(layer)) x_[layer] = {};
}

UnitScores CpuPass::forward() {
  encode_nodes();
  encode_states();
  join();
  if (!keep()) {
    node_input_ = {};
    nodes_ = {};
    states_ = {};
  }
  for (std::size_t layer = 0; layer < layout_.layers.size(); ++layer) {
    forward_layer(layer, all_);
    if (!kept(layer)) x_[layer] = {};
    if (!keep() || recompute_) sums_[layer].clear();
  }
  return read_out();
}

}  // namespace tpudist
