#include "models/layers/dropout.hpp"

#include <fmt/format.h>

#include "models/operators/drop_rows.hpp"

namespace tpudist {
namespace {

class Dropout : public Layer {
 public:
  Dropout(const LayerPlace& place, double rate)
      : channels_(place.channels), depth_(place.step), number_(place.drops), rate_(rate) {}

  std::string description() const override { return fmt::format("dropout {}", rate_); }
  std::int64_t channels() const override { return channels_; }
  int drops() const override { return 1; }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += channels_; }

  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    if (call.dropout_keys.empty() || rate_ == 0) return x;
    return drop_rows(x, rate_, call.dropout_keys, static_cast<std::uint32_t>(number_),
                     call.context.row_keys[depth_], call.backend);
  }

 private:
  std::int64_t channels_;
  int depth_, number_;
  double rate_;
};

}  // namespace

std::shared_ptr<const Layer> read_dropout(ConfigNode block, const LayerPlace& place) {
  return std::make_shared<Dropout>(place, block.number("rate", 0.2, {0, 0.99}));
}

}  // namespace tpudist
