#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dist/collectives/communicator.hpp"

namespace tpudist::test {

// The ranks of another communicator, which must outlive this object, with faults in what a rank
// receives. Parts of a split have them too.
class FaultyCommunicator final : public Communicator {
 public:
  // Called with what each all_gather has received, and the bytes of an element.
  using Received = std::function<void(std::span<std::byte> received, std::int64_t element_bytes)>;

  FaultyCommunicator(Communicator& inner, Received received)
      : inner_(inner), received_(std::move(received)) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  MemoryKind memory() const override { return inner_.memory(); }
  std::string_view name() const override { return inner_.name(); }
  void barrier() override { inner_.barrier(); }
  std::unique_ptr<Communicator> split(int color) override {
    parts_.push_back(inner_.split(color));
    return std::make_unique<FaultyCommunicator>(*parts_.back(), received_);
  }
  void all_reduce(Numbers data, ReduceOp op) override { inner_.all_reduce(data, op); }

 private:
  static std::vector<std::int64_t> bytes_of(std::span<const std::int64_t> counts,
                                            std::int64_t element_bytes) {
    std::vector<std::int64_t> bytes(counts.begin(), counts.end());
    for (std::int64_t& count : bytes) count *= element_bytes;
    return bytes;
  }
  void broadcast_bytes(std::span<std::byte> data, int root) override {
    inner_.broadcast(data, root);
  }
  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    inner_.all_to_all(send, bytes_of(send_counts, element_bytes), recv,
                      bytes_of(recv_counts, element_bytes));
  }
  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    inner_.all_gather(send, recv, bytes_of(counts, element_bytes));
    received_(recv, element_bytes);
  }

  Communicator& inner_;
  const Received received_;
  std::vector<std::unique_ptr<Communicator>> parts_;
};

}  // namespace tpudist::test
