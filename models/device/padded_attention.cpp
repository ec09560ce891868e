#include "models/device/device_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tpudist {
namespace {

using at::Tensor;
using Gradients = std::array<Tensor, 3>;

// What one operation computes: some groups, and of each the `rows` rows after from `row` on. With
// several groups these are all their rows.
struct Chunk {
  std::int64_t first, groups, row, rows;
};

// The rows of some groups, padded: `most` places for each group, of which its rows fill the first.
class PaddedRows {
 public:
  // `list` [..]: the rows of all groups. `places` [..]: their places, with `most_of_all` for each
  // group.
  PaddedRows(const Tensor& list, const Tensor& places, const std::vector<std::int64_t>& begin,
             std::int64_t most_of_all, const Chunk& chunk)
      : groups_(chunk.groups),
        most_(chunk.rows),
        begin_(std::min(begin[chunk.first] + chunk.row, begin[chunk.first + groups_])),
        count_(std::min(begin[chunk.first + groups_] - begin_, groups_ * most_)),
        rows_(list.narrow(0, begin_, count_)),
        places_(places.narrow(0, begin_, count_) - (chunk.first * most_of_all + chunk.row)),
        padded_(at::zeros({groups_ * most_}, list.options()).index_copy_(0, places_, rows_)) {}

  bool is_empty() const { return count_ == 0; }
  // `values` [..], one for each row of the list, as [groups, most, 1]; 0 at places without a row.
  Tensor values(const Tensor& values) const {
    return at::zeros({groups_ * most_}, values.options())
        .index_copy_(0, places_, values.narrow(0, begin_, count_))
        .view({groups_, most_, 1});
  }
  // [groups, most, 1]: 1 at each place with a row, 0 at the others.
  Tensor present(const Tensor& like) const {
    return at::zeros({groups_ * most_}, like.options())
        .index_fill_(0, places_, 1)
        .view({groups_, most_, 1});
  }
  // x [rows, C] as [groups, most, C]; places without a row hold another row.
  Tensor of(const Tensor& x) const {
    return x.index_select(0, padded_).view({groups_, most_, x.size(1)});
  }
  // to[row] = x or, if groups share rows, += x in the order of the groups; x [groups, most, C].
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

// Calls body(before, after, chunk) for all groups of the attention. A group makes `floats_of_row`
// numbers for each of its `rows` rows.
template <typename Body>
void for_chunks(const NodeAttention& attention, std::int64_t rows, std::int64_t floats_of_row,
                bool cuts_groups, const Body& body) {
  const std::int64_t all = attention.groups(), most = attention.most_after,
                     room = attention.padded_floats / std::max<std::int64_t>(1, floats_of_row),
                     together = std::max<std::int64_t>(1, room / std::max<std::int64_t>(1, rows)),
                     cut = cuts_groups && together == 1 ? std::clamp<std::int64_t>(room, 1, most)
                                                        : most;
  for (std::int64_t first = 0; first < all; first += together) {
    const std::int64_t groups = std::min(together, all - first);
    const PaddedRows before(attention.before, attention.before_place, attention.before_begin,
                            attention.most_before, {first, groups, 0, attention.most_before});
    for (std::int64_t row = 0; row < most; row += cut) {
      const Chunk chunk{first, groups, row, std::min(cut, most - row)};
      const PaddedRows after(attention.after, attention.after_place, attention.after_begin, most,
                             chunk);
      if (!after.is_empty()) body(before, after, chunk);
    }
  }
}

// The shares of all heads, made of w_ij of some groups, [groups, 1, most after, most before].
class Shares {
 public:
  Shares(const NodeAttention& attention, const PaddedRows& before, const PaddedRows& after,
         const Chunk& chunk)
      : after_(after.present(attention.weight)),
        none_after_((after_ == 0).unsqueeze(1)),
        none_before_((before.present(attention.weight) == 0).view({chunk.groups, 1, 1, -1})) {
    weights_ = before.values(attention.weight)
                   .transpose(1, 2)
                   .expand({chunk.groups, chunk.rows, attention.most_before})
                   .contiguous();
    const auto& rows = attention.rows_of_pairs;
    const auto begin = rows.begin() + attention.pair_begin[chunk.first],
               end = rows.begin() + attention.pair_begin[chunk.first + chunk.groups];
    const bool whole = chunk.groups > 1;  // else the rows of its pairs ascend
    const std::int64_t from =
                           (whole ? begin : std::lower_bound(begin, end, chunk.row)) - rows.begin(),
                       pairs =
                           (whole ? end : std::lower_bound(begin, end, chunk.row + chunk.rows)) -
                           rows.begin() - from;
    if (pairs > 0) {  // no place is named twice
      const Tensor places =
          attention.pair_place.narrow(0, from, pairs) -
          (chunk.first * attention.most_after + chunk.row) * attention.most_before;
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

// The sums over some groups of a member: `key` [groups x H, most before, A], whose rows count as
// often as they represent nodes, `s` [groups x H, A, B] and `z` [groups x H, A, 1].
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

Tensor weights_of(const Tensor& query, const Sums& sums) {
  return at::bmm(query, sums.z).add_(kLinearWeightEps);
}

// for_chunks for linear attention: `s` counts as further rows of a group.
template <typename Body>
void for_linear_chunks(const NodeAttention& attention, const Tensor& q, const Tensor& v,
                       std::int64_t heads, const Body& body) {
  const std::int64_t channels = std::max(q.size(2), v.size(2));
  for_chunks(attention, std::max(attention.most_after, attention.most_before) + v.size(2) / heads,
             channels, false, body);
}

}  // namespace

Tensor attend_padded(const Tensor& q, const Tensor& k, const Tensor& v,
                     const NodeAttention& attention, std::int64_t heads) {
  const Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
  for_chunks(attention, attention.most_after, attention.most_before * heads, true,
             [&](const PaddedRows& before, const PaddedRows& after, const Chunk& chunk) {
               const Shares shares(attention, before, after, chunk);
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

Gradients attend_padded_gradient(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y,
                                 const Tensor& d_y, const NodeAttention& attention,
                                 std::int64_t heads) {
  Gradients d{rows_like(q), rows_like(k).zero_(), rows_like(v).zero_()};
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(2) / heads));
  for_chunks(
      attention, attention.most_after, attention.most_before * heads, true,
      [&](const PaddedRows& before, const PaddedRows& after, const Chunk& chunk) {
        const Shares shares(attention, before, after, chunk);
        const bool apart = attention.apart && chunk.rows == attention.most_after;
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
          before.put(d[1][m], side_by_side(at::bmm(d_logits.transpose(1, 2), query), heads), apart);
          before.put(d[2][m], side_by_side(at::bmm(own.transpose(1, 2), d_own), heads), apart);
        }
      });
  return d;
}

Tensor attend_linearly_padded(const Tensor& q, const Tensor& k, const Tensor& v,
                              const NodeAttention& attention, std::int64_t heads) {
  const Tensor y = make_rows(q.size(0), q.size(1), v.size(2), q.options());
  for_linear_chunks(
      attention, q, v, heads, [&](const PaddedRows& before, const PaddedRows& after, const Chunk&) {
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

Gradients attend_linearly_padded_gradient(const Tensor& q, const Tensor& k, const Tensor& v,
                                          const Tensor& y, const Tensor& d_y,
                                          const NodeAttention& attention, std::int64_t heads) {
  Gradients d{rows_like(q), rows_like(k).zero_(), rows_like(v).zero_()};
  for_linear_chunks(
      attention, q, v, heads,
      [&](const PaddedRows& before, const PaddedRows& after, const Chunk& chunk) {
        const Tensor counts = before.values(attention.weight), present = after.present(q);
        const auto counted = [&](const Tensor& x) {
          return (x.unflatten(0, {chunk.groups, heads}) * counts.unsqueeze(1)).flatten(0, 1);
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
