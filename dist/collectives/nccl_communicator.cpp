#include "dist/collectives/nccl_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "core/error.hpp"
#include "dist/collectives/counts.hpp"
#include "dist/collectives/device_memory.hpp"

#ifndef TPUDIST_NO_CUDA
#include <nccl.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <source_location>
#include <string_view>

#include "core/process.hpp"
#include "dist/collectives/cuda_check.hpp"
#include "dist/collectives/shared_gpu.hpp"
#endif

namespace tpudist {

#ifdef TPUDIST_NO_CUDA

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, int, RankActivity*, double) {
  throw DistError("this tpudist was built with a CPU-only LibTorch and has no NCCL");
}

std::string nccl_version_report() {
  return "NCCL: not part of this build";
}

#else

namespace {

// Throws DistError unless the call succeeded, with NCCL's own text and last warning, the name of
// the call and its place in the source. `comm` may be null.
void check_nccl(ncclResult_t code, std::string_view call, ncclComm_t comm,
                std::source_location place = std::source_location::current()) {
  if (code == ncclSuccess) return;
  leave_device();
  throw DistError(fmt::format("{} failed: {}; {} ({}:{}); NCCL_DEBUG=WARN tells more", call,
                              ncclGetErrorString(code), ncclGetLastError(comm),
                              std::filesystem::path(place.file_name()).filename().string(),
                              place.line()));
}

ncclRedOp_t to_nccl(ReduceOp op) {
  switch (op) {
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::sum:
      break;
  }
  return ncclSum;
}

// Device memory over NCCL; see make_nccl_communicator. One thread at a time; after a call of CUDA
// or NCCL has failed, it makes no more.
class NcclComm final : public Communicator {
 public:
  // Collective over the ranks that have the same id.
  NcclComm(const ncclUniqueId& id, int rank, int size, int device, RankActivity* activity,
           double timeout)
      : device_(device),
        rank_(rank),
        size_(size),
        activity_(activity),
        timeout_(timeout),
        token_(sizeof(float)) {
    check_cuda(cudaMemsetAsync(token_.as<std::byte>().data(), 0, token_.bytes(), kStream),
               "cudaMemsetAsync");
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const char* const call = "ncclCommInitRankConfig";
    const RankActivity::Collective told(activity_, call, 0);
    start(ncclCommInitRankConfig(&handle_, size, id, rank, &config), call);
  }

  ~NcclComm() override {
    if (device_is_left()) return;
    try {
      close();
    } catch (const std::exception& error) {
      leave_device();
      spdlog::warn("{}", error.what());
    }
  }
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  MemoryKind memory() const override { return MemoryKind::device; }
  std::string_view name() const override { return "nccl"; }

  void barrier() override { all_reduce(token_.as<float>(), ReduceOp::sum); }

  void all_reduce(Numbers data, ReduceOp op) override {
    const ncclDataType_t type = std::array{ncclFloat32, ncclFloat64, ncclInt64}[data.index()];
    std::visit(
        [&](auto numbers) {
          run("ncclAllReduce", numbers.size_bytes(), [&] {
            return ncclAllReduce(numbers.data(), numbers.data(), numbers.size(), type, to_nccl(op),
                                 handle_, kStream);
          });
        },
        data);
  }

  std::unique_ptr<Communicator> split(int) override {
    throw DistError("an NCCL communicator cannot be split");
  }

 private:
  void broadcast_bytes(std::span<std::byte> data, int root) override {
    check_root(root, size_);
    run("ncclBroadcast", data.size(), [&] {
      return ncclBroadcast(data.data(), data.data(), data.size(), ncclUint8, root, handle_,
                           kStream);
    });
  }

  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    const Exchange parts =
        exchange_of(send, send_counts, recv, recv_counts, element_bytes, rank_, size_);
    run("ncclSend, ncclRecv", std::max(send.size(), recv.size()), [&] {
      if (parts.copies_own) {
        copy_own(recv.data() + parts.recv.offset[rank_], send.data() + parts.send.offset[rank_],
                 parts.send.size(rank_));
      }
      return as_one_call([&](int rank) {
        give(send.data() + parts.send.offset[rank], parts.send.size(rank), rank);
        take(recv.data() + parts.recv.offset[rank], parts.recv.size(rank), rank);
      });
    });
  }

  // ncclAllGather takes equal counts only.
  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    const Parts parts = gather_parts_of(send, recv, counts, element_bytes, rank_, size_);
    const bool equal =
        std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
    run("ncclAllGather", recv.size(), [&] {
      if (equal) {
        return ncclAllGather(send.data(), recv.data(), send.size(), ncclUint8, handle_, kStream);
      }
      copy_own(recv.data() + parts.offset[rank_], send.data(), send.size());
      return as_one_call([&](int rank) {
        give(send.data(), send.size(), rank);
        take(recv.data() + parts.offset[rank], parts.size(rank), rank);
      });
    });
  }

  void give(const std::byte* data, std::size_t bytes, int rank) {
    if (bytes == 0) return;  // both sides know the size
    check(ncclSend(data, bytes, ncclUint8, rank, handle_, kStream), "ncclSend");
  }

  void take(std::byte* data, std::size_t bytes, int rank) {
    if (bytes == 0) return;
    check(ncclRecv(data, bytes, ncclUint8, rank, handle_, kStream), "ncclRecv");
  }

  static void copy_own(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes == 0 || to == from) return;
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, kStream),
               "cudaMemcpyAsync");
  }

  // The calls with all other ranks, as one group.
  template <typename Calls>
  ncclResult_t as_one_call(const Calls& calls) {
    check(ncclGroupStart(), "ncclGroupStart");
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) calls(rank);
    }
    return ncclGroupEnd();
  }

  // Queues a collective and waits for its end. `queue` returns NCCL's result. For no bytes no rank
  // makes a call: with NCCL_CHECK_POINTERS=1 NCCL refuses the null pointer of an empty span.
  template <typename Queue>
  void run(const char* call, std::size_t bytes, const Queue& queue) {
    if (bytes == 0) return;
    const RankActivity::Collective told(activity_, call, bytes);
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    start(queue(), call);
    finish_default_stream(call, timeout_, [&] { is_in_progress(call); });
  }

  // A call may go on in the background. Its work is on the stream only when the call has ended.
  void start(ncclResult_t code, const char* call) {
    check(code, call);
    poll(call, timeout_, [&] { return !is_in_progress(call); });
  }

  // Throws if NCCL has met an error, for instance in the network.
  bool is_in_progress(const char* call) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(handle_, &state), "ncclCommGetAsyncError");
    check(state, call);
    return state == ncclInProgress;
  }

  void check(ncclResult_t code, std::string_view call,
             std::source_location place = std::source_location::current()) {
    if (code != ncclInProgress) check_nccl(code, call, handle_, place);
  }

  // Waits for the other ranks.
  void close() {
    const char* const call = "ncclCommFinalize";
    const RankActivity::Collective told(activity_, call, 0);
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    start(ncclCommFinalize(handle_), call);
    check(ncclCommDestroy(handle_), "ncclCommDestroy");
  }

  static constexpr cudaStream_t kStream = nullptr;  // the default one

  const int device_, rank_, size_;
  RankActivity* const activity_;
  const double timeout_;
  DeviceBuffer token_;  // what a barrier adds up
  ncclComm_t handle_ = nullptr;
};

// What NCCL knows a GPU by: the machine and the bus. Instances of MIG have those of their card.
std::string card_of(int device) {
  std::array<char, 32> bus{};
  check_cuda(cudaDeviceGetPCIBusId(bus.data(), int{bus.size()}, device), "cudaDeviceGetPCIBusId");
  std::string start;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> start;
  return fmt::format("{} of '{}' {}", bus.data(), host_name(), start);
}

// The id of the device. Throws if there is no such device.
std::string select_device(int device) {
  const auto [devices, problem] = visible_devices();
  if (device < 0 || device >= std::ssize(devices)) {
    throw DistError(fmt::format(
        "NCCL needs a GPU for every rank, but CUDA device {} is not there ({} visible{}{}); choose "
        "device: cpu",
        device, devices.size(), problem.empty() ? "" : ": ", problem));
  }
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  return devices[device].id;
}

std::string nccl_version(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device,
                                                     RankActivity* activity, double timeout) {
  std::string id_of_gpu, card;
  run_on_all_ranks(world, [&] {
    id_of_gpu = select_device(device);
    card = card_of(device);
  });
  for (const std::string& own : {id_of_gpu, card}) {
    const std::vector<std::string> all = all_gather_text(world, own);
    for (std::size_t rank = 1; rank < all.size() && !ranks_share_gpu(); ++rank) {
      const std::size_t first = std::find(all.begin(), all.end(), all[rank]) - all.begin();
      if (first == rank) continue;
      throw DistError(fmt::format(
          "ranks {} and {} are on the same GPU ({}), which NCCL refuses; start one rank per GPU, "
          "also where MIG divides GPUs",
          first, rank, all[rank]));
    }
  }
  ncclUniqueId id{};
  run_on_first_rank(world, [&] { check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr); });
  world.broadcast(std::span<char>(id.internal), 0);
  // A rank that fails from here on must not wait for the others, which wait for it.
  return std::make_unique<NcclComm>(id, world.rank(), world.size(), device, activity, timeout);
}

std::string nccl_version_report() {
  int library = 0;
  const ncclResult_t code = ncclGetVersion(&library);
  if (code != ncclSuccess) return fmt::format("NCCL: {}", ncclGetErrorString(code));
  return fmt::format("NCCL: header {}, library {}, {}", nccl_version(NCCL_VERSION_CODE),
                     nccl_version(library),
                     library == NCCL_VERSION_CODE
                         ? "equal"
                         : "NOT EQUAL: build again where include and library folders belong "
                           "together");
}

#endif

}  // namespace tpudist
