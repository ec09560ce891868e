#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/collectives/device_memory.hpp"

// All calls of a communicator, on all its ranks, with the expected results.

namespace tpudist {

using Counts = std::vector<std::int64_t>;

// Memory of the communicator's kind that the host can read and write.
template <typename T>
class Memory {
 public:
  Memory(const Communicator& communicator, std::vector<T> values)
      : on_device_(communicator.memory() == MemoryKind::device), host_(std::move(values)) {
    if (!on_device_ || host_.empty()) return;
    device_ = DeviceBuffer(host_.size() * sizeof(T));
    copy_device_bytes(device_.as<T>().data(), host_.data(), host_.size() * sizeof(T));
  }
  std::span<T> span() { return on_device_ ? device_.as<T>() : std::span<T>(host_); }
  std::vector<T> read() {
    if (on_device_ && !host_.empty()) {
      copy_device_bytes(host_.data(), device_.as<T>().data(), host_.size() * sizeof(T));
    }
    return host_;
  }

 private:
  bool on_device_;
  std::vector<T> host_;
  DeviceBuffer device_;
};

// The i-th element that rank `from` sends to rank `to`.
inline std::int64_t letter(int from, int to, std::int64_t i) {
  return (from * 100 + to) * 1000 + i;
}

// The number of elements: uneven, and zero for some pairs.
inline std::int64_t letters(int from, int to) {
  return (3 * from + to + 1) % 5;
}

inline void check_broadcast(Communicator& c) {
  for (int root = 0; root < c.size(); ++root) {
    std::vector<int> values(17);
    std::iota(values.begin(), values.end(), 100 * c.rank());
    Memory<int> memory(c, values);
    c.broadcast(memory.span(), root);
    std::iota(values.begin(), values.end(), 100 * root);
    EXPECT_EQ(memory.read(), values);
  }
  c.broadcast(std::span<int>(), 0);
  EXPECT_THROW(c.broadcast(std::span<int>(), c.size()), DistError);
}

template <typename T>
void check_all_reduce(Communicator& c) {
  const T rank = static_cast<T>(c.rank()), last = static_cast<T>(c.size() - 1);
  const std::vector<T> values = {rank, 5 - rank, 2, 3, 4, 5, 6};
  const auto reduced = [&](ReduceOp op) {
    Memory<T> memory(c, values);
    c.all_reduce(memory.span(), op);
    return memory.read();
  };
  const T n = static_cast<T>(c.size());
  EXPECT_THAT(reduced(ReduceOp::sum), ::testing::ElementsAre(n * last / 2, 5 * n - n * last / 2,
                                                             2 * n, 3 * n, 4 * n, 5 * n, 6 * n));
  EXPECT_THAT(reduced(ReduceOp::min), ::testing::ElementsAre(0, 5 - last, 2, 3, 4, 5, 6));
  EXPECT_THAT(reduced(ReduceOp::max), ::testing::ElementsAre(last, 5, 2, 3, 4, 5, 6));
}

inline void check_all_to_all(Communicator& c, bool copy_own) {
  std::vector<std::int64_t> sent, expected;
  Counts send_counts, recv_counts;
  for (int rank = 0; rank < c.size(); ++rank) {
    send_counts.push_back(letters(c.rank(), rank));
    recv_counts.push_back(rank == c.rank() && !copy_own ? 0 : letters(rank, c.rank()));
    for (std::int64_t i = 0; i < send_counts.back(); ++i) sent.push_back(letter(c.rank(), rank, i));
    for (std::int64_t i = 0; i < recv_counts.back(); ++i) {
      expected.push_back(letter(rank, c.rank(), i));
    }
  }
  Memory<std::int64_t> send(c, sent), recv(c, std::vector<std::int64_t>(expected.size(), -1));
  c.all_to_all(std::span<const std::int64_t>(send.span()), send_counts, recv.span(), recv_counts);
  EXPECT_EQ(recv.read(), expected);
}

inline void check_all_gather(Communicator& c, const Counts& counts, bool in_place) {
  std::vector<std::int64_t> expected;
  std::int64_t begin = 0;
  for (int rank = 0; rank < c.size(); ++rank) {
    if (rank == c.rank()) begin = std::ssize(expected);
    for (std::int64_t i = 0; i < counts[rank]; ++i) expected.push_back(letter(rank, 0, i));
  }
  const std::vector<std::int64_t> own(expected.begin() + begin,
                                      expected.begin() + begin + counts[c.rank()]);
  std::vector<std::int64_t> blank(expected.size(), -1);
  if (in_place) std::copy(own.begin(), own.end(), blank.begin() + begin);
  Memory<std::int64_t> send(c, own), recv(c, blank);
  const std::span<const std::int64_t> source =
      in_place ? recv.span().subspan(begin, own.size()) : send.span();
  c.all_gather(source, recv.span(), counts);
  EXPECT_EQ(recv.read(), expected);
}

inline void check_all_calls(Communicator& c) {
  c.barrier();
  check_broadcast(c);
  check_all_reduce<float>(c);
  check_all_reduce<double>(c);
  check_all_reduce<std::int64_t>(c);
  check_all_to_all(c, true);
  check_all_to_all(c, false);
  Counts uneven;
  for (int rank = 0; rank < c.size(); ++rank) uneven.push_back((rank + 2) % 3);
  for (const Counts& counts : {uneven, Counts(c.size(), 4), Counts(c.size(), 0)}) {
    check_all_gather(c, counts, false);
    check_all_gather(c, counts, true);
  }
}

}  // namespace tpudist
