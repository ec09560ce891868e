#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

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
