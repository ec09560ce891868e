#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/layers/registry.hpp"
#include "models/operators/linear_rows.hpp"
#include "models/operators/map_rows.hpp"
#include "models/operators/sparse_rows.hpp"
#include "models/operators/split_uses.hpp"

namespace tpudist {
namespace {

enum class Skip { identity, project, concat };

using Layers = std::vector<std::shared_ptr<const Layer>>;

class Residual : public Layer {
 public:
  Residual(const LayerContext& place, Layers blocks, Skip skip)
      : name_(place.prefix + "skip"),
        in_(place.channels),
        step_(place.step),
        blocks_(std::move(blocks)),
        skip_(skip) {}

  std::string description() const override {
    return skip_ == Skip::identity  ? "residual"
           : skip_ == Skip::project ? "projected residual"
                                    : "concatenated residual";
  }
  Layers inner() const override { return blocks_; }
  std::int64_t channels() const override {
    return behind_blocks() + (skip_ == Skip::concat ? in_ : 0);
  }
  std::vector<LayerShape> steps() const override {
    std::vector<LayerShape> steps;
    for (const auto& block : blocks_) {
      for (LayerShape& step : block->steps()) steps.push_back(std::move(step));
    }
    return steps;
  }
  int drops() const override {
    int drops = 0;
    for (const auto& block : blocks_) drops += block->drops();
    return drops;
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    for (const auto& block : blocks_) {
      for (ParameterEntry& entry : block->parameters()) entries.push_back(std::move(entry));
    }
    if (skip_ == Skip::project)
      entries.push_back(linear_weight(name_ + ".weight", in_, behind_blocks()));
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    for (const auto& block : blocks_) block->add_work(network);
    if (skip_ == Skip::project) network.steps.back().behind += product_work(in_, behind_blocks());
    network.steps.back().floats += channels();
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
      skip = linear_rows(skip, weights[name_ + ".weight"], at::Tensor(), call.backend);
    if (skip_ == Skip::concat) return join_channels({y, skip}, call.backend);
    return sum_of_gathered({{skip, {}}, {y, {}}}, call.backend);
  }

 private:
  std::int64_t behind_blocks() const { return blocks_.empty() ? in_ : blocks_.back()->channels(); }

  std::string name_;
  std::int64_t in_;
  int step_;
  Layers blocks_;
  Skip skip_;
};

}  // namespace

std::shared_ptr<const Layer> read_residual(ConfigNode block, const LayerContext& place) {
  const std::string name = block.choice("skip", "identity", {"identity", "project", "concat"});
  LayerContext inner = place;
  const std::vector<ConfigNode> given = block.items("blocks");
  Layers blocks = read_layers(given, place.prefix + "blocks.", inner);
  if (given.empty()) block.mistake("blocks", "give the blocks that the residual goes around");
  if (name == "identity" && inner.channels != place.channels) {
    block.mistake("skip", "the blocks turn " + std::to_string(place.channels) + " channels into " +
                              std::to_string(inner.channels) +
                              ": use skip: project or concat, or blocks that keep the width");
  }
  return std::make_shared<Residual>(place, std::move(blocks),
                                    name == "identity"  ? Skip::identity
                                    : name == "project" ? Skip::project
                                                        : Skip::concat);
}

}  // namespace tpudist
