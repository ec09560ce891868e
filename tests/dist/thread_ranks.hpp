#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/collectives/counts.hpp"

namespace tpudist::test {

// Thrown by a call of a rank when another rank has ended the job.
struct RanksEnded : std::exception {};

// The data that ranks share when they are threads of one process.
class Meeting {
 public:
  struct Given {
    const std::byte* send = nullptr;
    std::span<const std::int64_t> counts;
  };

  // `patience`: how long a rank waits for other ranks before it throws; 0: for ever.
  explicit Meeting(int ranks, std::chrono::milliseconds patience = {})
      : parts(static_cast<std::size_t>(ranks)), patience_(patience) {}

  // Waits for all ranks. Throws RanksEnded when the job ends before, and DistError when a rank does
  // not come. `surely`: all ranks come, even if the job has ended.
  void meet(bool surely = false) {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++arrived_ == static_cast<int>(parts.size())) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    const auto done = [&] { return round_ != round || (ended_ && !surely); };
    if (patience_.count() == 0) {
      changed_.wait(lock, done);
    } else if (!changed_.wait_for(lock, patience_, done)) {
      throw DistError("a rank does not come");
    }
    if (round_ == round) throw RanksEnded{};
  }

  // Ends the waits of all ranks, from now on.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  std::vector<Given> parts;  // [ranks]

 private:
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  bool ended_ = false;
};

// Copies bytes between the memory of ranks, or between that memory and the host.
using CopyBytes = std::function<void(void* to, const void* from, std::size_t bytes)>;

// A communicator of threads: one object for each rank, over a meeting that must outlive it.
class ThreadComm final : public Communicator {
 public:
  ThreadComm(
      Meeting& meeting, int number, MemoryKind memory = MemoryKind::host,
      CopyBytes copy = [](void* to, const void* from,
                          std::size_t bytes) { std::memmove(to, from, bytes); })
      : meeting_(meeting), rank_(number), memory_(memory), copy_(std::move(copy)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.parts.size()); }
  MemoryKind memory() const override { return memory_; }
  std::string_view name() const override { return "threads"; }
  void barrier() override { meeting_.meet(); }
  void all_reduce(Numbers data, ReduceOp op) override {
    std::visit([&](auto numbers) { reduce(numbers, op); }, data);
  }
  // All ranks must have one colour. They call one communicator after the other, so that both can
  // share the meeting.
  std::unique_ptr<Communicator> split(int color) override {
    std::int64_t colors[] = {color, -color};
    all_reduce(std::span<std::int64_t>(colors), ReduceOp::max);
    if (colors[0] != -colors[1]) throw DistError("threads do not split by several colours");
    return std::make_unique<ThreadComm>(meeting_, rank_, memory_, copy_);
  }

 private:
  // Every rank gives `send`; take() reads those of the other ranks; then all ranks continue.
  template <typename Take>
  void exchange(const void* send, std::span<const std::int64_t> counts, const Take& take) {
    meeting_.parts[rank_] = {static_cast<const std::byte*>(send), counts};
    meeting_.meet();
    take();
    meeting_.meet(/*surely=*/true);  // other ranks may read `send` until here
  }
  const std::byte* given(int rank) const { return meeting_.parts[rank].send; }

  void broadcast_bytes(std::span<std::byte> data, int root) override {
    exchange(data.data(), {}, [&] {
      if (rank_ != root && !data.empty()) copy_(data.data(), given(root), data.size());
    });
  }

  template <typename T>
  void reduce(std::span<T> data, ReduceOp op) {
    std::vector<T> sums(data.size()), other(data.size());
    exchange(data.data(), {}, [&] {
      for (int r = 0; r < size(); ++r) {
        copy_(other.data(), given(r), data.size_bytes());
        for (std::size_t i = 0; i < data.size(); ++i) {
          sums[i] = r == 0                ? other[i]
                    : op == ReduceOp::sum ? sums[i] + other[i]
                    : op == ReduceOp::min ? std::min(sums[i], other[i])
                                          : std::max(sums[i], other[i]);
        }
      }
    });
    copy_(data.data(), sums.data(), data.size_bytes());
  }

  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    const Exchange parts =
        exchange_of(send, send_counts, recv, recv_counts, element_bytes, rank_, size());
    exchange(send.data(), send_counts, [&] {
      for (int from = 0; from < size(); ++from) {
        std::int64_t before = 0;
        for (int r = 0; r < rank_; ++r) before += meeting_.parts[from].counts[r];
        if (parts.recv.size(from) == 0) continue;
        copy_(recv.data() + parts.recv.offset[from], given(from) + before * element_bytes,
              parts.recv.size(from));
      }
    });
  }

  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    const Parts parts = gather_parts_of(send, recv, counts, element_bytes, rank_, size());
    exchange(send.data(), {}, [&] {
      for (int from = 0; from < size(); ++from) {
        std::byte* const to = recv.data() + parts.offset[from];
        if (parts.size(from) > 0 && to != given(from)) copy_(to, given(from), parts.size(from));
      }
    });
  }

  Meeting& meeting_;
  const int rank_;
  const MemoryKind memory_;
  const CopyBytes copy_;
};

}  // namespace tpudist::test
