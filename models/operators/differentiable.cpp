// The operators as functions that autograd can differentiate: each keeps what its backward pass
// needs, and the backend computes both passes.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "core/error.hpp"
#include "models/kernels/row_functions.hpp"
#include "models/operators/backend.hpp"
#include "models/operators/operators.hpp"
#include "models/operators/planes.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Autograd expects nothing instead of an undefined tensor.
std::optional<Tensor> optional(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

struct Gathering {
  const Backend& backend;
  std::vector<GatherView> index;  // [terms]
};

class SumOfGathered : public torch::autograd::Function<SumOfGathered> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList x, const Gathering& given) {
    const GatherView& first = given.index[0];
    const std::int64_t rows =
        first.is_identity() ? x[0].size(1) : static_cast<std::int64_t>(first.index.size());
    keep_state(context, given);
    return given.backend.sum_of_gathered(x.vec(), given.index, rows);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, index] = kept_state<Gathering>(context);
    const Tensor d_y = as_planes(gradients[0]);
    variable_list result;
    for (std::size_t t = 0; t < index.size(); ++t) {
      Tensor& own = result.emplace_back();
      if (!context->needs_input_grad(t)) continue;
      own = index[t].is_identity() ? d_y : backend.gathered_gradient(*index[t].transposed, d_y);
    }
    result.emplace_back();
    return result;
  }
};

struct Neighbourhoods {
  const Backend& backend;
  const SparseMatrix& matrix;
  Aggregation aggregation;
};

class AggregateRows : public torch::autograd::Function<AggregateRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Neighbourhoods& given) {
    keep_state(context, given);
    const Tensor y = given.backend.aggregate(given.matrix, x, given.aggregation);
    if (given.aggregation == Aggregation::max) context->save_for_backward({x, y});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, matrix, aggregation] = kept_state<Neighbourhoods>(context);
    variable_list saved = context->get_saved_variables();
    saved.resize(2);
    return {backend.aggregate_gradient(matrix, saved[0], saved[1], as_planes(gradients[0]),
                                       aggregation),
            {}};
  }
};

class LinearRows : public torch::autograd::Function<LinearRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, const Backend* backend) {
    context->save_for_backward({x, weight});
    keep_state(context, State{*backend, bias.has_value()});
    return backend->linear(x, weight, bias.value_or(Tensor()));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, has_bias] = kept_state<State>(context);
    const variable_list saved = context->get_saved_variables();
    const auto [d_x, d_weight, d_bias] = backend.linear_gradient(
        saved[0], saved[1], as_planes(gradients[0]), context->needs_input_grad(0), has_bias);
    return {d_x, d_weight, d_bias, {}};
  }

 private:
  struct State {
    const Backend& backend;
    bool has_bias;
  };
};

// A parameter [M, C] for each row.
class OfRows : public torch::autograd::Function<OfRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& parameter, std::int64_t rows,
                        const Backend* backend) {
    keep_state(context, backend);
    return backend->of_rows(parameter, rows);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Backend& backend = *kept_state<const Backend*>(context);
    return {backend.sum_of_rows(as_planes(gradients[0])), {}, {}};
  }
};

class MapRowsByHand : public torch::autograd::Function<MapRowsByHand> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList row_list,
                        const RowWriter* function, const RowGradient* gradient,
                        std::int64_t channels, const Backend* backend) {
    const variable_list rows = row_list.vec();
    context->save_for_backward(rows);
    keep_state(context, State{*backend, *gradient});
    return backend->map_by_hand(*function, rows, channels);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, gradient] = kept_state<State>(context);
    const variable_list rows = context->get_saved_variables();
    variable_list d_rows(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (context->needs_input_grad(i)) d_rows[i] = rows_like(rows[i]);
    }
    backend.map_gradient(gradient, rows, as_planes(gradients[0]), d_rows);
    d_rows.resize(rows.size() + 4);
    return d_rows;
  }

 private:
  struct State {
    const Backend& backend;
    RowGradient gradient;
  };
};

class SplitUses : public torch::autograd::Function<SplitUses> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, std::int64_t count,
                               const Backend* backend) {
    context->set_materialize_grads(false);
    keep_state(context, backend);
    variable_list uses;
    for (std::int64_t i = 0; i < count; ++i) uses.push_back(x.detach());
    return uses;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Backend& backend = *kept_state<const Backend*>(context);
    variable_list terms;
    for (const Tensor& gradient : gradients) {
      if (gradient.defined()) terms.push_back(as_planes(gradient));
    }
    if (terms.empty()) return {Tensor(), {}, {}};
    return {terms.size() == 1 ? terms[0] : backend.sum(terms), {}, {}};
  }
};

class SumChannels : public torch::autograd::Function<SumChannels> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->saved_data["channels"] = x.size(-1);
    return row_sums(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    std::vector<std::int64_t> sizes = gradients[0].sizes().vec();
    sizes.back() = context->saved_data["channels"].toInt();
    return {gradients[0].expand(sizes)};
  }
};

class Roots : public torch::autograd::Function<Roots> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    const Tensor root = x.to(at::kDouble).sqrt().to(x.scalar_type());
    context->save_for_backward({root});
    return root;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0] / (2 * context->get_saved_variables()[0])};
  }
};

class RepeatChannels : public torch::autograd::Function<RepeatChannels> {
 public:
  static Tensor forward(AutogradContext*, const Tensor& x, std::int64_t channels) {
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes.back() = channels;
    return x.expand(sizes).contiguous();
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    return {row_sums(gradients[0]), {}};
  }
};

struct Dropout {
  const Backend& backend;
  DropoutDraw draw;
};

// The mask is drawn again in the backward pass instead of being kept.
class DropRows : public torch::autograd::Function<DropRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Dropout& given) {
    return given.backend.drop(x, keep_state(context, given).draw);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, draw] = kept_state<Dropout>(context);
    return {backend.drop(as_planes(gradients[0]), draw), {}};
  }
};

struct Grouping {
  const Backend& backend;
  const RowGroups& groups;
};

class NormaliseGroups : public torch::autograd::Function<NormaliseGroups> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x,
                        const std::optional<Tensor>& given_shift, double eps,
                        const Grouping& given) {
    const Tensor shift = given_shift.value_or(Tensor());
    keep_state(context, given);
    const auto [y, kept] = given.backend.normalise(given.groups, x, shift, eps);
    context->save_for_backward({x, shift, kept});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, groups] = kept_state<Grouping>(context);
    const variable_list saved = context->get_saved_variables();
    const auto gradient =
        backend.normalise_gradient(groups, saved[0], saved[1], saved[2], as_planes(gradients[0]));
    return {gradient.x, gradient.parameter, {}, {}};
  }
};

class SoftmaxGate : public torch::autograd::Function<SoftmaxGate> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& temperature,
                        const Grouping& given) {
    keep_state(context, given);
    const auto [y, kept] = given.backend.softmax_gate(given.groups, x, temperature);
    context->save_for_backward({x, temperature, kept});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, groups] = kept_state<Grouping>(context);
    const variable_list saved = context->get_saved_variables();
    const auto gradient = backend.softmax_gate_gradient(groups, saved[0], saved[1], saved[2],
                                                        as_planes(gradients[0]));
    return {gradient.x, gradient.parameter, {}};
  }
};

struct Pooling {
  const Backend& backend;
  const Readout& readout;
  Aggregation aggregation;
};

class PoolRows : public torch::autograd::Function<PoolRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Pooling& given) {
    keep_state(context, given);
    const Tensor y = given.backend.pool(given.readout, x, given.aggregation);
    context->save_for_backward({x, y});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, readout, aggregation] = kept_state<Pooling>(context);
    const variable_list saved = context->get_saved_variables();
    return {
        backend.pool_gradient(readout, saved[0], saved[1], as_planes(gradients[0]), aggregation),
        {}};
  }
};

void require_rows(const std::vector<Tensor>& rows) {
  if (rows.empty() || rows.front().size(1) == 0)
    throw Error(ErrorKind::failed, "map_rows: there are no rows");
}

}  // namespace

at::Tensor make_rows(std::int64_t members, std::int64_t rows, std::int64_t channels,
                     const at::TensorOptions& options) {
  const auto in_plane = kPlaneBytes / static_cast<std::int64_t>(options.dtype().itemsize());
  const std::int64_t distance = (rows * channels + in_plane - 1) / in_plane * in_plane;
  return at::empty_strided({members, rows, channels}, {distance, channels, 1}, options);
}

at::Tensor rows_like(const at::Tensor& x, std::int64_t rows) {
  return make_rows(x.size(0), rows, x.size(2), x.options());
}

at::Tensor as_planes(const at::Tensor& x) {
  const auto bytes = [&](std::int64_t numbers) {
    return numbers * static_cast<std::int64_t>(x.element_size());
  };
  if (x.size(0) == 1 && x.is_cpu()) return x.contiguous();
  const bool apart = x.size(0) == 1 || bytes(x.stride(0)) % kPlaneBytes == 0;
  if (apart && bytes(x.storage_offset()) % kPlaneBytes == 0 && x.select(0, 0).is_contiguous())
    return x;
  return rows_like(x).copy_(x);
}

Tensor gather_rows(const Tensor& x, const GatherView& index, const Backend& backend) {
  if (index.is_identity()) return x;
  return sum_of_gathered({{x, index}}, backend);
}

Tensor sum_of_gathered(const std::vector<GatheredTerm>& terms, const Backend& backend) {
  variable_list x;
  Gathering gathering{backend, {}};
  for (const GatheredTerm& term : terms) {
    x.push_back(as_planes(term.x));
    gathering.index.push_back(term.index);
  }
  if (x.empty()) throw Error(ErrorKind::failed, "sum_of_gathered: there are no terms");
  return SumOfGathered::apply(at::TensorList(x), gathering);
}

Tensor aggregate_rows(const SparseMatrix& matrix, const Tensor& x, Aggregation aggregation,
                      const Backend& backend) {
  return AggregateRows::apply(as_planes(x), Neighbourhoods{backend, matrix, aggregation});
}

Tensor linear_rows(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const Backend& backend) {
  if (x.dim() != 3 || weight.dim() != 3 || x.size(0) == 0 || weight.size(0) % x.size(0) != 0 ||
      x.size(2) != weight.size(1)) {
    throw Error(
        ErrorKind::failed,
        fmt::format("linear_rows: rows [{}] and weight [{}] do not fit together",
                    fmt::join(x.sizes().vec(), ", "), fmt::join(weight.sizes().vec(), ", ")));
  }
  return LinearRows::apply(as_planes(x), as_planes(weight), optional(bias), &backend);
}

Tensor scaled_bias(const Tensor& bias, const Tensor& factors, const Backend& backend) {
  return OfRows::apply(bias, factors.size(0), &backend).squeeze(2) * factors;
}

Tensor map_rows(const RowWriter& function, const RowGradient& gradient,
                const std::vector<Tensor>& rows, std::int64_t channels, const Backend& backend) {
  require_rows(rows);
  variable_list planes;
  for (const Tensor& input : rows) planes.push_back(as_planes(input));
  return MapRowsByHand::apply(at::TensorList(planes), &function, &gradient, channels, &backend);
}

Tensor map_rows(const RowFunction& function, const std::vector<Tensor>& rows,
                const std::vector<Tensor>& parameters, const Backend& backend) {
  require_rows(rows);
  std::int64_t members = 1;
  if (backend.maps_all_members()) {
    variable_list all, of_rows;
    for (const Tensor& input : rows) members = std::max(members, input.size(0));
    for (const Tensor& input : rows) all.push_back(input.expand({members, -1, -1}));
    for (const Tensor& parameter : parameters) {
      of_rows.push_back(OfRows::apply(parameter.flatten(1), rows[0].size(1), &backend)
                            .unflatten(2, parameter.sizes().slice(1)));
    }
    return as_planes(backend.map(function, all, of_rows));
  }
  // [inputs][members], or [inputs][1] for an input that all members share
  std::vector<variable_list> of_rows, of_parameters;
  const auto split = [](const Tensor& x) { return x.size(0) == 1 ? variable_list{x} : x.split(1); };
  for (const Tensor& input : rows) {
    members = std::max(members, input.size(0));
    of_rows.push_back(split(input));
  }
  for (const Tensor& parameter : parameters) of_parameters.push_back(split(parameter.unsqueeze(1)));
  const auto of_member = [](const std::vector<variable_list>& all, std::int64_t m) {
    variable_list own;
    for (const variable_list& one : all) own.push_back(one[one.size() == 1 ? 0 : m]);
    return own;
  };
  variable_list results;
  for (std::int64_t m = 0; m < members; ++m)
    results.push_back(backend.map(function, of_member(of_rows, m), of_member(of_parameters, m)));
  return as_planes(members == 1 ? results[0] : at::cat(results));
}

Tensor row_sums(const Tensor& x) {
  if (!x.is_cpu()) return x.sum(-1, true);
  constexpr std::int64_t kLanes = 8;
  const Tensor rows = x.contiguous();
  const std::int64_t width = x.size(-1), count = width > 0 ? x.numel() / width : 0;
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = 1;
  Tensor sums = at::empty(sizes, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_sums", [&] {
    const scalar_t* row = rows.const_data_ptr<scalar_t>();
    scalar_t* const out = sums.mutable_data_ptr<scalar_t>();
    for (std::int64_t i = 0; i < count; ++i, row += width) {
      double lanes[kLanes] = {}, sum = 0;
      std::int64_t c = 0;
      for (; c + kLanes <= width; c += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += row[c + lane];
      }
      for (const double lane : lanes) sum += lane;
      for (; c < width; ++c) sum += row[c];
      out[i] = static_cast<scalar_t>(sum);
    }
  });
  return sums;
}

Tensor sum_channels(const Tensor& x) {
  return SumChannels::apply(x);
}

Tensor roots(const Tensor& x) {
  return Roots::apply(x);
}

Tensor repeat_channels(const Tensor& x, std::int64_t channels) {
  return RepeatChannels::apply(x, channels);
}

void exponentiate(Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat) {
    x.exp_();
    return;
  }
  for_planes(x, [&](std::int64_t m, std::int64_t count) {
    exp_values(plane<float>(x, m), count, mutable_plane<float>(x, m));
  });
}

Tensor join_channels(const std::vector<Tensor>& rows, const Backend& backend) {
  std::int64_t all = 0;
  for (const Tensor& part : rows) all += part.size(2);
  return map_rows([](const auto& parts, Tensor& result) { at::cat_out(result, parts, 2); },
                  [](const auto& parts, const Tensor& d_result, auto& d_parts) {
                    std::int64_t first = 0;
                    for (std::size_t i = 0; i < parts.size(); ++i) {
                      const std::int64_t channels = parts[i].size(2);
                      if (d_parts[i].defined())
                        d_parts[i].copy_(d_result.narrow(2, first, channels));
                      first += channels;
                    }
                  },
                  rows, all, backend);
}

std::vector<Tensor> split_uses(const Tensor& x, int count, const Backend& backend) {
  return SplitUses::apply(x, static_cast<std::int64_t>(count), &backend);
}

Tensor drop_rows(const Tensor& x, Dropped dropped, double rate,
                 std::span<const std::uint64_t> member_keys, std::uint32_t layer,
                 std::span<const std::uint64_t> row_keys, const Backend& backend) {
  if (x.size(0) == 0 || std::ssize(member_keys) % x.size(0) != 0 ||
      static_cast<std::int64_t>(row_keys.size()) != x.size(1)) {
    throw Error(ErrorKind::failed, "drop_rows: keys do not fit the rows");
  }
  const DropoutDraw draw{dropped, rate, {member_keys.begin(), member_keys.end()}, layer, row_keys};
  return DropRows::apply(as_planes(x), Dropout{backend, draw});
}

Tensor normalise_groups(const Tensor& x, const Tensor& shift, double eps, const RowGroups& groups,
                        const Backend& backend) {
  return NormaliseGroups::apply(as_planes(x), optional(shift), eps, Grouping{backend, groups});
}

Tensor softmax_gate(const Tensor& x, const Tensor& temperature, const RowGroups& groups,
                    const Backend& backend) {
  return SoftmaxGate::apply(as_planes(x), temperature.contiguous(), Grouping{backend, groups});
}

Tensor pool_rows(const Tensor& x, const Readout& readout, Aggregation aggregation,
                 const Backend& backend) {
  return PoolRows::apply(as_planes(x), Pooling{backend, readout, aggregation});
}

}  // namespace tpudist
