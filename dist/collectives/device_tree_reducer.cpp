#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/collectives/leaf_ledger.hpp"
#include "dist/collectives/reduction_tree.hpp"
#include "dist/collectives/row_math.hpp"

#ifndef TPUDIST_NO_CUDA
#include "dist/collectives/cuda_check.hpp"
#endif

namespace tpudist {

#ifdef TPUDIST_NO_CUDA

std::unique_ptr<GradientReducer> make_device_tree_reducer(const ReducingDevices&, std::int64_t,
                                                          ThreadPool&) {
  throw DistError("this tpudist was built with a CPU-only LibTorch and cannot use a GPU");
}

#else

namespace {

constexpr std::size_t kFloat = sizeof(float);

// See make_device_tree_reducer. The slots of a rank are the slices of all leaves of all ranks that
// it receives, in the order of ranks, members and leaves.
class DeviceTreeReducer final : public GradientReducer {
 public:
  DeviceTreeReducer(const ReducingDevices& devices, std::int64_t length, ThreadPool& pool)
      : devices_(devices),
        rank_(devices.world.rank()),
        ranks_(devices.world.size()),
        length_(length),
        begin_(slice_begins(length, ranks_)),
        pool_(pool),
        ledger_(rank_, ranks_, length) {}

  void begin(const LeafOwners& owners) override {
    ledger_.begin(owners);
    check_cuda(cudaSetDevice(devices_.number), "cudaSetDevice");
    place_leaves(owners);
    grow_page_locked(rows_, floats(leaves_of(rank_) * length_));
    grow_page_locked(result_, floats(owners.members * length_));
  }

  void add(int member, int leaf, std::span<const float> row) override {
    ledger_.claim(member, leaf, row.size());
    const int slot = slot_[static_cast<std::size_t>(member) * ledger_.owners().leaves + leaf];
    copy_row(pool_, rows_.as<float>().data() + (slot - first_slot_[rank_]) * length_, row.data(),
             length_);
  }

  // Everything is queued on the default stream; only collectives and the end are waited for.
  std::span<const float> finalize() override {
    ledger_.end_on_all_ranks(devices_.world);
    const std::int64_t members = ledger_.owners().members, own = leaves_of(rank_),
                       slice = slice_of(rank_);
    if (members * length_ == 0) return {};
    check_cuda(cudaSetDevice(devices_.number), "cudaSetDevice");
    upload_plan();
    std::vector<std::int64_t> sent, received, summed;
    const std::span<float> rows = grow(sent_, own * length_);
    for (int rank = 0; rank < ranks_; ++rank) {
      sent.push_back(own * slice_of(rank));
      received.push_back(leaves_of(rank) * slice);
      summed.push_back(members * slice_of(rank));
      copy_slices(rows.data() + own * begin_[rank], slice_of(rank),
                  rows_.as<float>().data() + begin_[rank], length_, slice_of(rank), own);
    }
    const std::span<float> leaves = grow(leaves_, first_slot_[ranks_] * slice);
    devices_.device.all_to_all(std::span<const float>(rows), sent, leaves, received);
    const std::span<float> sums = grow(sums_, members * slice);
    devices_.add(static_cast<int>(members), slice, plan_.as<std::int32_t>().data(), leaves.data(),
                 sums.data());
    const std::span<float> all = grow(gathered_, members * length_);
    devices_.device.all_gather(std::span<const float>(sums), all, summed);
    const std::span<float> result =
        result_.as<float>().first(static_cast<std::size_t>(members * length_));
    for (int rank = 0; rank < ranks_; ++rank) {
      copy_slices(result.data() + begin_[rank], length_, all.data() + members * begin_[rank],
                  slice_of(rank), slice_of(rank), members);
    }
    finish_default_stream("the copy of the gradients", devices_.timeout);
    bytes_sent_ += (own * (length_ - slice) + members * slice * (ranks_ - 1)) *
                   static_cast<std::int64_t>(kFloat);
    return result;
  }

  std::int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  static std::size_t floats(std::int64_t count) {
    return static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * kFloat;
  }
  std::int64_t slice_of(int rank) const { return begin_[rank + 1] - begin_[rank]; }
  std::int64_t leaves_of(int rank) const { return first_slot_[rank + 1] - first_slot_[rank]; }

  // The numbers of leaves differ a little between steps.
  static void grow_page_locked(DeviceBuffer& buffer, std::size_t bytes) {
    if (buffer.bytes() < bytes) buffer = DeviceBuffer::page_locked(bytes + bytes / 4);
  }
  static std::span<float> grow(DeviceBuffer& buffer, std::int64_t count) {
    if (buffer.bytes() < floats(count)) buffer = DeviceBuffer(floats(count) + floats(count) / 4);
    return buffer.as<float>().first(static_cast<std::size_t>(count));
  }

  // Copies `rows` rows of `width` floats between the host and the device.
  static void copy_slices(float* to, std::int64_t to_distance, const float* from,
                          std::int64_t from_distance, std::int64_t width, std::int64_t rows) {
    if (width == 0 || rows == 0) return;
    check_cuda(
        cudaMemcpy2DAsync(to, to_distance * kFloat, from, from_distance * kFloat, width * kFloat,
                          static_cast<std::size_t>(rows), cudaMemcpyDefault, cudaStreamLegacy),
        "cudaMemcpy2DAsync");
  }

  void place_leaves(const LeafOwners& owners) {
    first_slot_.assign(static_cast<std::size_t>(ranks_) + 1, 0);
    for (const int owner : owners.owner) {
      if (owner >= 0) ++first_slot_[static_cast<std::size_t>(owner) + 1];
    }
    for (int rank = 0; rank < ranks_; ++rank) first_slot_[rank + 1] += first_slot_[rank];
    std::vector<std::int64_t> next = first_slot_;
    slot_.assign(owners.owner.size(), -1);
    for (std::size_t i = 0; i < owners.owner.size(); ++i) {
      if (owners.owner[i] >= 0) slot_[i] = static_cast<int>(next[owners.owner[i]]++);
    }
  }

  // [members + 1] where a member's additions begin, [members] the slot of its sum or -1, and for
  // each addition the slots that are added, into the first one.
  std::vector<std::int32_t> plan() const {
    const LeafOwners& owners = ledger_.owners();
    const ReductionTree tree = make_reduction_tree(owners, ranks_);
    std::vector<std::int32_t> of_node(tree.nodes.size());
    for (std::size_t i = 0; i < slot_.size(); ++i) {
      if (slot_[i] >= 0) of_node[tree.leaf_node[i]] = slot_[i];
    }
    std::vector<std::int32_t> begin(static_cast<std::size_t>(owners.members) + 1), sum, pairs;
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const ReductionTree::Node& node = tree.nodes[i];
      if (node.left == ReductionTree::none) continue;
      of_node[i] = of_node[node.left];
      pairs.push_back(of_node[node.left]);
      pairs.push_back(of_node[node.right]);
      ++begin[static_cast<std::size_t>(node.member) + 1];
    }
    for (int member = 0; member < owners.members; ++member) begin[member + 1] += begin[member];
    for (const int root : tree.root) sum.push_back(root < 0 ? -1 : of_node[root]);
    begin.insert(begin.end(), sum.begin(), sum.end());
    begin.insert(begin.end(), pairs.begin(), pairs.end());
    return begin;
  }

  void upload_plan() {
    const std::vector<std::int32_t> values = plan();
    const std::size_t bytes = values.size() * sizeof(std::int32_t);
    grow_page_locked(staged_plan_, bytes);
    if (plan_.bytes() < bytes) plan_ = DeviceBuffer(2 * bytes);
    std::ranges::copy(values, staged_plan_.as<std::int32_t>().begin());
    check_cuda(
        cudaMemcpyAsync(plan_.as<std::int32_t>().data(), staged_plan_.as<std::int32_t>().data(),
                        bytes, cudaMemcpyHostToDevice, cudaStreamLegacy),
        "cudaMemcpyAsync");
  }

  const ReducingDevices devices_;
  const int rank_, ranks_;
  const std::int64_t length_;
  const std::vector<std::int64_t> begin_;  // of the ranks' slices
  ThreadPool& pool_;
  LeafLedger ledger_;
  std::vector<std::int64_t> first_slot_;  // [ranks + 1]
  std::vector<int> slot_;                 // [members, leaves], -1 where the leaf is absent

  // Page-locked: this rank's rows, and [members, length] sums.
  DeviceBuffer rows_, result_, staged_plan_;
  // On the device: the own rows by the rank that gets them; all leaves' slices; their sums; those of
  // all ranks.
  DeviceBuffer sent_, leaves_, sums_, gathered_, plan_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace

std::unique_ptr<GradientReducer> make_device_tree_reducer(const ReducingDevices& devices,
                                                          std::int64_t length, ThreadPool& pool) {
  return std::make_unique<DeviceTreeReducer>(devices, length, pool);
}

#endif

}  // namespace tpudist
