#include "models/layers/layer.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "models/operators/operators.hpp"
#include "models/plans/join_plans.hpp"
#include "models/plans/row_keys.hpp"

namespace tpudist {

const at::Tensor& LayerWeights::operator[](const std::string& name) const {
  const auto found = of_name_.find(name);
  if (found == of_name_.end()) throw Error(ErrorKind::failed, "no weights are named " + name);
  return found->second;
}

StateIndex::StateIndex(std::vector<std::int32_t> index, std::int64_t size)
    : index(std::move(index)), transposed(transpose_index(this->index, size)) {
  for (std::int32_t& value : this->index) value = std::max(value, 0);
}

StateIndex::StateIndex(std::span<const std::int32_t> state, const Plan& plan)
    : StateIndex(
          [&] {
            std::vector<std::int32_t> index(state.begin(), state.end());
            const auto put_none = [&](std::int64_t begin, std::int64_t count, std::int64_t none) {
              for (std::int64_t row = begin; row < begin + count; ++row) {
                if (index[row] < 0) index[row] = to_index32(none);
              }
            };
            if (!plan.units || state.empty()) {
              put_none(0, std::ssize(index), plan.states);
              return index;
            }
            const std::vector<RowRun>& runs = plan.units->of(std::ssize(index)).runs;
            for (std::size_t run = 0; run < runs.size(); ++run)
              put_none(runs[run].begin, runs[run].count, plan.units->none_state(run));
            return index;
          }(),
          plan.states + 1) {}

PlanContext::PlanContext(const Plan& plan, const PlanShape& shape,
                         std::vector<std::vector<std::uint64_t>> row_keys)
    : groups(plan.layers.size()),
      state_index(plan.layers.size()),
      row_keys(std::move(row_keys)),
      units(plan.units ? std::make_shared<JoinedUnits>(*plan.units) : nullptr),
      entries(plan.layers.size()),
      factors(plan.layers.size()),
      attention(plan.layers.size()) {
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    if (layer.edge_kinds == std::vector{EdgeKind::nodes} ||
        layer.edge_kinds == std::vector{EdgeKind::configs}) {
      groups[i] = std::make_unique<RowGroups>(*plan.layers[i]);
    }
    if (layer.joins_states)
      state_index[i] = std::make_unique<StateIndex>(plan.layers[i]->state, plan);
  }
  if (shape.per_element && !plan.config.empty() && !this->row_keys.empty())
    element_keys = tpudist::element_keys(plan, this->row_keys.back());
}

const NeighbourEntries& PlanContext::make_entries(const Plan& plan, std::size_t step) {
  for (std::size_t other = 0; other < plan.layers.size() && !entries[step]; ++other) {
    if (plan.layers[other] == plan.layers[step]) entries[step] = entries[other];
  }
  if (!entries[step])
    entries[step] = std::make_shared<NeighbourEntries>(*plan.layers[step], units.get());
  return *entries[step];
}

std::vector<LayerShape> Layer::steps() const {
  std::vector<LayerShape> steps;
  for (const auto& layer : inner()) std::ranges::move(layer->steps(), std::back_inserter(steps));
  return steps;
}

int Layer::drops() const {
  int drops = 0;
  for (const auto& layer : inner()) drops += layer->drops();
  return drops;
}

std::vector<ParameterEntry> Layer::parameters() const {
  std::vector<ParameterEntry> entries;
  for (const auto& layer : inner())
    std::ranges::move(layer->parameters(), std::back_inserter(entries));
  return entries;
}

ParameterEntry linear_weight(const std::string& name, std::int64_t in, std::int64_t out) {
  ParameterEntry entry{name, {in, out}};
  entry.initialiser = {Initialiser::Kind::fan_in, 0, in, out};
  entry.torch_transposes = true;
  return entry;
}

ParameterEntry linear_bias(const std::string& name, std::int64_t in, std::int64_t out) {
  ParameterEntry entry{name, {out}};
  entry.group = ParameterGroup::biases;
  entry.initialiser = {Initialiser::Kind::fan_in, 0, in, out};
  return entry;
}

void add_linear(std::vector<ParameterEntry>& entries, const std::string& name, std::int64_t in,
                std::int64_t out, bool bias) {
  entries.push_back(linear_weight(name + ".weight", in, out));
  if (bias) entries.push_back(linear_bias(name + ".bias", in, out));
}

ParameterEntry norm_parameter(const std::string& name, std::int64_t size, double value) {
  ParameterEntry entry{name, {size}};
  entry.group = ParameterGroup::norms;
  entry.initialiser = {Initialiser::Kind::constant, value};
  return entry;
}

at::Tensor scale_and_shift(const at::Tensor& x, const LayerWeights& weights,
                           const std::string& prefix, const Backend& backend) {
  return map_rows([](const auto& rows,
                     const auto& parameters) { return rows[0] * parameters[0] + parameters[1]; },
                  {x}, {weights[prefix + "weight"], weights[prefix + "bias"]}, backend);
}

at::Tensor apply_linear(const at::Tensor& x, const LayerWeights& weights, const std::string& name,
                        const Backend& backend, bool bias) {
  return linear_rows(x, weights[name + ".weight"], bias ? weights[name + ".bias"] : at::Tensor(),
                     backend);
}

}  // namespace tpudist
