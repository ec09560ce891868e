#include "models/layers/layers.hpp"

#include <ATen/ATen.h>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

// A norm over the nodes of each configuration.
class NodeNorm : public Layer {
 public:
  // `shift`: whether the subtracted share of the mean is learned.
  NodeNorm(const LayerPosition& position, const char* name, bool shift, bool affine, double eps)
      : Layer(position, name), name_(name), shift_(shift), affine_(affine), eps_(eps) {}

  std::string description() const override { return name_; }
  std::vector<LayerShape> steps() const override {
    return {{{EdgeKind::nodes}, Aggregation::sum, false}};
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    if (affine_) {
      entries.push_back(norm_parameter(prefix_ + "weight", in_, 1));
      entries.push_back(norm_parameter(prefix_ + "bias", in_, 0));
    }
    if (shift_) entries.push_back(norm_parameter(prefix_ + "mean_scale", in_, 1));
    return entries;
  }
  void add_work(NetworkWork& network) const override { network.steps.push_back({0, 0, 0, in_, 0}); }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor own = gather_rows(x, call.plan.layers[step_]->self, call.backend);
    const at::Tensor y =
        normalise_groups(own, shift_ ? weights[prefix_ + "mean_scale"] : at::Tensor(), eps_,
                         *call.context.groups[step_], call.backend);
    if (!affine_) return y;
    return map_rows([](const auto& rows,
                       const auto& parameters) { return rows[0] * parameters[0] + parameters[1]; },
                    {y}, {weights[prefix_ + "weight"], weights[prefix_ + "bias"]}, call.backend);
  }

 private:
  std::string name_;
  bool shift_, affine_;
  double eps_;
};

double read_eps(ConfigNode block) {
  return block.number("eps", 1e-5, {1e-30, 1});
}

}  // namespace

std::shared_ptr<const Layer> read_instance_norm(ConfigNode block, const LayerPosition& position) {
  const bool affine = block.boolean("affine", false);
  return std::make_shared<NodeNorm>(position, "instance_norm", false, affine, read_eps(block));
}

std::shared_ptr<const Layer> read_graph_norm(ConfigNode block, const LayerPosition& position) {
  return std::make_shared<NodeNorm>(position, "graph_norm", true, true, read_eps(block));
}

}  // namespace tpudist
