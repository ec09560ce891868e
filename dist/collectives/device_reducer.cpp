#include "dist/collectives/device_reducer.hpp"

#include <bit>
#include <span>

#include "dist/collectives/reduction_tree.hpp"

namespace tpudist {

DeviceReducer::DeviceReducer(Communicator& world, Communicator* nccl, ReducingDevice& device,
                             Order order, std::int64_t length, std::int64_t value_at)
    : world_(world),
      nccl_(nccl),
      device_(device),
      order_(order),
      rank_(world.rank()),
      ranks_(world.size()),
      length_(length),
      value_at_(value_at),
      slice_(slice_of(length, ranks_)),
      ledger_(rank_, ranks_, length),
      plan_(device),
      sent_(device),
      leaves_(device),
      sums_(device),
      gathered_(device),
      result_(device) {}

void DeviceReducer::begin(const LeafOwners& owners) {
  ledger_.begin(owners);
  row_.assign(owners.owner.size(), -1);
  value_.assign(owners.owner.size(), 0.0f);
}

void DeviceReducer::add(int member, int leaf, int row, float value) {
  ledger_.claim(member, leaf, static_cast<std::size_t>(length_));
  const std::size_t i = static_cast<std::size_t>(member) * ledger_.owners().leaves + leaf;
  row_[i] = row;
  value_[i] = value;
}

const float* DeviceReducer::finalize(float* rows) {
  ledger_.end_on_all_ranks(world_);
  const int members = ledger_.owners().members;
  if (members * length_ == 0) return nullptr;
  place_leaves();
  // One copy uploads the own rows, their values and the additions.
  std::vector<std::int32_t> plan;
  const auto own = static_cast<std::size_t>(own_leaves());
  for (const std::int32_t row : row_) {
    if (row >= 0) plan.push_back(row);
  }
  for (std::size_t i = 0; i < row_.size(); ++i) {
    if (row_[i] >= 0) plan.push_back(std::bit_cast<std::int32_t>(value_[i]));
  }
  const std::vector<std::int32_t> additions = this->additions();
  plan.insert(plan.end(), additions.begin(), additions.end());
  std::int32_t* const row_of = plan_.get(std::ssize(plan));
  device_.upload(plan.data(), plan.size() * sizeof(std::int32_t), row_of);
  const std::int32_t* const values = row_of + own;

  device_.put_values(own_leaves(), row_of, reinterpret_cast<const float*>(values), length_,
                     value_at_, rows);
  float* const sums = result_.get(members * length_);
  if (ranks_ > 1 && order_ == Order::tree) {
    exchange(row_of, values + own, rows, sums);
    return sums;
  }
  device_.add_leaves(members, length_, values + own, rows, sums);
  if (ranks_ > 1) {
    const std::span<float> all(sums, static_cast<std::size_t>(members * length_));
    nccl_->all_reduce(all, ReduceOp::sum);
    // A ring sends every element except the rank's own slice, twice.
    bytes_sent_ += static_cast<std::int64_t>(all.size_bytes()) * 2 / ranks_ * (ranks_ - 1);
  }
  return sums;
}

void DeviceReducer::exchange(const std::int32_t* row_of, const std::int32_t* plan,
                             const float* rows, float* sums) {
  const int members = ledger_.owners().members;
  const std::int64_t own = own_leaves();
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::vector<std::int64_t> sent(ranks, own * slice_), summed(ranks, members * slice_);
  std::vector<std::int64_t> received;
  for (int rank = 0; rank < ranks_; ++rank)
    received.push_back((first_slot_[rank + 1] - first_slot_[rank]) * slice_);
  const auto take = [](GrowingArray<float>& array, std::int64_t count) {
    return std::span<float>(array.get(count), static_cast<std::size_t>(count));
  };
  const std::span<float> slices = take(sent_, own * ranks_ * slice_);
  device_.rows_to_slices(own, length_, ranks_, slice_, row_of, rows, slices.data());
  const std::span<float> leaves = take(leaves_, first_slot_[ranks_] * slice_);
  nccl_->all_to_all(std::span<const float>(slices), sent, leaves, received);
  const std::span<float> part = take(sums_, members * slice_);
  device_.add_leaves(members, slice_, plan, leaves.data(), part.data());
  const std::span<float> all = take(gathered_, members * ranks_ * slice_);
  nccl_->all_gather(std::span<const float>(part), all, summed);
  device_.slices_to_rows(members, length_, slice_, all.data(), sums);
  bytes_sent_ += (own + members) * slice_ * (ranks_ - 1) * static_cast<std::int64_t>(sizeof(float));
}

void DeviceReducer::place_leaves() {
  const std::vector<int>& owner = ledger_.owners().owner;
  first_slot_.assign(static_cast<std::size_t>(ranks_) + 1, 0);
  for (const int rank : owner) {
    if (rank >= 0) ++first_slot_[static_cast<std::size_t>(rank) + 1];
  }
  for (int rank = 0; rank < ranks_; ++rank) first_slot_[rank + 1] += first_slot_[rank];
  std::vector<std::int64_t> next = first_slot_;
  slot_.assign(owner.size(), -1);
  for (std::size_t i = 0; i < owner.size(); ++i) {
    if (owner[i] >= 0) slot_[i] = static_cast<std::int32_t>(next[owner[i]]++);
  }
}

// The plan of launch_leaf_sums over the slots of all ranks, or over the own rows in place.
std::vector<std::int32_t> DeviceReducer::additions() const {
  const LeafOwners& owners = ledger_.owners();
  const bool exchanges = ranks_ > 1 && order_ == Order::tree;
  const std::vector<std::int32_t>& place = exchanges ? slot_ : row_;
  const auto members = static_cast<std::size_t>(owners.members);
  std::vector<std::int32_t> begin(members + 1), sum(members, -1), pairs;
  const auto add = [&](int member, std::int32_t left, std::int32_t right) {
    pairs.push_back(left);
    pairs.push_back(right);
    ++begin[static_cast<std::size_t>(member) + 1];
  };
  if (order_ == Order::tree) {
    const ReductionTree tree = make_reduction_tree(owners, ranks_);
    std::vector<std::int32_t> of_node(tree.nodes.size());
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (place[i] >= 0) of_node[tree.leaf_node[i]] = place[i];
    }
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const ReductionTree::Node& node = tree.nodes[i];
      if (node.left == ReductionTree::none) continue;
      of_node[i] = of_node[node.left];
      add(node.member, of_node[node.left], of_node[node.right]);
    }
    for (std::size_t m = 0; m < members; ++m)
      if (tree.root[m] != ReductionTree::none) sum[m] = of_node[tree.root[m]];
  } else {
    for (std::size_t i = 0; i < place.size(); ++i) {
      const std::size_t m = i / static_cast<std::size_t>(owners.leaves);
      if (place[i] < 0) continue;
      if (sum[m] >= 0) add(static_cast<int>(m), sum[m], place[i]);
      if (sum[m] < 0) sum[m] = place[i];
    }
  }
  for (std::size_t m = 0; m < members; ++m) begin[m + 1] += begin[m];
  begin.insert(begin.end(), sum.begin(), sum.end());
  begin.insert(begin.end(), pairs.begin(), pairs.end());
  return begin;
}

}  // namespace tpudist
