#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dist/collectives/leaf_ledger.hpp"

namespace tpudist {

// What a DeviceReducer needs of this rank's device: memory, copies, and the kernels of
// models/kernels/flat_launches.hpp. The device works in the order of the calls, on its default
// stream; no call waits for the device.
class ReducingDevice {
 public:
  virtual ~ReducingDevice() = default;

  // Uninitialised memory of the device. Its last owner may free it while queued work uses it.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Copies from the host. `from` may change as soon as the call returns.
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

// A GradientReducer for rows and sums in device memory. Order::tree gives the bits of
// make_tree_reducer. For Order::ranks a rank adds its own leaves in their order, and one all_reduce
// adds the sums of the ranks. For the tree a rank sends slices of its leaves to the ranks
// that work on them (all_to_all), one kernel adds all leaves of an element, and the sums are
// gathered. All slices have one length, so NCCL can gather them in a ring.
class DeviceReducer {
 public:
  enum class Order { tree, ranks };
  // Rows have `length` floats; add() sets the one at `value_at`. Borrows its arguments. `nccl`
  // connects the ranks of `world` on device memory; null for a single rank.
  DeviceReducer(Communicator& world, Communicator* nccl, ReducingDevice& device, Order order,
                std::int64_t length, std::int64_t value_at);

  // As in GradientReducer.
  void begin(const LeafOwners& owners);
  // Row number `row` of finalize() becomes the leaf's row, with `value` at `value_at`. Thread-safe.
  // Throws as GradientReducer::add does.
  void add(int member, int leaf, int row, float value);
  // Collective, one thread. Overwrites `rows`, on the device. Returns the sums [members, length] on
  // the device, valid until the next finalize(); null if there are none. Throws as
  // GradientReducer::finalize does.
  const float* finalize(float* rows);

  std::int64_t bytes_sent() const { return bytes_sent_; }
  // How many elements of a row each rank works on, a multiple of 16. The last slice may extend past
  // the end of the row.
  static std::int64_t slice_of(std::int64_t length, int ranks) {
    return (length + 16 * ranks - 1) / (16 * ranks) * 16;
  }

 private:
  // Device memory that grows to what is asked for and a quarter more.
  template <typename T>
  class GrowingArray {
   public:
    explicit GrowingArray(ReducingDevice& device) : device_(device) {}
    // Returns at least `count` elements; their content is undefined if the array had to grow.
    T* get(std::int64_t count) {
      if (!memory_ || count > size_) {
        size_ = count + count / 4 + 1;
        memory_.reset();  // first, so that old and new memory never exist together
        memory_ = device_.allocate(static_cast<std::size_t>(size_) * sizeof(T));
      }
      return static_cast<T*>(memory_.get());
    }

   private:
    ReducingDevice& device_;
    std::shared_ptr<void> memory_;
    std::int64_t size_ = 0;
  };

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
  std::vector<std::int32_t> row_;  // [members, leaves] the rows of this rank's leaves
  std::vector<float> value_;       // [members, leaves] the values to put into these rows
  // The slots of all leaves, by rank, member and leaf: the first slot of each rank [ranks + 1], the
  // slot of each leaf [members, leaves], -1 if the leaf is absent.
  std::vector<std::int64_t> first_slot_;
  std::vector<std::int32_t> slot_;

  GrowingArray<std::int32_t> plan_;
  // Own rows by receiving rank; slices of all leaves; this slice's sums; the sums of all ranks.
  GrowingArray<float> sent_, leaves_, sums_, gathered_;
  GrowingArray<float> result_;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace tpudist
