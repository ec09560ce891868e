#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dist/collectives/leaf_ledger.hpp"

namespace tpudist {

// What a DeviceReducer needs of this rank's device: memory, copies, and the kernels of
// models/kernels/flat_launches.hpp. The device does all in the order of the calls, on its default
// stream, and nobody waits for it.
class ReducingDevice {
 public:
  virtual ~ReducingDevice() = default;

  // Uninitialised memory of the device. Its last owner may let go of it before queued work is done.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Copies from the host; `from` may change when it returns.
  virtual void upload(const void* from, std::size_t bytes, void* to) = 0;

  virtual void put_values(std::int64_t count, const std::int32_t* row_of, const float* values,
                          std::int64_t length, std::int64_t at, float* rows) = 0;
  virtual void rows_to_slices(std::int64_t count, std::int64_t length, int ranks,
                              std::int64_t slice, const std::int32_t* row_of, const float* rows,
                              float* slices) = 0;
  virtual void slices_to_rows(std::int64_t count, std::int64_t length, std::int64_t slice,
                              const float* slices, float* rows) = 0;
  virtual void add_leaves(int members, std::int64_t length, const std::int32_t* plan, float* leaves,
                          float* sums) = 0;
};

// Memory of a device that grows, with what it needs once and a quarter more.
template <typename T>
class GrowingArray {
 public:
  explicit GrowingArray(ReducingDevice& device) : device_(device) {}
  // At least `count` elements, of undefined content if it had to grow.
  T* get(std::int64_t count) {
    if (!memory_ || count > size_) {
      size_ = count + count / 4 + 1;
      memory_.reset();  // before, so that both are never there together
      memory_ = device_.allocate(static_cast<std::size_t>(size_) * sizeof(T));
    }
    return static_cast<T*>(memory_.get());
  }

 private:
  ReducingDevice& device_;
  std::shared_ptr<void> memory_;
  std::int64_t size_ = 0;
};

// GradientReducer for rows and sums in the memory of a device. In the order of the tree the sums
// are those of make_tree_reducer, with its bits; in the order of ranks they are those of
// make_all_reduce_reducer, up to how the ranks' sums are added. For the tree a rank sends slices of
// each of its leaves to the ranks that work on them (all_to_all), one kernel adds all leaves of an
// element, and the sums are gathered. All slices have equal length, so NCCL can gather them by a
// ring. Otherwise that kernel adds the rank's own leaves, and one
// all_reduce runs over the sums.
class DeviceReducer {
 public:
  enum class Order { tree, ranks };
  // Rows have `length` floats. `value_at`: which of them add() brings. Borrows all three; `nccl`
  // works on device memory, on the ranks of `world`, and is null where there is one rank.
  DeviceReducer(Communicator& world, Communicator* nccl, ReducingDevice& device, Order order,
                std::int64_t length, std::int64_t value_at);

  // As of GradientReducer.
  void begin(const LeafOwners& owners);
  // The leaf's row is row number `row` in finalize(), with `value` at `value_at`. Thread-safe.
  // Throws as GradientReducer::add.
  void add(int member, int leaf, int row, float value);
  // Collective, one thread. Returns the sums [members, length] on the device, valid until the next
  // finalize(); null if there are none. Overwrites `rows`, on the device. Throws as
  // GradientReducer::finalize.
  const float* finalize(float* rows);

  std::int64_t bytes_sent() const { return bytes_sent_; }
  // Elements of a row that each of so many ranks works on, a multiple of 16. The last ones may
  // reach behind the row.
  static std::int64_t slice_of(std::int64_t length, int ranks) {
    return (length + 16 * ranks - 1) / (16 * ranks) * 16;
  }

 private:
  std::int64_t own_leaves() const { return first_slot_[rank_ + 1] - first_slot_[rank_]; }
  void place_leaves();
  std::vector<std::int32_t> additions() const;
  void exchange(const std::int32_t* row_of, const std::int32_t* plan, const float* rows,
                float* sums);

  Communicator& world_;
  Communicator* const nccl_;
  ReducingDevice& device_;
  const Order order_;
  const int rank_, ranks_;
  const std::int64_t length_, value_at_;
  const std::int64_t slice_;
  LeafLedger ledger_;
  std::vector<std::int32_t> row_;  // [members, leaves] of the rows of this rank's leaves
  std::vector<float> value_;       // [members, leaves] that go into them
  // The slots of all leaves, in the order of ranks, members and leaves: where they begin
  // [ranks + 1], and that of each leaf [members, leaves], -1 where it is absent.
  std::vector<std::int64_t> first_slot_;
  std::vector<std::int32_t> slot_;

  GrowingArray<std::int32_t> plan_;
  // The own rows by the rank that gets them; all leaves' slices; their sums; those of all ranks.
  GrowingArray<float> sent_, leaves_, sums_, gathered_;
  GrowingArray<float> result_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace tpudist
