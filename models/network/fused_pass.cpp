#include "models/network/fused_pass.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tpudist {
namespace {

// Rows of all members that run backward together: their gradients stay in the caches at the same
// time, and they make enough tasks.
constexpr std::int64_t kRowsTogether = 4096;

std::vector<FusedSage> layers_of(const NetworkConfig& config, const ParameterTable& table) {
  std::vector<FusedSage> layers;
  std::int64_t in = config.encoder.width;
  for (const SageConfig& layer : config.sage_layers()) {
    const int step = static_cast<int>(layers.size());
    layers.emplace_back(layer, in, step, "blocks." + std::to_string(step) + ".sage.", table,
                        layers.empty() || layers.back().has_relu());
    in = layer.width;
  }
  return layers;
}

}  // namespace

FusedNetwork::FusedNetwork(const NetworkConfig& config, const FeatureSchema& schema,
                           const ParameterTable& table)
    : encoder(config.encoder, schema, table),
      layers(layers_of(config, table)),
      readout(layers.back().channels(), config.output_scale, table, layers.back().has_relu()),
      precision(config.precision),
      parameters(table.length()) {
  for (const ParameterEntry& entry : table.entries())
    padding.emplace_back(entry.offset + entry.size(), pad16(entry.offset + entry.size()));
}

std::int64_t FusedNetwork::state_floats(const Plan& plan) const {
  std::int64_t floats = plan.first_rows() * encoder.channels();
  for (std::size_t i = 0; i < layers.size(); ++i) floats += plan.rows(i + 1) * layers[i].channels();
  return floats;
}

FusedPass::FusedPass(const FusedNetwork& network, std::span<const float> flat,
                     const UnitInput& input, UnitUse use, bool recompute, ThreadPool& pool,
                     BufferCache& buffers, int first_member)
    : network_(network),
      input_(input),
      use_(use),
      recompute_(recompute),
      first_member_(first_member),
      aligned_(reinterpret_cast<std::uintptr_t>(flat.data()) % 64
                   ? AlignedFloats(flat.begin(), flat.end())
                   : AlignedFloats()),
      all_{0, static_cast<int>(static_cast<std::int64_t>(flat.size()) / network.parameters),
           forward_needed()},
      call_{*input.plan,
            aligned_.empty() ? flat.data() : aligned_.data(),
            network.parameters,
            network.precision,
            pool,
            buffers},
      x_(network.layers.size() + 1),
      sums_(network.layers.size()) {}

// Whether the forward pass keeps the states before a layer for the backward pass.
bool FusedPass::kept(std::size_t layer) const {
  return keeps() && (!recompute_ || layer % 2 == 0 || layer == network_.layers.size());
}

void FusedPass::forward_layer(std::size_t layer, MemberSet members) {
  members.needed = forward_needed();
  if (x_[layer + 1].empty()) {
    x_[layer + 1] = call_.take(call_.rows(layer + 1, forward_needed()),
                               pad16(network_.layers[layer].channels()), all_.count);
  }
  network_.layers[layer].forward(call_, members, x_[layer], x_[layer + 1], sums_[layer]);
}

// Makes what the backward pass of a layer needs and the forward pass did not keep.
void FusedPass::run_again(std::size_t layer, MemberSet members) {
  if (x_[layer].empty()) forward_layer(layer - 1, members);
  members.needed = forward_needed();
  if (sums_[layer].empty()) network_.layers[layer].keep(call_, members, x_[layer], sums_[layer]);
}

// Puts the rows before the next layer in the place of those that the plan computes.
void FusedPass::take_kept(std::size_t depth) {
  if (!input_.kept.rows) return;
  const KeptLevel& level = input_.kept.levels[depth];
  const MemberRows computed = std::move(x_[depth]);
  x_[depth] = call_.take(std::ssize(level.taken), pad16(channels(depth)), all_.count);
  call_.pool.parallel_for(all_.count, [&](std::int64_t m) {
    const auto member = static_cast<int>(m);
    input_.kept.rows->exchange(depth, first_member_ + member, level, computed.of(member).data,
                               x_[depth].of(member).data, x_[depth].stride);
  });
}

UnitScores FusedPass::forward() {
  if (call_.rows(0, forward_needed()) > 0)
    x_[0] = network_.encoder.forward(call_, all_.count, forward_needed(), input_, encoded_);
  if (!keeps()) encoded_ = {};
  take_kept(0);
  for (std::size_t layer = 0; layer < network_.layers.size(); ++layer) {
    if (call_.rows(layer + 1, forward_needed()) > 0) forward_layer(layer, all_);
    if (layer + 1 < network_.layers.size()) take_kept(layer + 1);
    if (!kept(layer)) x_[layer] = {};
    if (!keeps() || recompute_) sums_[layer].clear();
  }
  if (x_.back().empty()) x_.back() = call_.take(0, 0, all_.count);
  return network_.readout.forward(call_, x_.back(), input_.kept, first_member_);
}

void FusedPass::backward_members(MemberSet members, const ScoreGradient& score_gradient,
                                 MemberGradients gradients) {
  // A buffer of states is released as soon as the last members have used it, and at once if the
  // states were computed again. So the next layer reuses memory that is in the caches.
  const bool last = members.first + members.count == all_.count;
  MemberRows d_x =
      network_.readout.backward(call_, members, x_.back(), score_gradient.values, gradients);
  for (std::size_t layer = network_.layers.size(); layer-- > 0;) {
    if (last || !kept(layer + 1)) x_[layer + 1] = {};
    run_again(layer, members);
    d_x = network_.layers[layer].backward(call_, members, x_[layer], sums_[layer], std::move(d_x),
                                          gradients);
    if (last || recompute_) sums_[layer].clear();
  }
  network_.encoder.backward(call_, members, input_, encoded_, d_x, gradients);
}

void FusedPass::clear_padding(MemberGradients gradients) const {
  for (const std::span<float> gradient : gradients) {
    for (const auto& [begin, end] : network_.padding)
      std::fill(gradient.data() + begin, gradient.data() + end, 0.0f);
  }
}

void FusedPass::backward(const ScoreGradient& score_gradient, MemberGradients gradients) {
  const auto needed_only = [&](int member) {
    return forward_needed() || score_gradient.is_translation_invariant(member);
  };
  std::int64_t rows = 0;
  for (std::size_t depth = 0; depth < x_.size(); ++depth)
    rows = std::max(rows, call_.rows(depth, forward_needed()));
  if (rows == 0) {  // all configurations are equal
    for (const std::span<float> gradient : gradients) std::ranges::fill(gradient, 0.0f);
    return;
  }
  const int together =
      static_cast<int>(std::clamp<std::int64_t>(kRowsTogether / rows, 1, std::max(all_.count, 1)));
  for (int first = 0; first < all_.count;) {
    MemberSet members{first, 1, needed_only(first)};
    while (members.count < together && first + members.count < all_.count &&
           needed_only(first + members.count) == members.needed) {
      ++members.count;
    }
    backward_members(members, score_gradient, gradients);
    first += members.count;
  }
  clear_padding(gradients);
}

}  // namespace tpudist
