#include "models/layers/layers.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/kernels/row_functions.hpp"
#include "models/operators/operators.hpp"
#include "models/operators/planes.hpp"

// Layers that map each row by itself.

namespace tpudist {
namespace {

class ActivationLayer : public Layer {
 public:
  ActivationLayer(const LayerPosition& position, Activation activation)
      : Layer(position, "activation"), activation_(activation) {}

  std::string description() const override { return activation_name(activation_); }
  void add_work(NetworkWork& network) const override { network.steps.back().add_rows(in_); }
  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    return activate_rows(x, activation_, call.backend);
  }

 private:
  Activation activation_;
};

class Prelu : public Layer {
 public:
  Prelu(const LayerPosition& position, bool per_channel)
      : Layer(position, "prelu"), slopes_(per_channel ? position.channels : 1) {}

  std::string description() const override { return "prelu"; }
  std::vector<ParameterEntry> parameters() const override {
    return {norm_parameter(prefix_ + "weight", slopes_, 0.25)};
  }
  void add_work(NetworkWork& network) const override {
    network.steps.back().add_rows(in_, 1.25 * static_cast<double>(in_));
  }
  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    return map_rows(
        [](const auto& rows, const auto& slope) {
          const at::Tensor slopes =
              slope[0].size(2) == 1 ? repeat_channels(slope[0], rows[0].size(2)) : slope[0];
          return at::where(rows[0] > 0, rows[0], rows[0] * slopes);
        },
        {x}, {weights[prefix_ + "weight"]}, call.backend);
  }

 private:
  std::int64_t slopes_;
};

at::Tensor gate_of(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) return at::sigmoid(x);
  at::Tensor y = rows_like(x);
  for_planes(x, [&](std::int64_t m, std::int64_t count) {
    sigmoid_values(plane<float>(x, m), count, mutable_plane<float>(y, m));
  });
  return y;
}

// The backward pass of y = x sigmoid(g), rows {x, g}.
void open_gate(const std::vector<at::Tensor>& rows, const at::Tensor& d_y,
               std::vector<at::Tensor>& d_rows) {
  const at::Tensor gate = gate_of(rows[1]);
  if (d_rows[0].defined()) at::mul_out(d_rows[0], d_y, gate);
  if (d_rows[1].defined()) at::sigmoid_backward_out(d_rows[1], d_y * rows[0], gate);
}

class ChannelAttention : public Layer {
 public:
  ChannelAttention(const LayerPosition& position, std::int64_t reduction)
      : Layer(position, "channel_attention"),
        inner_(std::max<std::int64_t>(1, position.channels / reduction)) {}

  std::string description() const override {
    return "channel_attention through " + std::to_string(inner_);
  }
  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries;
    add_linear(entries, prefix_ + "squeeze", in_, inner_);
    add_linear(entries, prefix_ + "excite", inner_, in_);
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    network.steps.back().behind += 2 * product_work(in_, inner_);
    network.steps.back().add_rows(in_, static_cast<double>(in_ + 2 * inner_));
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const std::vector<at::Tensor> uses = split_uses(x, 2, call.backend);
    const at::Tensor inner =
        activate_rows(apply_linear(uses[0], weights, prefix_ + "squeeze", call.backend),
                      Activation::relu, call.backend);
    const at::Tensor gate = apply_linear(inner, weights, prefix_ + "excite", call.backend);
    return map_rows(
        [](const auto& rows, at::Tensor& y) { at::mul_out(y, rows[0], gate_of(rows[1])); },
        open_gate, {uses[1], gate}, in_, call.backend);
  }

 private:
  std::int64_t inner_;
};

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
  void add_work(NetworkWork& network) const override { network.steps.back().add_rows(in_); }

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

class L2Norm : public Layer {
 public:
  explicit L2Norm(const LayerPosition& position) : Layer(position, "l2_norm") {}

  std::string description() const override { return "l2_norm"; }
  void add_work(NetworkWork& network) const override { network.steps.back().add_rows(in_); }

  RowStates forward(const RowStates& x, const LayerWeights&, const LayerCall& call) const override {
    return normalise_l2(x, call.backend);
  }
};

// y = (x - mean of x) / sqrt(variance of x + eps), over the `width` channels of each row.
struct Normalised {
  double width, eps;

  void write(const at::Tensor& x, at::Tensor& y) const {
    at::sub_out(y, x, row_sums(x) / width);
    y.mul_(scale(y));
  }
  void differentiate(const at::Tensor& x, const at::Tensor& d_y, at::Tensor& d_x) const {
    const at::Tensor centred = x - row_sums(x) / width, scale = this->scale(centred),
                     y = centred * scale;
    at::sub_out(d_x, d_y, row_sums(d_y) / width);
    d_x.sub_(y * (row_sums(d_y * y) / width)).mul_(scale);
  }

 private:
  at::Tensor scale(const at::Tensor& centred) const {
    return (row_sums(centred.square()) / width + eps).rsqrt_();
  }
};

class LayerNorm : public Layer {
 public:
  LayerNorm(const LayerPosition& position, bool affine, double eps)
      : Layer(position, "layer_norm"), affine_(affine), eps_(eps) {}

  std::string description() const override { return "layer_norm"; }
  std::vector<ParameterEntry> parameters() const override {
    if (!affine_) return {};
    return {norm_parameter(prefix_ + "weight", in_, 1), norm_parameter(prefix_ + "bias", in_, 0)};
  }
  // Kept: the centred rows, and of `affine` the normalised ones and the weights of the rows.
  void add_work(NetworkWork& network) const override {
    network.steps.back().add_rows(in_, static_cast<double>((affine_ ? 3 : 1) * in_));
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const Normalised norm{static_cast<double>(in_), eps_};
    const at::Tensor y = map_rows(
        [norm](const auto& rows, at::Tensor& result) { norm.write(rows[0], result); },
        [norm](const auto& rows, const at::Tensor& d_y, auto& d_rows) {
          if (d_rows[0].defined()) norm.differentiate(rows[0], d_y, d_rows[0]);
        },
        {x}, in_, call.backend);
    return affine_ ? scale_and_shift(y, weights, prefix_, call.backend) : y;
  }

 private:
  bool affine_;
  double eps_;
};

class Linear : public Layer {
 public:
  Linear(const LayerPosition& position, std::int64_t width, bool bias, const LinearStart& start,
         Activation activation)
      : Layer(position, "linear"),
        out_(width),
        bias_(bias),
        start_(start),
        activation_(activation) {}

  std::string description() const override {
    return "linear " + std::to_string(out_) +
           (activation_ == Activation::none ? "" : ", " + activation_name(activation_));
  }
  std::int64_t channels() const override { return out_; }

  std::vector<ParameterEntry> parameters() const override {
    std::vector<ParameterEntry> entries{linear_weight(prefix_ + "weight", in_, out_),
                                        linear_bias(prefix_ + "bias", in_, out_)};
    start_.apply(entries[0], entries[1]);
    if (!bias_) entries.pop_back();
    return entries;
  }
  void add_work(NetworkWork& network) const override {
    network.steps.back().behind += product_work(in_, out_);
    network.steps.back().add_rows(out_,
                                  activation_ == Activation::none ? 0 : static_cast<double>(out_));
  }

  RowStates forward(const RowStates& x, const LayerWeights& weights,
                    const LayerCall& call) const override {
    const at::Tensor y =
        linear_rows(x, weights[prefix_ + "weight"],
                    bias_ ? weights[prefix_ + "bias"] : at::Tensor(), call.backend);
    return activate_rows(y, activation_, call.backend);
  }

 private:
  std::int64_t out_;
  bool bias_;
  LinearStart start_;
  Activation activation_;
};

}  // namespace

std::shared_ptr<const Layer> read_activation(ConfigNode block, const LayerPosition& position) {
  return std::make_shared<ActivationLayer>(
      position, activation_of(block.choice("kind", "relu", activation_names())));
}

std::shared_ptr<const Layer> read_prelu(ConfigNode block, const LayerPosition& position) {
  return std::make_shared<Prelu>(position, block.boolean("per_channel", false));
}

std::shared_ptr<const Layer> read_channel_attention(ConfigNode block,
                                                    const LayerPosition& position) {
  return std::make_shared<ChannelAttention>(position, block.integer("reduction", 8, {1, 4096}));
}

std::shared_ptr<const Layer> read_dropout(ConfigNode block, const LayerPosition& position) {
  const double rate = block.number("rate", 0.2, {0, 0.99});
  const bool nodes = block.choice("drop", "channels", {"channels", "nodes"}) == "nodes";
  const bool per_element = block.choice("scope", "row", {"row", "element"}) == "element";
  return std::make_shared<Dropout>(position, rate, nodes ? Dropped::rows : Dropped::channels,
                                   per_element);
}

at::Tensor normalise_l2(const at::Tensor& x, const Backend& backend) {
  // The gradient of the root of 0 is not finite.
  const auto length = [](const at::Tensor& rows) {
    return roots(row_sums(rows.square()).clamp_min_(1e-24));
  };
  return map_rows(
      [length](const auto& rows, at::Tensor& y) { at::div_out(y, rows[0], length(rows[0])); },
      [length](const auto& rows, const at::Tensor& d_y, auto& d_rows) {
        if (!d_rows[0].defined()) return;
        const at::Tensor own = length(rows[0]), y = rows[0] / own,
                         along = row_sums(d_y * y).mul_(own > 1e-12);
        at::sub_out(d_rows[0], d_y, y * along);
        d_rows[0].div_(own);
      },
      {x}, x.size(2), backend);
}

std::shared_ptr<const Layer> read_l2_norm(ConfigNode, const LayerPosition& position) {
  return std::make_shared<L2Norm>(position);
}

std::shared_ptr<const Layer> read_layer_norm(ConfigNode block, const LayerPosition& position) {
  const bool affine = block.boolean("affine", true);
  return std::make_shared<LayerNorm>(position, affine, block.number("eps", 1e-5, {1e-30, 1}));
}

std::shared_ptr<const Layer> read_linear(ConfigNode block, const LayerPosition& position) {
  block.require("width");
  const std::int64_t width = block.integer("width", 64, {1, kMaxWidth});
  const bool bias = block.boolean("bias", true);
  const LinearStart start = LinearStart::read(block);
  return std::make_shared<Linear>(position, width, bias, start, read_activation_key(block, "none"));
}

}  // namespace tpudist
