#include "models/layers/layers.hpp"

#include "models/operators/operators.hpp"

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
    network.steps.back().floats += channels();
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

}  // namespace tpudist
