#include "models/layers/layers.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

class Dropout : public Layer {
 public:
  Dropout(const LayerPosition& position, double rate, Dropped dropped, bool per_element)
      : Layer(position, "dropout"),
        number_(position.drops),
        rate_(rate),
        dropped_(dropped),
        per_element_(per_element) {}

  std::string description() const override {
    return fmt::format("dropout {}{}{}", rate_, dropped_ == Dropped::rows ? " of nodes" : "",
                       per_element_ ? ", each configuration for itself" : "");
  }
  int drops() const override { return 1; }
  bool per_element() const override { return per_element_; }
  void add_work(NetworkWork& network) const override { network.steps.back().floats += in_; }

  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    if (call.dropout_keys.empty() || rate_ == 0) return x;
    return drop_rows(x, dropped_, rate_, call.dropout_keys, static_cast<std::uint32_t>(number_),
                     keys(call.context, x.size(1)), call.backend);
  }

 private:
  const std::vector<std::uint64_t>& keys(const PlanContext& context, std::int64_t rows) const {
    if (!per_element_) return context.row_keys[step_];
    if (static_cast<std::int64_t>(context.element_keys.size()) != rows) {
      throw Error(ErrorKind::failed,
                  "dropout with scope: element needs a dense plan, in which every node and "
                  "configuration has a row of its own");
    }
    return context.element_keys;
  }

  int number_;
  double rate_;
  Dropped dropped_;
  bool per_element_;
};

}  // namespace

std::shared_ptr<const Layer> read_dropout(ConfigNode block, const LayerPosition& position) {
  const double rate = block.number("rate", 0.2, {0, 0.99});
  const bool nodes = block.choice("drop", "channels", {"channels", "nodes"}) == "nodes";
  const bool per_element = block.choice("scope", "row", {"row", "element"}) == "element";
  return std::make_shared<Dropout>(position, rate, nodes ? Dropped::rows : Dropped::channels,
                                   per_element);
}

}  // namespace tpudist
