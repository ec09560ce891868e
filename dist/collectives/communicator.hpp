#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tpudist {

enum class MemoryKind { host, device };

enum class ReduceOp { sum, min, max };

// The elements of an all_reduce.
using Numbers = std::variant<std::span<float>, std::span<double>, std::span<std::int64_t>>;

// A group of ranks that work together. All ranks make the same collective calls in the same order,
// each from one thread. Errors are DistError with the name of the call. Buffers belong to the
// caller and must be in memory of kind `memory()`.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual MemoryKind memory() const = 0;
  virtual std::string_view name() const = 0;  // "self", "mpi" or "nccl"

  virtual void barrier() = 0;

  // A barrier for ranks that may arrive minutes apart; waiting uses no processor time. Returns
  // false when `patience` ends first, or when `in_vain` says that the others will not come. Then
  // the communicator must not be used again. The default is barrier().
  virtual bool wait_for_all(std::chrono::milliseconds /*patience*/,
                            const std::function<bool()>& /*in_vain*/ = {}) {
    barrier();
    return true;
  }

  // Returns the communicator of the ranks that pass the same colour (>= 0), in rank order.
  virtual std::unique_ptr<Communicator> split(int color) = 0;

  template <typename T>
  void broadcast(std::span<T> data, int root) {
    broadcast_bytes(std::as_writable_bytes(data), root);
  }

  // Replaces each element by its sum, minimum or maximum over all ranks. Floating-point sums have
  // no fixed order, so their last bits may differ from run to run. For gradients use a
  // GradientReducer.
  virtual void all_reduce(Numbers data, ReduceOp op) = 0;

  // Sends send_counts[r] elements to each rank r and receives recv_counts[r] elements from it. Both
  // buffers hold their parts in rank order. Counts are in elements and may exceed 32 bits. With
  // recv_counts[rank()] = 0 a rank's own part is not copied.
  template <typename T>
  void all_to_all(std::span<const T> send, std::span<const std::int64_t> send_counts,
                  std::span<T> recv, std::span<const std::int64_t> recv_counts) {
    all_to_all_bytes(std::as_bytes(send), send_counts, std::as_writable_bytes(recv), recv_counts,
                     static_cast<std::int64_t>(sizeof(T)));
  }

  // Each rank gives counts[rank()] elements; all ranks receive the elements of all ranks, in rank
  // order. `send` may be this rank's part of `recv`; otherwise the two must not overlap.
  template <typename T>
  void all_gather(std::span<const T> send, std::span<T> recv,
                  std::span<const std::int64_t> counts) {
    all_gather_bytes(std::as_bytes(send), std::as_writable_bytes(recv), counts,
                     static_cast<std::int64_t>(sizeof(T)));
  }

 private:
  virtual void broadcast_bytes(std::span<std::byte> data, int root) = 0;
  virtual void all_to_all_bytes(std::span<const std::byte> send,
                                std::span<const std::int64_t> send_counts,
                                std::span<std::byte> recv,
                                std::span<const std::int64_t> recv_counts,
                                std::int64_t element_bytes) = 0;
  virtual void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                                std::span<const std::int64_t> counts,
                                std::int64_t element_bytes) = 0;
};

// Helpers for host communicators, made of the calls above.

// Gathers one string per rank, in rank order, on every rank.
std::vector<std::string> all_gather_text(Communicator& communicator, std::string_view text);

// An all_gather of variable length. Returns the concatenation in rank order, and sets `counts`
// unless null.
template <typename T>
std::vector<T> all_gather_variable(Communicator& communicator, std::span<const T> mine,
                                   std::vector<std::int64_t>* counts = nullptr) {
  std::vector<std::int64_t> sizes(communicator.size());
  const std::int64_t own = static_cast<std::int64_t>(mine.size());
  const std::vector<std::int64_t> ones(communicator.size(), 1);
  communicator.all_gather(std::span(&own, 1), std::span(sizes),
                          std::span<const std::int64_t>(ones));
  std::int64_t total = 0;
  for (std::int64_t size : sizes) total += size;
  std::vector<T> all(total);
  communicator.all_gather(mine, std::span(all), std::span<const std::int64_t>(sizes));
  if (counts) *counts = std::move(sizes);
  return all;
}

// Runs `action` on every rank, so that no rank waits for one that failed. If it throws on any rank,
// every rank throws: a failing rank its own error, each other rank a copy with the failing rank's
// number, kind and message. The copy is also a HeardFromOtherRank.
void run_on_all_ranks(Communicator& communicator, const std::function<void()>& action);

// Runs `action` on rank 0 alone. If it throws, every rank throws, as above.
void run_on_first_rank(Communicator& communicator, const std::function<void()>& action);

// A communicator of one rank: calls only copy.
std::unique_ptr<Communicator> make_self_communicator(MemoryKind memory = MemoryKind::host);

}  // namespace tpudist
