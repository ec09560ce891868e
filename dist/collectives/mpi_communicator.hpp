#pragma once

#include <mpi.h>

#include <limits>
#include <source_location>
#include <string_view>

#include "dist/collectives/communicator.hpp"
#include "dist/collectives/rank_activity.hpp"

namespace tpudist {

// Throws DistError unless `code` is MPI_SUCCESS, with MPI's own text, the name of the call and its
// place in the source.
void check_mpi(int code, std::string_view call,
               std::source_location place = std::source_location::current());

// Owns an MPI communicator, whose errors are returned, never fatal. Freeing is collective.
class MpiHandle {
 public:
  MpiHandle() = default;
  explicit MpiHandle(MPI_Comm owned);
  ~MpiHandle();
  MpiHandle(MpiHandle&& other) noexcept : comm_(other.comm_) { other.comm_ = MPI_COMM_NULL; }
  MpiHandle& operator=(MpiHandle&& other) noexcept;

  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Host memory over MPI. Counts beyond MPI's 32 bits are split into pieces of at most
// `largest_count` elements (a parameter only for tests). Only the thread that initialised MPI may
// call it. Every call, also of communicators split off from this one, reports its begin and end to
// `activity`, which may be null and must outlive them all.
class MpiComm final : public Communicator {
 public:
  explicit MpiComm(MpiHandle handle, std::int64_t largest_count = std::numeric_limits<int>::max(),
                   RankActivity* activity = nullptr);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  MemoryKind memory() const override { return MemoryKind::host; }
  std::string_view name() const override { return "mpi"; }

  void barrier() override;
  bool wait_for_all(std::chrono::milliseconds patience,
                    const std::function<bool()>& in_vain = {}) override;
  std::unique_ptr<Communicator> split(int color) override;

  // The ranks on this rank's node, in rank order.
  std::unique_ptr<MpiComm> split_by_node();

 private:
  void broadcast_bytes(std::span<std::byte> data, int root) override;
  void all_reduce_float(std::span<float> data, ReduceOp op) override;
  void all_reduce_double(std::span<double> data, ReduceOp op) override;
  void all_reduce_int64(std::span<std::int64_t> data, ReduceOp op) override;
  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override;
  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override;

  template <typename T>
  void all_reduce_pieces(std::span<T> data, MPI_Datatype type, ReduceOp op);

  MpiHandle handle_;
  std::int64_t largest_count_;
  RankActivity* activity_;
  int rank_ = 0, size_ = 1;
};

}  // namespace tpudist
