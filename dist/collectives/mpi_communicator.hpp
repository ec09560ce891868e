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

// Host memory over MPI. Counts beyond MPI's 32 bits are split into pieces of at most
// `largest_count` elements (a parameter only for tests). Only the thread that initialised MPI may
// call it. Owns the MPI communicator, whose errors are returned, never fatal; freeing it is
// collective. Every call, also of communicators split off from this one, reports its begin and end to
// `activity`, which may be null and must outlive them all.
class MpiComm final : public Communicator {
 public:
  explicit MpiComm(MPI_Comm owned, std::int64_t largest_count = std::numeric_limits<int>::max(),
                   RankActivity* activity = nullptr);
  ~MpiComm() override;
  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  MemoryKind memory() const override { return MemoryKind::host; }
  std::string_view name() const override { return "mpi"; }

  void barrier() override;
  bool wait_for_all(std::chrono::milliseconds patience,
                    const std::function<bool()>& in_vain = {}) override;
  std::unique_ptr<Communicator> split(int color) override;
  void all_reduce(Numbers data, ReduceOp op) override;

  // The ranks on this rank's node, in rank order.
  std::unique_ptr<MpiComm> split_by_node();

 private:
  void broadcast_bytes(std::span<std::byte> data, int root) override;
  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override;
  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override;

  MPI_Comm comm_;
  std::int64_t largest_count_;
  RankActivity* activity_;
  int rank_ = 0, size_ = 1;
};

}  // namespace tpudist
