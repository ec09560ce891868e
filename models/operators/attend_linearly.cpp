#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/operators/attend_nodes.hpp"
#include "models/operators/cpu_backend.hpp"
#include "models/operators/operators.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of a group that are computed at a time, so that rows and results fit in the level-2 cache.
constexpr std::int64_t kPartRows = 512;

struct LinearAttending {
  const Backend& backend;
  const NodeAttention& attention;
  std::int64_t heads;
};

// Calls body(rows, first) for blocks of the rows begin .. end - 1 of a list.
template <typename Body>
void for_parts(const Tensor& list, std::int64_t begin, std::int64_t end, const Body& body) {
  for (std::int64_t first = begin; first < end; first += kPartRows)
    body(list.narrow(0, first, std::min(kPartRows, end - first)), first);
}

// f(x) = elu(x) + 1 as exp(min(x, 0)) + max(x, 0), which needs no expm1.
Tensor positive(const Tensor& x, const Backend& backend) {
  return backend.map_by_hand(
      [](const auto& rows, Tensor& y) {
        at::clamp_max_out(y, rows[0], 0);
        exponentiate(y);
        y.add_(rows[0].clamp_min(0));
      },
      {x}, x.size(2));
}

// [rows, H x A] as [H, rows, A].
Tensor by_heads(const Tensor& x, std::int64_t heads) {
  return x.unflatten(1, {heads, -1}).transpose(0, 1);
}

// to[rows[i]] = the heads of row i of x [H, rows, A] side by side, on the CPU. `rows` names no row
// twice; rows of `to` are its first stride apart. ATen would copy number by number.
void put_rows(const Tensor& to, const Tensor& rows, const Tensor& x) {
  const Tensor from = x.contiguous();
  const std::int64_t *const row = rows.const_data_ptr<std::int64_t>(), count = x.size(1),
                            width = x.size(2);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "put_rows", [&] {
    const scalar_t* in = from.const_data_ptr<scalar_t>();
    scalar_t* const out = to.mutable_data_ptr<scalar_t>();
    for (std::int64_t head = 0; head < x.size(0); ++head) {
      for (std::int64_t i = 0; i < count; ++i, in += width)
        std::copy_n(in, width, out + row[i] * to.stride(0) + head * width);
    }
  });
}

// The sums of one group of a member, a row of `sums`, in these sizes.
Tensor of_group(const Tensor& sums, std::int64_t member, std::int64_t group,
                at::IntArrayRef sizes) {
  return sums[member][group].view(sizes);
}

// The rows before of a group, and the sums of a member over them, s [H, A, B] and z [H, A]. `k` is
// f(k), whose derivative is min(f(k), 1). H is 1 if `k` and `v` are those of one head.
struct Before {
  const NodeAttention& attention;
  std::int64_t group, heads;

  template <typename Body>
  void for_rows(const Body& body) const {
    for_parts(attention.before.rows, attention.before.begin[group],
              attention.before.begin[group + 1], body);
  }
  // How many nodes the rows represent, [rows, 1].
  Tensor counts(const Tensor& rows, std::int64_t first) const {
    return attention.weight.narrow(0, first, rows.size(0)).unsqueeze(1);
  }
  void sum(const Tensor& k, const Tensor& v, const Tensor& s, const Tensor& z) const {
    Tensor into_s = s.zero_(), into_z = z.zero_();
    for_rows([&](const Tensor& rows, std::int64_t first) {
      Tensor key = k.index_select(0, rows);
      if (attention.merged) key.mul_(counts(rows, first));
      add_product(by_heads(key, heads).transpose(1, 2), by_heads(v.index_select(0, rows), heads),
                  into_s);
      add_product(at::ones({1, key.size(0)}, key.options()), key, into_z.view({1, -1}));
    });
  }
  // Adds to d_k and d_v, or writes if no other group has these rows.
  void gradients(const Tensor& k, const Tensor& v, const Tensor& d_s, const Tensor& d_z,
                 const Tensor& d_k, const Tensor& d_v) const {
    for_rows([&](const Tensor& rows, std::int64_t first) {
      const Tensor key = by_heads(k.index_select(0, rows), heads),
                   value = by_heads(v.index_select(0, rows), heads);
      Tensor of_key = product(value, d_s.transpose(1, 2)).add_(d_z.unsqueeze(1)),
             of_value = product(key, d_s);
      if (attention.merged) {
        const Tensor own = counts(rows, first);
        of_key.mul_(own);
        of_value.mul_(own);
      }
      const auto put = [&](const Tensor& to, const Tensor& added) {
        put_rows(to, rows,
                 attention.apart ? added : by_heads(to.index_select(0, rows), heads) + added);
      };
      put(d_k, of_key.mul_(key.clamp_max(1)));
      put(d_v, of_value);
    });
  }
};

class AttendLinearly : public torch::autograd::Function<AttendLinearly> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& given_q, const Tensor& given_k,
                        const Tensor& v, const LinearAttending& given) {
    keep_state(context, given);
    const auto& [backend, attention, heads] = given;
    const Tensor q = positive(given_q, backend), k = positive(given_k, backend);
    const auto [y, s, z] = backend.attend_linearly(q, k, v, attention, heads);
    context->save_for_backward({q, k, v, y, s, z});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, attention, heads] = kept_state<LinearAttending>(context);
    const variable_list saved = context->get_saved_variables();
    const auto [d_q, d_k, d_v] = backend.attend_linearly_gradient(
        saved[0], saved[1], saved[2], {saved[3], saved[4], saved[5]}, as_planes(gradients[0]),
        attention, heads);
    return {d_q, d_k, d_v, {}};
  }
};

}  // namespace

std::array<Tensor, 3> CpuBackend::attend_linearly(const Tensor& q, const Tensor& k, const Tensor& v,
                                                  const NodeAttention& attention,
                                                  std::int64_t heads) const {
  const std::int64_t groups = attention.groups();
  Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
  const Tensor s = make_rows(q.size(0), groups, k.size(2) * (v.size(2) / heads), q.options()),
               z = make_rows(q.size(0), groups, k.size(2), q.options());
  for_tasks(q.size(0) * groups, [&](std::int64_t task) {
    const at::NoGradGuard no_graph;
    const std::int64_t m = task / groups, group = task % groups;
    const Tensor own_s = of_group(s, m, group, {heads, k.size(2) / heads, -1}),
                 own_z = of_group(z, m, group, {heads, -1});
    Before{attention, group, heads}.sum(k[m], v[m], own_s, own_z);
    for_parts(attention.after.rows, attention.after.begin[group], attention.after.begin[group + 1],
              [&](const Tensor& rows, std::int64_t) {
                const Tensor query = by_heads(q[m].index_select(0, rows), heads);
                const Tensor weights = product(query, own_z.unsqueeze(2)).add_(kLinearWeightEps);
                put_rows(y[m], rows, product(query, own_s).div_(weights));
              });
  });
  return {y, s, z};
}

std::array<Tensor, 3> CpuBackend::attend_linearly_gradient(
    const Tensor& q, const Tensor& k, const Tensor& v, const std::array<Tensor, 3>& result,
    const Tensor& d_y, const NodeAttention& attention, std::int64_t heads) const {
  const auto& [y, s, z] = result;
  const Tensor d_s = rows_like(s).zero_(), d_z = rows_like(z).zero_();
  Tensor d_q = rows_like(q), d_k = rows_like(k).zero_(), d_v = rows_like(v).zero_();
  const std::int64_t groups = attention.groups();
  for_tasks(q.size(0) * groups, [&](std::int64_t task) {
    const at::NoGradGuard no_graph;
    const std::int64_t m = task / groups, group = task % groups;
    const Tensor own_s = of_group(s, m, group, {heads, k.size(2) / heads, -1}),
                 own_z = of_group(z, m, group, {heads, -1});
    const Tensor own_d_s = of_group(d_s, m, group, own_s.sizes()),
                 own_d_z = of_group(d_z, m, group, own_z.sizes()), column = own_d_z.unsqueeze(2);
    for_parts(
        attention.after.rows, attention.after.begin[group], attention.after.begin[group + 1],
        [&](const Tensor& rows, std::int64_t) {
          const Tensor query = by_heads(q[m].index_select(0, rows), heads),
                       weights = product(query, own_z.unsqueeze(2)).add_(kLinearWeightEps),
                       d_sum = by_heads(d_y[m].index_select(0, rows), heads) / weights,
                       d_weights =
                           row_sums(d_sum * by_heads(y[m].index_select(0, rows), heads)).neg_();
          const Tensor d_query =
              product(d_sum, own_s.transpose(1, 2)).add_(d_weights * own_z.unsqueeze(1));
          put_rows(d_q[m], rows, d_query * query.clamp_max(1));
          add_product(query.transpose(1, 2), d_sum, own_d_s);
          add_product(query.transpose(1, 2), d_weights, column);
        });
    if (attention.apart)
      Before{attention, group, heads}.gradients(k[m], v[m], own_d_s, own_d_z, d_k[m], d_v[m]);
  });
  if (!attention.apart) {
    // Groups share rows before the layer, so their gradients are added one group after another.
    for_tasks(q.size(0) * heads, [&](std::int64_t task) {
      const at::NoGradGuard no_graph;
      const std::int64_t m = task / heads, head = task % heads;
      const auto part = [&](const Tensor& x) {
        const std::int64_t width = x.size(2) / heads;
        return x[m].narrow(1, head * width, width);
      };
      for (std::int64_t group = 0; group < groups; ++group) {
        const auto own = [&](const Tensor& sums, at::IntArrayRef sizes) {
          return of_group(sums, m, group, sizes).narrow(0, head, 1);
        };
        Before{attention, group, 1}.gradients(part(k), part(v),
                                              own(d_s, {heads, k.size(2) / heads, -1}),
                                              own(d_z, {heads, -1}), part(d_k), part(d_v));
      }
    });
  }
  return {d_q, d_k, d_v};
}

Tensor attend_linearly(const Tensor& q, const Tensor& k, const Tensor& v,
                       const NodeAttention& attention, std::int64_t heads, const Backend& backend) {
  return AttendLinearly::apply(as_planes(q), as_planes(k), as_planes(v),
                               LinearAttending{backend, attention, heads});
}

}  // namespace tpudist
