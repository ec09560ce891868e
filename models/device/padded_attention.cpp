#include "models/device/device_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

using at::Tensor;
using Gradients = std::array<Tensor, 3>;

// Places of a group are a multiple of this, so that kernels may take several numbers at a time.
constexpr std::int64_t kPlaces = 8;
// Most matrices of one launch: one for each group, head and member.
constexpr std::int64_t kMostMatrices = 65'535;

// What one operation computes: some groups, and of each the `rows` rows after from `row` on. With
// several groups these are all their rows.
struct Chunk {
  std::int64_t first, groups, row, rows;
};

// Rows of the groups of a chunk, padded: `most` places for each group, of which its rows fill the
// first. The others hold the group's last row, or without rows any.
class PaddedRows {
 public:
  PaddedRows(const GroupedRows& list, std::int64_t row, std::int64_t most, const Chunk& chunk,
             std::int64_t heads)
      : groups_(chunk.groups),
        most_(most),
        heads_(heads),
        begin_(list.begin[chunk.first] + row),
        count_(std::min(list.begin[chunk.first + groups_] - begin_, groups_ * most_)) {
    const Tensor end = list.begins.narrow(0, chunk.first + 1, groups_).unsqueeze(1);
    const Tensor all = list.begins.narrow(0, chunk.first, groups_).unsqueeze(1) +
                       at::arange(row, row + most_, list.begins.options());
    present_ = all < end;
    from_ = at::minimum(all, end - 1).clamp_min_(0).flatten();
    rows_ = list.rows.index_select(0, from_);
    places_ =
        at::add(list.place.narrow(0, begin_, count_), list.group.narrow(0, begin_, count_), most_)
            .sub_(chunk.first * most_ + row);
  }

  // Whether there is a row, [groups, most].
  const Tensor& present() const { return present_; }
  // `values` [..], one for each row of the list, as [groups, most]; 0 at places without a row.
  Tensor values(const Tensor& values) const {
    return values.index_select(0, from_).view({groups_, most_}) * present_;
  }
  // Rows of x [M, rows, C], those of each group and head: [M x groups x H, most, A].
  Tensor of(const Tensor& x) const {
    return x.index_select(1, rows_)
        .view({x.size(0), groups_, most_, heads_, -1})
        .transpose(2, 3)
        .flatten(0, 2);
  }
  // The same times a number for each place, [groups, most].
  Tensor scaled(const Tensor& x, const Tensor& factors) const {
    return (x.view({-1, groups_, heads_, most_, x.size(2)}) * factors.view({groups_, 1, most_, 1}))
        .flatten(0, 2);
  }
  // Adds x, as of() returns it, to its rows of the list, to [M, .., C].
  void add(const Tensor& to, const Tensor& x) const {
    const Tensor own = x.view({to.size(0), groups_, heads_, most_, -1})
                           .transpose(2, 3)
                           .reshape({to.size(0), groups_ * most_, -1});
    to.narrow(1, begin_, count_).add_(own.index_select(1, places_));
  }

 private:
  std::int64_t groups_, most_, heads_, begin_, count_;
  Tensor present_, from_, rows_, places_;
};

// a b of matrices [.., n, k] and [.., k, m]. Each number is one sum in the order of k.
Tensor product(const Tensor& a, const Tensor& b) {
  const Tensor y = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  if (y.scalar_type() == at::kDouble) {
    const auto strided = [](const Tensor& x) {
      return StridedPlanes{planes_of<double>(x), x.stride(1), x.stride(2)};
    };
    launch_double_product(a.size(1), a.size(2), columns_of(y), strided(a), strided(b),
                          mutable_planes_of<double>(y), stream_of(y));
    return y;
  }
  const Tensor left = a.transpose(1, 2).contiguous(), right = b.contiguous();
  launch_weight_gradient({a.size(2), a.size(1), b.size(2), false, true}, 1, a.size(0), {},
                         planes_of<float>(left), planes_of<float>(right),
                         mutable_planes_of<float>(y), {}, stream_of(y));
  return y;
}
// The sums over the last dimension, [.., n, 1], in its order.
Tensor sums_of(const Tensor& x) {
  return product(x, at::ones({1, x.size(2), 1}, x.options()).expand({x.size(0), -1, -1}));
}

// Calls body(before, after, chunk) for all groups of the attention. floats(after, before): how many
// numbers a group of so many places makes for a member. If one alone makes too many, its rows after
// are cut if `cuts`.
template <typename Floats, typename Body>
void for_chunks(const NodeAttention& attention, std::int64_t members, std::int64_t heads, bool cuts,
                const Floats& floats, const Body& body) {
  const auto places_of = [](const GroupedRows& list, std::int64_t group) {
    return (std::max<std::int64_t>(1, list.count(group)) + kPlaces - 1) / kPlaces * kPlaces;
  };
  for (std::int64_t first = 0, groups; first < attention.groups(); first += groups) {
    std::int64_t most_after = 0, most_before = 0;
    for (groups = 0; first + groups < attention.groups(); ++groups) {
      const std::int64_t after = std::max(most_after, places_of(attention.after, first + groups)),
                         before =
                             std::max(most_before, places_of(attention.before, first + groups)),
                         matrices = (groups + 1) * members;
      if (groups > 0 && (matrices * floats(after, before) > attention.padded_floats ||
                         matrices * heads > kMostMatrices))
        break;
      most_after = after;
      most_before = before;
    }
    // The cut depends on the group alone.
    std::int64_t cut = most_after;
    if (cuts && groups == 1 && floats(most_after, most_before) > attention.padded_floats) {
      cut = std::max<std::int64_t>(1, attention.padded_floats / floats(1, most_before));
      if (cut > kPlaces) cut = cut / kPlaces * kPlaces;
    }
    const std::int64_t rows = groups == 1 ? attention.after.count(first) : 1;
    for (std::int64_t row = 0; row < rows; row += cut) {
      const Chunk chunk{first, groups, row, cut};
      body(PaddedRows(attention.before, 0, most_before, chunk, heads),
           PaddedRows(attention.after, row, cut, chunk, heads), chunk);
    }
  }
}
// For shares: of each pair of rows and head.
template <typename Body>
void for_share_chunks(const NodeAttention& attention, std::int64_t members, std::int64_t heads,
                      const Body& body) {
  for_chunks(
      attention, members, heads, true,
      [heads](std::int64_t after, std::int64_t before) { return heads * after * before; }, body);
}
// For linear attention: `s` counts as further rows of a group.
template <typename Body>
void for_linear_chunks(const NodeAttention& attention, const Tensor& q, const Tensor& v,
                       std::int64_t heads, const Body& body) {
  const std::int64_t channels = std::max(q.size(2), v.size(2)), more = v.size(2) / heads;
  for_chunks(
      attention, q.size(0), heads, false,
      [=](std::int64_t after, std::int64_t before) {
        return (std::max(after, before) + more) * channels;
      },
      body);
}

// The shares of all heads and members, made of w_ij of some groups, [groups, 1, after, before].
class Shares {
 public:
  Shares(const NodeAttention& attention, const PaddedRows& before, const Chunk& chunk)
      : none_before_(before.present().logical_not().view({chunk.groups, 1, 1, -1})) {
    const std::int64_t rows = chunk.rows, columns = before.present().size(1);
    weights_ = before.values(attention.weight)
                   .unsqueeze(1)
                   .expand({chunk.groups, rows, columns})
                   .contiguous();
    const auto& of_pairs = attention.rows_of_pairs;
    const auto begin = of_pairs.begin() + attention.pair_begin[chunk.first],
               end = of_pairs.begin() + attention.pair_begin[chunk.first + chunk.groups];
    const bool whole = chunk.groups > 1;  // else the rows of its pairs ascend
    const auto bound = [&](std::int64_t row) { return std::lower_bound(begin, end, row); };
    const std::int64_t from = (whole ? begin : bound(chunk.row)) - of_pairs.begin(),
                       pairs = (whole ? end : bound(chunk.row + rows)) - of_pairs.begin() - from;
    if (pairs > 0) {  // no place is named twice
      const auto own = [&](const Tensor& x) { return x.narrow(0, from, pairs); };
      const Tensor places = at::add(own(attention.pair_column), own(attention.pair_row), columns)
                                .add_(own(attention.pair_group), rows * columns)
                                .sub_((chunk.first * rows + chunk.row) * columns);
      Tensor flat = weights_.view(-1);
      flat.index_copy_(0, places, flat.index_select(0, places) + own(attention.added));
    }
    weights_ = weights_.unsqueeze(1);
  }

  // Of q and k as PaddedRows::of returns them, [.., after, before]; 0 for rows before that are not
  // there.
  Tensor of(const Tensor& q, const Tensor& k, std::int64_t heads) const {
    const Tensor logits =
        product(q, k.transpose(1, 2)).div_(std::sqrt(static_cast<double>(q.size(2))));
    const Tensor of_groups = logits.view({-1, weights_.size(0), heads, q.size(1), k.size(1)});
    of_groups.masked_fill_(none_before_, -std::numeric_limits<double>::infinity());
    Tensor powers = logits - logits.amax({2}, true);
    exponentiate(powers);
    powers.view(of_groups.sizes()).mul_(weights_);
    return powers.div_(sums_of(powers));
  }

 private:
  Tensor none_before_, weights_;
};

// The sums over some groups: `key` [.., before, A], whose rows count as often as they represent
// nodes, `s` [.., A, B] and `z` [.., A, 1].
struct Sums {
  Sums(const Tensor& k, const Tensor& v, const Tensor& counts, const PaddedRows& before)
      : key(before.of(k)), value(before.of(v)) {
    const Tensor counted = before.scaled(key, counts).transpose(1, 2);
    s = product(counted, value);
    z = sums_of(counted);
  }
  Tensor key, value, s, z;
};

Tensor weights_of(const Tensor& query, const Sums& sums) {
  return product(query, sums.z).add_(kLinearWeightEps);
}

Tensor zeros_of(const GroupedRows& list, const Tensor& x) {
  return rows_like(x, list.rows.size(0)).zero_();
}

Gradients no_gradients(const NodeAttention& attention, const Tensor& q, const Tensor& k,
                       const Tensor& v) {
  return {zeros_of(attention.after, q), zeros_of(attention.before, k),
          zeros_of(attention.before, v)};
}

}  // namespace

Tensor attend_padded(const Tensor& q, const Tensor& k, const Tensor& v,
                     const NodeAttention& attention, std::int64_t heads) {
  const Tensor y = zeros_of(attention.after, v);
  for_share_chunks(attention, q.size(0), heads,
                   [&](const PaddedRows& before, const PaddedRows& after, const Chunk& chunk) {
                     const Shares shares(attention, before, chunk);
                     after.add(y,
                               product(shares.of(after.of(q), before.of(k), heads), before.of(v)));
                   });
  return y;
}

Gradients attend_padded_gradient(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y,
                                 const Tensor& d_y, const NodeAttention& attention,
                                 std::int64_t heads) {
  const Gradients d = no_gradients(attention, q, k, v);
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(2) / heads));
  for_share_chunks(attention, q.size(0), heads,
                   [&](const PaddedRows& before, const PaddedRows& after, const Chunk& chunk) {
                     const Shares shares(attention, before, chunk);
                     const Tensor query = after.of(q), key = before.of(k), value = before.of(v),
                                  d_own = after.scaled(after.of(d_y), after.present()),
                                  own = shares.of(query, key, heads),
                                  along = sums_of(d_own * after.of(y));
                     const Tensor d_logits =
                         product(d_own, value.transpose(1, 2)).sub_(along).mul_(own).mul_(scale);
                     after.add(d[0], product(d_logits, key));
                     before.add(d[1], product(d_logits.transpose(1, 2), query));
                     before.add(d[2], product(own.transpose(1, 2), d_own));
                   });
  return d;
}

Tensor attend_linearly_padded(const Tensor& q, const Tensor& k, const Tensor& v,
                              const NodeAttention& attention, std::int64_t heads) {
  const Tensor y = zeros_of(attention.after, v);
  for_linear_chunks(attention, q, v, heads,
                    [&](const PaddedRows& before, const PaddedRows& after, const Chunk&) {
                      const Sums sums(k, v, before.values(attention.weight), before);
                      const Tensor query = after.of(q);
                      after.add(y, product(query, sums.s).div_(weights_of(query, sums)));
                    });
  return y;
}

Gradients attend_linearly_padded_gradient(const Tensor& q, const Tensor& k, const Tensor& v,
                                          const Tensor& y, const Tensor& d_y,
                                          const NodeAttention& attention, std::int64_t heads) {
  const Gradients d = no_gradients(attention, q, k, v);
  for_linear_chunks(
      attention, q, v, heads, [&](const PaddedRows& before, const PaddedRows& after, const Chunk&) {
        const Tensor counts = before.values(attention.weight);
        const Sums sums(k, v, counts, before);
        const Tensor query = after.of(q),
                     d_sum = after.scaled(after.of(d_y), after.present()) / weights_of(query, sums),
                     d_weights = sums_of(d_sum * after.of(y)).neg_();
        const Tensor d_query =
            product(d_sum, sums.s.transpose(1, 2)).add_(d_weights * sums.z.transpose(1, 2));
        after.add(d[0], d_query.mul_(query.clamp_max(1)));
        const Tensor d_s = product(query.transpose(1, 2), d_sum),
                     d_z = product(query.transpose(1, 2), d_weights);
        const Tensor of_key = product(sums.value, d_s.transpose(1, 2)).add_(d_z.transpose(1, 2));
        before.add(d[1], before.scaled(of_key, counts).mul_(sums.key.clamp_max(1)));
        before.add(d[2], before.scaled(product(sums.key, d_s), counts));
      });
  return d;
}

}  // namespace tpudist
