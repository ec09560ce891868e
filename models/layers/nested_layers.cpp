#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

// Layers of layers.

namespace tpudist {
namespace {

class Parallel : public Layer {
 public:
  Parallel(const LayerPosition& position, std::vector<Layers> branches)
      : Layer(position, "parallel"), branches_(std::move(branches)) {}

  std::string description() const override {
    return "parallel, " + std::to_string(branches_.size()) + " branches";
  }
  Layers inner() const override {
    Layers all;
    for (const Layers& branch : branches_) all.insert(all.end(), branch.begin(), branch.end());
    return all;
  }
  std::int64_t channels() const override {
    std::int64_t all = 0;
    for (const Layers& branch : branches_) all += branch.empty() ? in_ : branch.back()->channels();
    return all;
  }
  void add_work(NetworkWork& network) const override {
    for (const auto& block : inner()) block->add_work(network);
    network.steps.back().add_rows(channels());
  }

  // The plan layers of each branch change the rows, so the rows of all other branches pass through
  // them too.
  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    std::vector<at::Tensor> rows = split_uses(x, static_cast<int>(branches_.size()), call.backend);
    int step = step_;
    for (std::size_t own = 0; own < rows.size(); ++own) {
      for (const auto& block : branches_[own]) {
        rows[own] = block->forward(rows[own], weights, call);
        for (std::size_t taken = block->steps().size(); taken > 0; --taken, ++step) {
          for (std::size_t other = 0; other < rows.size(); ++other) {
            if (other != own)
              rows[other] = gather_rows(rows[other], call.plan.layers[step]->self, call.backend);
          }
        }
      }
    }
    return join_channels(rows, call.backend);
  }

 private:
  std::vector<Layers> branches_;
};

enum class Skip { identity, project, concat };

class Residual : public Layer {
 public:
  Residual(const LayerPosition& position, Layers blocks, Skip skip)
      : Layer(position, "skip"), blocks_(std::move(blocks)), skip_(skip) {}

  std::string description() const override {
    return skip_ == Skip::identity  ? "residual"
           : skip_ == Skip::project ? "projected residual"
                                    : "concatenated residual";
  }
  Layers inner() const override { return blocks_; }
  std::int64_t channels() const override {
    return behind_blocks() + (skip_ == Skip::concat ? in_ : 0);
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries = Layer::parameters();
    if (skip_ == Skip::project)
      entries.push_back(linear_weight(prefix_ + "weight", in_, behind_blocks()));
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    for (const auto& block : blocks_) block->add_work(network);
    if (skip_ == Skip::project) network.steps.back().behind += product_work(in_, behind_blocks());
    // Kept besides: what a product or a join takes of the skipped rows, if they are gathered; but not
    // the terms of a sum.
    double kept = skip_ == Skip::concat ? 0 : -static_cast<double>(behind_blocks());
    if (skip_ != Skip::identity && !steps().empty()) kept += static_cast<double>(in_);
    network.steps.back().add_rows(channels(), kept);
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const std::vector<at::Tensor> uses = split_uses(x, 2, call.backend);
    RowStates y = uses[0], skip = uses[1];
    int step = step_;
    for (const auto& block : blocks_) {
      y = block->forward(y, weights, call);
      for (std::size_t taken = block->steps().size(); taken > 0; --taken)
        skip = gather_rows(skip, call.plan.layers[step++]->self, call.backend);
    }
    if (skip_ == Skip::project)
      skip = linear_rows(skip, weights[prefix_ + "weight"], at::Tensor(), call.backend);
    if (skip_ == Skip::concat) return join_channels({y, skip}, call.backend);
    return sum_of_gathered({{skip, {}}, {y, {}}}, call.backend);
  }

 private:
  std::int64_t behind_blocks() const { return blocks_.empty() ? in_ : blocks_.back()->channels(); }

  Layers blocks_;
  Skip skip_;
};

}  // namespace

std::shared_ptr<const Layer> read_parallel(ConfigNode block, const LayerPosition& position) {
  std::vector<Layers> branches;
  LayerPosition inner = position;
  for (ConfigNode branch : block.items("branches")) {
    inner.channels = position.channels;
    branches.push_back(
        read_layers(branch.items("blocks"),
                    position.prefix + "branches." + std::to_string(branches.size()) + ".", inner));
  }
  if (branches.size() < 2) {
    block.mistake("branches", "give at least two, each a map with blocks");
    branches.resize(2);
  }
  return std::make_shared<Parallel>(position, std::move(branches));
}

std::shared_ptr<const Layer> read_residual(ConfigNode block, const LayerPosition& position) {
  const std::string name = block.choice("skip", "identity", {"identity", "project", "concat"});
  LayerPosition inner = position;
  const std::vector<ConfigNode> given = block.items("blocks");
  Layers blocks = read_layers(given, position.prefix + "blocks.", inner);
  if (given.empty()) block.mistake("blocks", "give the blocks that the residual goes around");
  if (name == "identity" && inner.channels != position.channels) {
    block.mistake("skip", "the blocks turn " + std::to_string(position.channels) +
                              " channels into " + std::to_string(inner.channels) +
                              ": use skip: project or concat, or blocks that keep the width");
  }
  return std::make_shared<Residual>(position, std::move(blocks),
                                    name == "identity"  ? Skip::identity
                                    : name == "project" ? Skip::project
                                                        : Skip::concat);
}

}  // namespace tpudist
