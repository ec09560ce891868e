#include "models/operators/attend_nodes.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "models/kernels/cpu_blocks.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/operators.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Attending {
  const Backend& backend;
  const NodeAttention& attention;
  std::int64_t heads;
};

// One head of one member, [rows, A or B].
Tensor of_head(const Tensor& x, std::int64_t member, std::int64_t head, std::int64_t heads) {
  const std::int64_t width = x.size(2) / heads;
  return x.select(0, member).narrow(1, head * width, width);
}

// Adds to rows that are named once each; the order does not depend on threads.
void add_rows(const Tensor& to, const Tensor& rows, const Tensor& added) {
  Tensor(to).index_copy_(0, rows, to.index_select(0, rows) + added);
}

// Some rows after of a group: their shares [rows, rows before] of one head.
struct Block {
  std::int64_t first, count;  // in the group
  Tensor after, before;       // rows of the plan
};

// Calls body(block) for all blocks of a group's rows after.
template <typename Body>
void for_blocks(const NodeAttention& attention, std::int64_t group, const Body& body) {
  const std::int64_t begin = attention.after.begin[group], end = attention.after.begin[group + 1],
                     from = attention.before.begin[group], before = attention.before.count(group);
  for (std::int64_t first = begin; first < end; first += kBlockRows) {
    const std::int64_t count = std::min(kBlockRows, end - first);
    body(Block{first - begin, count, attention.after.rows.narrow(0, first, count),
               attention.before.rows.narrow(0, from, before)});
  }
}

// w_ij of a block. Pairs are in the order of their places.
Tensor weights_of(const NodeAttention& attention, std::int64_t group, const Block& block) {
  const std::int64_t before = block.before.size(0), from = attention.before.begin[group];
  Tensor weights =
      attention.weight.narrow(0, from, before).expand({block.count, before}).contiguous();
  const auto& rows = attention.rows_of_pairs;
  const auto begin = rows.begin() + attention.pair_begin[group],
             end = rows.begin() + attention.pair_begin[group + 1];
  const auto first = std::lower_bound(begin, end, block.first) - rows.begin(),
             last = std::lower_bound(begin, end, block.first + block.count) - rows.begin();
  if (last > first) {
    add_rows(weights.view(-1),
             attention.place.narrow(0, first, last - first) - block.first * before,
             attention.added.narrow(0, first, last - first));
  }
  return weights;
}

Tensor shares_of(const Tensor& q, const Tensor& k, const Tensor& weights) {
  const Tensor logits = product(q, k.t()) / std::sqrt(static_cast<double>(q.size(1)));
  Tensor powers = logits - logits.amax(at::IntArrayRef{1}, true);
  exponentiate(powers);
  powers.mul_(weights);
  return powers.div_(row_sums(powers));
}

class AttendNodes : public torch::autograd::Function<AttendNodes> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Attending& given) {
    keep_state(context, given);
    const Tensor y = given.backend.attend(q, k, v, given.attention, given.heads);
    context->save_for_backward({q, k, v, y});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, attention, heads] = kept_state<Attending>(context);
    const variable_list saved = context->get_saved_variables();
    const auto [d_q, d_k, d_v] = backend.attend_gradient(saved[0], saved[1], saved[2], saved[3],
                                                         as_planes(gradients[0]), attention, heads);
    return {d_q, d_k, d_v, {}};
  }
};

}  // namespace

Tensor CpuBackend::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                          const NodeAttention& attention, std::int64_t heads) const {
  Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
  const std::int64_t groups = attention.groups();
  for_tasks(q.size(0) * heads * groups, [&](std::int64_t task) {
    const at::NoGradGuard no_graph;
    const std::int64_t member = task / groups / heads, head = task / groups % heads,
                       group = task % groups;
    const auto part = [&](const Tensor& x) { return of_head(x, member, head, heads); };
    for_blocks(attention, group, [&](const Block& block) {
      const Tensor shares =
          shares_of(part(q).index_select(0, block.after), part(k).index_select(0, block.before),
                    weights_of(attention, group, block));
      part(y).index_copy_(0, block.after, product(shares, part(v).index_select(0, block.before)));
    });
  });
  return y;
}

std::array<Tensor, 3> CpuBackend::attend_gradient(const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const Tensor& y, const Tensor& d_y,
                                                  const NodeAttention& attention,
                                                  std::int64_t heads) const {
  Tensor d_q = rows_like(q), d_k = rows_like(k).zero_(), d_v = rows_like(v).zero_();
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(2) / heads));
  // Groups share rows before the layer, so their gradients are added one group after another.
  for_tasks(q.size(0) * heads, [&](std::int64_t task) {
    const at::NoGradGuard no_graph;
    const auto part = [&](const Tensor& x) {
      return of_head(x, task / heads, task % heads, heads);
    };
    for (std::int64_t group = 0; group < attention.groups(); ++group) {
      for_blocks(attention, group, [&](const Block& block) {
        const Tensor own_q = part(q).index_select(0, block.after),
                     own_k = part(k).index_select(0, block.before),
                     own_v = part(v).index_select(0, block.before),
                     own_d_y = part(d_y).index_select(0, block.after),
                     own_y = part(y).index_select(0, block.after);
        const Tensor shares = shares_of(own_q, own_k, weights_of(attention, group, block));
        const Tensor d_logits =
            ((product(own_d_y, own_v.t()) - row_sums(own_d_y * own_y)) * shares).mul_(scale);
        part(d_q).index_copy_(0, block.after, product(d_logits, own_k));
        add_rows(part(d_k), block.before, product(d_logits.t(), own_q));
        add_rows(part(d_v), block.before, product(shares.t(), own_d_y));
      });
    }
  });
  return {d_q, d_k, d_v};
}

NodeAttention::NodeAttention(const PlanLayer& layer, double others, at::ScalarType dtype) {
  if (layer.edges.empty() || layer.edges[0].neighbourhood.is_identity())
    throw Error(ErrorKind::failed, "attention needs a plan layer that joins all nodes");
  const EdgeSet& nodes = layer.edges[0];
  const Csr &matrix = nodes.aggregate.forward, &rows = nodes.neighbourhood.transposed;
  const std::int64_t replicas = nodes.aggregate.replicas;
  std::vector<std::int64_t> all_after, all_before, places;
  std::vector<double> weights, additions;
  after.plan_rows = layer.rows_out;
  before.plan_rows = layer.rows_in;
  for (std::int64_t group = 0; group < matrix.rows() * replicas; ++group) {
    if (rows.begin[group] == rows.begin[group + 1]) continue;  // padding of a joined plan
    const std::int64_t first = matrix.begin[group / replicas],
                       last = matrix.begin[group / replicas + 1];
    for (std::int64_t e = first; e < last; ++e) {
      all_before.push_back(matrix.source[e] * replicas + group % replicas);
      weights.push_back(others * matrix.weight_of(e));
      merged = merged || matrix.weight_of(e) != 1;
    }
    const auto place_of = [&](std::int64_t row) {
      const auto begin = all_before.begin() + before.begin.back();
      const auto found = std::lower_bound(begin, all_before.end(), row);
      if (found == all_before.end() || *found != row)
        throw Error(ErrorKind::failed, "a neighbour is not a node of its configuration");
      return found - begin;
    };
    for (std::int64_t i = rows.begin[group]; i < rows.begin[group + 1]; ++i) {
      const std::int64_t row = rows.source[i], at = i - rows.begin[group];
      all_after.push_back(row);
      std::map<std::int64_t, double> edges_to;  // by place
      for (std::size_t set = 1; set < layer.edges.size(); ++set) {
        const SparseMatrix& along = layer.edges[set].aggregate;
        const std::int64_t of = layer.edges[set].neighbourhood(row);
        for (std::int64_t e = along.forward.begin[of / along.replicas];
             e < along.forward.begin[of / along.replicas + 1]; ++e)
          edges_to[place_of(along.forward.source[e] * along.replicas + of % along.replicas)] +=
              along.forward.weight_of(e);
      }
      for (const auto& [place, edges] : edges_to) {
        rows_of_pairs.push_back(at);
        places.push_back(at * (last - first) + place);
        additions.push_back((1 - others) * edges);
      }
    }
    after.begin.push_back(static_cast<std::int64_t>(all_after.size()));
    before.begin.push_back(static_cast<std::int64_t>(all_before.size()));
    pair_begin.push_back(static_cast<std::int64_t>(places.size()));
  }
  std::vector<char> seen(static_cast<std::size_t>(layer.rows_in));
  for (const std::int64_t row : all_before) apart = apart && !std::exchange(seen[row], 1);
  after.rows = at::tensor(all_after, at::kLong);
  before.rows = at::tensor(all_before, at::kLong);
  place = at::tensor(places, at::kLong);
  weight = at::tensor(weights, at::kDouble).to(dtype);
  added = at::tensor(additions, at::kDouble).to(dtype);
}

std::vector<Tensor*> NodeAttention::tensors() {
  const auto to_tensor = [](const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong);
  };
  // The groups of what begins where `begin` says, and its places there.
  const auto in_groups = [&](const std::vector<std::int64_t>& begin, Tensor& group, Tensor& at) {
    std::vector<std::int64_t> groups, places;
    for (std::int64_t g = 0; g < this->groups(); ++g) {
      for (std::int64_t i = 0; i < begin[g + 1] - begin[g]; ++i) {
        groups.push_back(g);
        places.push_back(i);
      }
    }
    group = to_tensor(groups);
    at = to_tensor(places);
  };
  std::vector<Tensor*> all{&weight, &added, &pair_group, &pair_row, &pair_column};
  for (GroupedRows* const list : {&after, &before}) {
    list->begins = to_tensor(list->begin);
    in_groups(list->begin, list->group, list->place);
    const Tensor index = list->rows.to(at::kInt);
    list->of_plan = transpose_index(
        {index.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(index.numel())},
        list->plan_rows);
    all.insert(all.end(), {&list->rows, &list->begins, &list->group, &list->place});
  }
  in_groups(pair_begin, pair_group, pair_column);
  pair_row = to_tensor(rows_of_pairs);
  const auto* const own = place.const_data_ptr<std::int64_t>();
  const auto* const group = pair_group.const_data_ptr<std::int64_t>();
  auto* const column = pair_column.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < std::ssize(rows_of_pairs); ++i)
    column[i] = own[i] % before.count(group[i]);
  return all;
}

Tensor attend_nodes(const Tensor& q, const Tensor& k, const Tensor& v,
                    const NodeAttention& attention, std::int64_t heads, const Backend& backend) {
  return AttendNodes::apply(as_planes(q), as_planes(k), as_planes(v),
                            Attending{backend, attention, heads});
}

}  // namespace tpudist
