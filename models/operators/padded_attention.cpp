#include "models/operators/padded_attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tpudist {
namespace {

using at::Tensor;
using Gradients = std::array<Tensor, 3>;

// Some groups' rows, side by side: `most` places for each group, of which its rows take the first.
class PaddedRows {
 public:
  // `list` [..] names the rows of all groups, `places` [..] their places among those of all groups.
  PaddedRows(const Tensor& list, const Tensor& places, const std::vector<std::int64_t>& begin,
             std::int64_t most, std::int64_t first, std::int64_t groups)
      : groups_(groups),
        most_(most),
        begin_(begin[first]),
        count_(begin[first + groups] - begin_),
        rows_(list.narrow(0, begin_, count_)),
        places_(places.narrow(0, begin_, count_) - first * most),
        padded_(at::zeros({groups * most}, list.options()).index_copy_(0, places_, rows_)) {}

  // One number for each row, [groups, most, 1], and 0 where there is none. `values` [..] as the list.
  Tensor values(const Tensor& values) const {
    return at::zeros({groups_ * most_}, values.options())
        .index_copy_(0, places_, values.narrow(0, begin_, count_))
        .view({groups_, most_, 1});
  }
  // 1 for each row, [groups, most, 1], and 0 where there is none.
  Tensor present(const Tensor& like) const {
    return at::zeros({groups_ * most_}, like.options())
        .index_fill_(0, places_, 1)
        .view({groups_, most_, 1});
  }
  // x [rows, C] as [groups, most, C]; where there is no row, that of another one.
  Tensor of(const Tensor& x) const {
    return x.index_select(0, padded_).view({groups_, most_, x.size(1)});
  }
  // to[row] = x or, where groups share rows, += x in the order of the groups; x [groups, most, C].
  void put(Tensor to, const Tensor& x, bool apart) const {
    const Tensor own = x.reshape({groups_ * most_, x.size(2)}).index_select(0, places_);
    if (apart) {
      to.index_copy_(0, rows_, own);
    } else {
      to.index_put_({rows_}, own, /*accumulate=*/true);  // sorts the rows, and keeps their order
    }
  }

 private:
  std::int64_t groups_, most_, begin_, count_;
  Tensor rows_, places_, padded_;
};

// [groups, most, H x A] as [groups x H, most, A], and back.
Tensor by_heads(const Tensor& x, std::int64_t heads) {
  return x.unflatten(2, {heads, -1}).transpose(1, 2).flatten(0, 1);
}
Tensor side_by_side(const Tensor& x, std::int64_t heads) {
  return x.unflatten(0, {-1, heads}).transpose(1, 2).flatten(2);
}

// body(before, after, first group, groups) for the groups of the attention, some at a time.
template <typename Body>
void for_chunks(const NodeAttention& attention, std::int64_t floats_of_group, const Body& body) {
  const std::int64_t all = attention.groups(),
                     together = std::max<std::int64_t>(
                         1, attention.padded_floats / std::max<std::int64_t>(1, floats_of_group));
  for (std::int64_t first = 0; first < all; first += together) {
    const std::int64_t groups = std::min(together, all - first);
    const PaddedRows before(attention.before, attention.before_place, attention.before_begin,
                            attention.most_before, first, groups),
        after(attention.after, attention.after_place, attention.after_begin, attention.most_after,
              first, groups);
    body(before, after, first, groups);
  }
}

std::int64_t shares_of_group(const NodeAttention& attention, std::int64_t heads) {
  return attention.most_after * attention.most_before * heads;
}

// The shares of all heads, made of w_ij of some groups, [groups, 1, most after, most before].
class Shares {
 public:
  Shares(const NodeAttention& attention, const PaddedRows& before, const PaddedRows& after,
         std::int64_t first, std::int64_t groups)
      : after_(after.present(attention.weight)),
        none_after_((after_ == 0).unsqueeze(1)),
        none_before_((before.present(attention.weight) == 0).view({groups, 1, 1, -1})) {
    const std::int64_t size = attention.most_after * attention.most_before,
                       from = attention.pair_begin[first],
                       pairs = attention.pair_begin[first + groups] - from;
    weights_ = before.values(attention.weight)
                   .transpose(1, 2)
                   .expand({groups, attention.most_after, attention.most_before})
                   .contiguous();
    if (pairs > 0) {  // each names another place
      const Tensor places = attention.pair_place.narrow(0, from, pairs) - first * size;
      Tensor flat = weights_.view(-1);
      flat.index_copy_(0, places,
                       flat.index_select(0, places) + attention.added.narrow(0, from, pairs));
    }
    weights_ = weights_.unsqueeze(1);
  }

  // [groups x H, most after, most before], 0 for rows that are not there.
  Tensor of(const Tensor& q, const Tensor& k) const {
    Tensor logits = at::bmm(q, k.transpose(1, 2)).div_(std::sqrt(static_cast<double>(q.size(2))));
    logits = logits.unflatten(0, {weights_.size(0), -1})
                 .masked_fill_(none_before_, -std::numeric_limits<double>::infinity());
    const Tensor powers = logits.sub_(logits.amax({3}, true)).exp_().mul_(weights_);
    return (powers / powers.sum(3, true)).masked_fill_(none_after_, 0).flatten(0, 1);
  }
  // 1 for each row after, [groups, most after, 1].
  const Tensor& after() const { return after_; }

 private:
  Tensor after_, none_after_, none_before_, weights_;
};

// The sums of some groups of a member: `key` [groups x H, most before, A], with the nodes that each row
// represents, `s` [groups x H, A, B] and `z` [groups x H, A, 1].
struct Sums {
  Sums(const Tensor& k, const Tensor& v, const Tensor& counts, const PaddedRows& before,
       std::int64_t heads)
      : key(by_heads(before.of(k), heads)), value(by_heads(before.of(v), heads)) {
    const Tensor counted = by_heads(before.of(k) * counts, heads);
    s = at::bmm(counted.transpose(1, 2), value);
    z = counted.sum(1).unsqueeze(2);
  }
  Tensor key, value, s, z;
};

// Added to the sum of a row's weights, as in attend_linearly.cpp.
Tensor weights_of(const Tensor& query, const Sums& sums) {
  return at::bmm(query, sums.z).add_(kLinearWeightEps);
}

std::int64_t rows_of_group(const NodeAttention& attention, const Tensor& q, const Tensor& v) {
  return std::max(attention.most_after, attention.most_before) * std::max(q.size(2), v.size(2));
}

}  // namespace

bool fits_padded(const NodeAttention& attention, std::int64_t heads) {
  return shares_of_group(attention, heads) <= attention.padded_floats;
}

Tensor attend_padded(const Tensor& q, const Tensor& k, const Tensor& v,
                     const NodeAttention& attention, std::int64_t heads) {
  const Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
  for_chunks(attention, shares_of_group(attention, heads),
             [&](const PaddedRows& before, const PaddedRows& after, std::int64_t first,
                 std::int64_t groups) {
               const Shares shares(attention, before, after, first, groups);
               for (std::int64_t m = 0; m < q.size(0); ++m) {
                 const Tensor own =
                     shares.of(by_heads(after.of(q[m]), heads), by_heads(before.of(k[m]), heads));
                 after.put(y[m],
                           side_by_side(at::bmm(own, by_heads(before.of(v[m]), heads)), heads),
                           true);
               }
             });
  return y;
}

Gradients attend_padded_gradients(const Tensor& q, const Tensor& k, const Tensor& v,
                                  const Tensor& y, const Tensor& d_y,
                                  const NodeAttention& attention, std::int64_t heads) {
  Gradients d{rows_like(q), rows_like(k).zero_(), rows_like(v).zero_()};
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(2) / heads));
  for_chunks(attention, shares_of_group(attention, heads),
             [&](const PaddedRows& before, const PaddedRows& after, std::int64_t first,
                 std::int64_t groups) {
               const Shares shares(attention, before, after, first, groups);
               for (std::int64_t m = 0; m < q.size(0); ++m) {
                 const Tensor query = by_heads(after.of(q[m]), heads),
                              key = by_heads(before.of(k[m]), heads),
                              value = by_heads(before.of(v[m]), heads),
                              d_own = by_heads(after.of(d_y[m]) * shares.after(), heads),
                              own = shares.of(query, key);
                 const Tensor along = (d_own * by_heads(after.of(y[m]), heads)).sum(2, true);
                 const Tensor d_logits =
                     at::bmm(d_own, value.transpose(1, 2)).sub_(along).mul_(own).mul_(scale);
                 after.put(d[0][m], side_by_side(at::bmm(d_logits, key), heads), true);
                 before.put(d[1][m], side_by_side(at::bmm(d_logits.transpose(1, 2), query), heads),
                            attention.apart);
                 before.put(d[2][m], side_by_side(at::bmm(own.transpose(1, 2), d_own), heads),
                            attention.apart);
               }
             });
  return d;
}

Tensor attend_linearly_padded(const Tensor& q, const Tensor& k, const Tensor& v,
                              const NodeAttention& attention, std::int64_t heads) {
  const Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
  for_chunks(
      attention, rows_of_group(attention, q, v),
      [&](const PaddedRows& before, const PaddedRows& after, std::int64_t, std::int64_t) {
        const Tensor counts = before.values(attention.weight);
        for (std::int64_t m = 0; m < q.size(0); ++m) {
          const Sums sums(k[m], v[m], counts, before, heads);
          const Tensor query = by_heads(after.of(q[m]), heads);
          after.put(y[m], side_by_side(at::bmm(query, sums.s).div_(weights_of(query, sums)), heads),
                    true);
        }
      });
  return y;
}

Gradients attend_linearly_padded_gradients(const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Tensor& y, const Tensor& d_y,
                                           const NodeAttention& attention, std::int64_t heads) {
  Gradients d{rows_like(q), rows_like(k).zero_(), rows_like(v).zero_()};
  for_chunks(
      attention, rows_of_group(attention, q, v),
      [&](const PaddedRows& before, const PaddedRows& after, std::int64_t, std::int64_t groups) {
        const Tensor counts = before.values(attention.weight), present = after.present(q);
        const auto counted = [&](const Tensor& x) {
          return (x.unflatten(0, {groups, heads}) * counts.unsqueeze(1)).flatten(0, 1);
        };
        for (std::int64_t m = 0; m < q.size(0); ++m) {
          const Sums sums(k[m], v[m], counts, before, heads);
          const Tensor query = by_heads(after.of(q[m]), heads),
                       d_sum =
                           by_heads(after.of(d_y[m]) * present, heads) / weights_of(query, sums),
                       d_weights = (d_sum * by_heads(after.of(y[m]), heads)).sum(2, true).neg_();
          const Tensor d_query = at::bmm(d_sum, sums.s.transpose(1, 2))
                                     .add_(at::bmm(d_weights, sums.z.transpose(1, 2)));
          after.put(d[0][m], side_by_side(d_query.mul_(query.clamp_max(1)), heads), true);
          const Tensor d_s = at::bmm(query.transpose(1, 2), d_sum),
                       d_z = at::bmm(query.transpose(1, 2), d_weights);
          const Tensor of_key = at::bmm(sums.value, d_s.transpose(1, 2)).add_(d_z.transpose(1, 2));
          before.put(d[1][m], side_by_side(counted(of_key).mul_(sums.key.clamp_max(1)), heads),
                     attention.apart);
          before.put(d[2][m], side_by_side(counted(at::bmm(sums.key, d_s)), heads),
                     attention.apart);
        }
      });
  return d;
}

}  // namespace tpudist
