#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "models/operators/attend_nodes.hpp"
#include "models/operators/saved_state.hpp"

namespace tpudist {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of a group that are computed at a time: some of them and what is made of them fit in the
// level-2 cache.
constexpr std::int64_t kPartRows = 512;

// Added to the sum of a row's weights, as in the authors' code: large negative keys have weights 0.
constexpr double kWeightEps = 1e-6;

struct LinearAttending {
  const Backend& backend;
  const NodeAttention& attention;
  std::int64_t heads;
};

// body(rows, first) for blocks of the rows begin .. end - 1 of a list.
template <typename Body>
void for_parts(const Tensor& list, std::int64_t begin, std::int64_t end, const Body& body) {
  for (std::int64_t first = begin; first < end; first += kPartRows)
    body(list.narrow(0, first, std::min(kPartRows, end - first)), first);
}

// f(x) = elu(x) + 1 of some rows of a member, and its derivative from f(x).
Tensor positive(const Tensor& x, const Tensor& rows) {
  Tensor chosen = x.index_select(0, rows);
  return at::elu_(chosen).add_(1);
}
Tensor positive_gradient(const Tensor& d_y, const Tensor& y) {
  return d_y * y.clamp_max(1);
}

// [rows, H x A] as [H, rows, A], and back.
Tensor by_heads(const Tensor& x, std::int64_t heads) {
  return x.unflatten(1, {heads, -1}).transpose(0, 1);
}
Tensor by_rows(const Tensor& x) {
  return x.transpose(0, 1).flatten(1);
}

// The sums of a group of a member, which are its row.
Tensor of_group(const Tensor& sums, std::int64_t member, std::int64_t group,
                at::IntArrayRef sizes) {
  return sums[member][group].view(sizes);
}

// The rows before of a member and group, and the sums of a member and group, s [H, A, B] and z [H, A].
// H is 1 where `k` and `v` are those of one head.
struct Before {
  const NodeAttention& attention;
  std::int64_t group, heads;

  template <typename Body>
  void for_rows(const Body& body) const {
    for_parts(attention.before, attention.before_begin[group], attention.before_begin[group + 1],
              body);
  }
  // How many nodes the rows represent, [rows, 1].
  Tensor counts(const Tensor& rows, std::int64_t first) const {
    return attention.weight.narrow(0, first, rows.size(0)).unsqueeze(1);
  }
  void sum(const Tensor& k, const Tensor& v, const Tensor& s, const Tensor& z) const {
    Tensor into_s = s.zero_(), into_z = z.zero_();
    for_rows([&](const Tensor& rows, std::int64_t first) {
      Tensor key = positive(k, rows);
      if (attention.merged) key.mul_(counts(rows, first));
      into_s.baddbmm_(by_heads(key, heads).transpose(1, 2),
                      by_heads(v.index_select(0, rows), heads));
      into_z.add_(key.sum(0).view({heads, -1}));
    });
  }
  // Adds to d_k and d_v, or writes where no other group has these rows.
  void gradients(const Tensor& k, const Tensor& v, const Tensor& d_s, const Tensor& d_z,
                 const Tensor& d_k, const Tensor& d_v) const {
    for_rows([&](const Tensor& rows, std::int64_t first) {
      const Tensor key = positive(k, rows), value = v.index_select(0, rows);
      Tensor of_key =
          by_rows(at::baddbmm(d_z.unsqueeze(1), by_heads(value, heads), d_s.transpose(1, 2)));
      Tensor of_value = by_rows(at::bmm(by_heads(key, heads), d_s));
      if (attention.merged) {
        const Tensor own = counts(rows, first);
        of_key.mul_(own);
        of_value.mul_(own);
      }
      const auto put = [&](const Tensor& to, const Tensor& added) {
        Tensor(to).index_copy_(0, rows, attention.apart ? added : to.index_select(0, rows) + added);
      };
      put(d_k, positive_gradient(of_key, key));
      put(d_v, of_value);
    });
  }
};

class AttendLinearly : public torch::autograd::Function<AttendLinearly> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const LinearAttending& given) {
    keep_state(context, given);
    const auto& [backend, attention, heads] = given;
    const std::int64_t groups = attention.groups();
    Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
    const Tensor s = make_rows(q.size(0), groups, k.size(2) * (v.size(2) / heads), q.options()),
                 z = make_rows(q.size(0), groups, k.size(2), q.options());
    backend.for_tasks(q.size(0) * groups, [&](std::int64_t task) {
      const at::NoGradGuard no_graph;
      const std::int64_t m = task / groups, group = task % groups;
      const Tensor own_s = of_group(s, m, group, {heads, k.size(2) / heads, -1}),
                   own_z = of_group(z, m, group, {heads, -1});
      Before{attention, group, heads}.sum(k[m], v[m], own_s, own_z);
      for_parts(attention.after, attention.after_begin[group], attention.after_begin[group + 1],
                [&](const Tensor& rows, std::int64_t) {
                  const Tensor query = by_heads(positive(q[m], rows), heads);
                  const Tensor weights = at::bmm(query, own_z.unsqueeze(2)).add_(kWeightEps);
                  y[m].index_copy_(0, rows, by_rows(at::bmm(query, own_s).div_(weights)));
                });
    });
    context->save_for_backward({q, k, v, y, s, z});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto& [backend, attention, heads] = kept_state<LinearAttending>(context);
    const variable_list saved = context->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &y = saved[3], &s = saved[4],
                 &z = saved[5];
    const Tensor d_y = as_planes(gradients[0]), d_s = rows_like(s).zero_(),
                 d_z = rows_like(z).zero_();
    Tensor d_q = rows_like(q), d_k = rows_like(k).zero_(), d_v = rows_like(v).zero_();
    const std::int64_t groups = attention.groups();
    backend.for_tasks(q.size(0) * groups, [&](std::int64_t task) {
      const at::NoGradGuard no_graph;
      const std::int64_t m = task / groups, group = task % groups;
      const Tensor own_s = of_group(s, m, group, {heads, k.size(2) / heads, -1}),
                   own_z = of_group(z, m, group, {heads, -1});
      const Tensor own_d_s = of_group(d_s, m, group, own_s.sizes()),
                   own_d_z = of_group(d_z, m, group, own_z.sizes()), column = own_d_z.unsqueeze(2);
      for_parts(attention.after, attention.after_begin[group], attention.after_begin[group + 1],
                [&](const Tensor& rows, std::int64_t) {
                  const Tensor flat = positive(q[m], rows), query = by_heads(flat, heads),
                               weights = at::bmm(query, own_z.unsqueeze(2)).add_(kWeightEps),
                               d_sum = by_heads(d_y[m].index_select(0, rows), heads) / weights,
                               d_weights = (d_sum * by_heads(y[m].index_select(0, rows), heads))
                                               .sum(2, true)
                                               .neg_();
                  const Tensor d_query =
                      at::baddbmm(d_weights * own_z.unsqueeze(1), d_sum, own_s.transpose(1, 2));
                  d_q[m].index_copy_(0, rows, positive_gradient(by_rows(d_query), flat));
                  own_d_s.baddbmm_(query.transpose(1, 2), d_sum);
                  column.baddbmm_(query.transpose(1, 2), d_weights);
                });
      if (attention.apart)
        Before{attention, group, heads}.gradients(k[m], v[m], own_d_s, own_d_z, d_k[m], d_v[m]);
    });
    if (!attention.apart) {
      // Groups share rows before the layer, so that they are added one after another.
      backend.for_tasks(q.size(0) * heads, [&](std::int64_t task) {
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
    return {d_q, d_k, d_v, {}};
  }
};

}  // namespace

Tensor attend_linearly(const Tensor& q, const Tensor& k, const Tensor& v,
                       const NodeAttention& attention, std::int64_t heads, const Backend& backend) {
  return AttendLinearly::apply(as_planes(q), as_planes(k), as_planes(v),
                               LinearAttending{backend, attention, heads});
}

}  // namespace tpudist
