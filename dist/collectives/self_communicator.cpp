#include "dist/collectives/self_communicator.hpp"

#include <cstring>

#include "dist/collectives/counts.hpp"
#include "dist/collectives/device_memory.hpp"

namespace tpudist {
namespace {

class SelfComm final : public Communicator {
 public:
  explicit SelfComm(MemoryKind memory) : memory_(memory) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  MemoryKind memory() const override { return memory_; }
  std::string_view name() const override { return "self"; }

  void barrier() override {}
  std::unique_ptr<Communicator> split(int color) override {
    check_color(color);
    return std::make_unique<SelfComm>(memory_);
  }

 private:
  void broadcast_bytes(std::span<std::byte>, int root) override { check_root(root, 1); }
  void all_reduce_float(std::span<float>, ReduceOp) override {}
  void all_reduce_double(std::span<double>, ReduceOp) override {}
  void all_reduce_int64(std::span<std::int64_t>, ReduceOp) override {}

  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    if (exchange_of(send, send_counts, recv, recv_counts, element_bytes, 0, 1).copies_own) {
      copy(send, recv);
    }
  }

  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    gather_parts_of(send, recv, counts, element_bytes, 0, 1);
    copy(send, recv);
  }

  void copy(std::span<const std::byte> from, std::span<std::byte> to) const {
    if (from.empty() || from.data() == to.data()) return;
    if (memory_ == MemoryKind::host) {
      std::memcpy(to.data(), from.data(), from.size());
    } else {
      copy_device_bytes(to.data(), from.data(), from.size());
    }
  }

  MemoryKind memory_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator(MemoryKind memory) {
  return std::make_unique<SelfComm>(memory);
}

}  // namespace tpudist
