#include "dist/collectives/nccl_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "dist/collectives/counts.hpp"
#include "dist/collectives/device_memory.hpp"

#ifndef TPUDIST_NO_CUDA
#include <nccl.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <source_location>
#include <string_view>

#include "dist/collectives/cuda_check.hpp"
#endif

namespace tpudist {

#ifdef TPUDIST_NO_CUDA

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, int) {
  throw DistError("this tpudist was built with a CPU-only LibTorch and has no NCCL");
}

std::string nccl_version_report() {
  return "NCCL: not part of this build";
}

#else

namespace {

// Throws DistError with NCCL's own text and its last warning, the name of the call and its place in
// the source, unless it succeeded. `comm` may be null.
void check_nccl(ncclResult_t code, std::string_view call, ncclComm_t comm,
                std::source_location place = std::source_location::current()) {
  if (code == ncclSuccess) return;
  throw DistError(fmt::format("{} failed: {}; {} ({}:{}); NCCL_DEBUG=WARN tells more", call,
                              ncclGetErrorString(code), ncclGetLastError(comm),
                              std::filesystem::path(place.file_name()).filename().string(),
                              place.line()));
}

// Owners of CUDA and NCCL objects of the current device. Destructors log failures.
struct StreamDeleter {
  void operator()(cudaStream_t stream) const {
    if (cudaStreamDestroy(stream) != cudaSuccess) spdlog::warn("cudaStreamDestroy failed");
  }
};
struct EventDeleter {
  void operator()(cudaEvent_t event) const {
    if (cudaEventDestroy(event) != cudaSuccess) spdlog::warn("cudaEventDestroy failed");
  }
};
struct NcclDeleter {
  void operator()(ncclComm_t comm) const {
    if (ncclCommDestroy(comm) != ncclSuccess) spdlog::warn("ncclCommDestroy failed");
  }
};
using Stream = std::unique_ptr<CUstream_st, StreamDeleter>;
using Event = std::unique_ptr<CUevent_st, EventDeleter>;
using NcclHandle = std::unique_ptr<ncclComm, NcclDeleter>;

// Non-blocking: the default stream does not wait for it.
Stream make_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags");
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return Event(event);
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

// Device memory over NCCL; see make_nccl_communicator. One thread at a time.
class NcclComm final : public Communicator {
 public:
  NcclComm(NcclHandle handle, int device)
      : device_(device),
        handle_(std::move(handle)),
        stream_(make_stream()),
        ready_(make_event()),
        token_(sizeof(float)) {
    check_nccl(ncclCommUserRank(handle_.get(), &rank_), "ncclCommUserRank", handle_.get());
    check_nccl(ncclCommCount(handle_.get(), &size_), "ncclCommCount", handle_.get());
    check_cuda(cudaMemset(token_.as<std::byte>().data(), 0, token_.bytes()), "cudaMemset");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  MemoryKind memory() const override { return MemoryKind::device; }
  std::string_view name() const override { return "nccl"; }

  void barrier() override { all_reduce_any(token_.as<float>(), ncclFloat32, ReduceOp::sum); }

  std::unique_ptr<Communicator> split(int color) override {
    check_color(color);
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    ncclComm_t part = nullptr;
    check_nccl(ncclCommSplit(handle_.get(), color, rank_, &part, nullptr), "ncclCommSplit",
               handle_.get());
    return std::make_unique<NcclComm>(NcclHandle(part), device_);
  }

 private:
  void broadcast_bytes(std::span<std::byte> data, int root) override {
    check_root(root, size_);
    on_stream([&](cudaStream_t stream) {
      check_nccl(ncclBroadcast(data.data(), data.data(), data.size(), ncclUint8, root,
                               handle_.get(), stream),
                 "ncclBroadcast", handle_.get());
    });
  }

  void all_reduce_float(std::span<float> data, ReduceOp op) override {
    all_reduce_any(data, ncclFloat32, op);
  }
  void all_reduce_double(std::span<double> data, ReduceOp op) override {
    all_reduce_any(data, ncclFloat64, op);
  }
  void all_reduce_int64(std::span<std::int64_t> data, ReduceOp op) override {
    all_reduce_any(data, ncclInt64, op);
  }

  template <typename T>
  void all_reduce_any(std::span<T> data, ncclDataType_t type, ReduceOp op) {
    on_stream([&](cudaStream_t stream) {
      check_nccl(ncclAllReduce(data.data(), data.data(), data.size(), type, to_nccl(op),
                               handle_.get(), stream),
                 "ncclAllReduce", handle_.get());
    });
  }

  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    const Exchange parts =
        exchange_of(send, send_counts, recv, recv_counts, element_bytes, rank_, size_);
    on_stream([&](cudaStream_t stream) {
      as_one_call([&] {
        for (int rank = 0; rank < size_; ++rank) {
          if (rank == rank_) continue;
          give(send.data() + parts.send.offset[rank], parts.send.size(rank), rank, stream);
          take(recv.data() + parts.recv.offset[rank], parts.recv.size(rank), rank, stream);
        }
      });
      if (parts.copies_own) {
        copy_own(recv.data() + parts.recv.offset[rank_], send.data() + parts.send.offset[rank_],
                 parts.send.size(rank_), stream);
      }
    });
  }

  // ncclAllGather knows equal counts only.
  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    const Parts parts = gather_parts_of(send, recv, counts, element_bytes, rank_, size_);
    const bool equal =
        std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
    on_stream([&](cudaStream_t stream) {
      if (equal) {
        check_nccl(
            ncclAllGather(send.data(), recv.data(), send.size(), ncclUint8, handle_.get(), stream),
            "ncclAllGather", handle_.get());
        return;
      }
      as_one_call([&] {
        for (int rank = 0; rank < size_; ++rank) {
          if (rank == rank_) continue;
          give(send.data(), send.size(), rank, stream);
          take(recv.data() + parts.offset[rank], parts.size(rank), rank, stream);
        }
      });
      copy_own(recv.data() + parts.offset[rank_], send.data(), send.size(), stream);
    });
  }

  void give(const std::byte* data, std::size_t bytes, int rank, cudaStream_t stream) {
    if (bytes == 0) return;  // both sides know the size
    check_nccl(ncclSend(data, bytes, ncclUint8, rank, handle_.get(), stream), "ncclSend",
               handle_.get());
  }

  void take(std::byte* data, std::size_t bytes, int rank, cudaStream_t stream) {
    if (bytes == 0) return;
    check_nccl(ncclRecv(data, bytes, ncclUint8, rank, handle_.get(), stream), "ncclRecv",
               handle_.get());
  }

  static void copy_own(std::byte* to, const std::byte* from, std::size_t bytes,
                       cudaStream_t stream) {
    if (bytes == 0 || to == from) return;
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
               "cudaMemcpyAsync");
  }

  template <typename Calls>
  void as_one_call(const Calls& calls) {
    check_nccl(ncclGroupStart(), "ncclGroupStart", nullptr);
    try {
      calls();
    } catch (...) {
      ncclGroupEnd();
      throw;
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd", handle_.get());
  }

  // Runs `calls` on this object's stream after the work of the default stream, and waits for them.
  template <typename Calls>
  void on_stream(const Calls& calls) {
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    check_cuda(cudaEventRecord(ready_.get(), cudaStreamLegacy), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(stream_.get(), ready_.get(), 0), "cudaStreamWaitEvent");
    calls(stream_.get());
    check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    ncclResult_t later = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(handle_.get(), &later), "ncclCommGetAsyncError",
               handle_.get());
    check_nccl(later, "an NCCL collective", handle_.get());
  }

  int device_, rank_ = 0, size_ = 1;
  NcclHandle handle_;
  Stream stream_;
  Event ready_;
  DeviceBuffer token_;  // what a barrier adds up
};

// The id of the device. Throws where there is no such device.
std::string select_device(int device) {
  const std::vector<Device> devices = visible_devices().devices;
  if (device < 0 || device >= std::ssize(devices)) {
    throw DistError(fmt::format(
        "NCCL needs a GPU for every rank, but CUDA device {} is not there ({} visible); choose "
        "device: cpu, or reduce: tree over MPI",
        device, devices.size()));
  }
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  return devices[device].id;
}

std::string version_text(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int device) {
  std::string own;
  run_on_all_ranks(world, [&] { own = select_device(device); });
  const std::vector<std::string> ids = all_gather_text(world, own);
  for (std::size_t rank = 1; rank < ids.size(); ++rank) {
    const std::size_t first = std::find(ids.begin(), ids.end(), ids[rank]) - ids.begin();
    if (first == rank) continue;
    throw DistError(fmt::format(
        "ranks {} and {} are on the same GPU ({}), which NCCL refuses; start one rank per GPU",
        first, rank, ids[rank]));
  }
  ncclUniqueId id{};
  run_on_all_ranks(world, [&] {
    if (world.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr);
  });
  world.broadcast(std::span<char>(id.internal), 0);
  std::unique_ptr<Communicator> made;
  run_on_all_ranks(world, [&] {
    ncclComm_t comm = nullptr;
    check_nccl(ncclCommInitRank(&comm, world.size(), id, world.rank()), "ncclCommInitRank",
               nullptr);
    made = std::make_unique<NcclComm>(NcclHandle(comm), device);
  });
  return made;
}

std::string nccl_version_report() {
  int library = 0;
  const ncclResult_t code = ncclGetVersion(&library);
  if (code != ncclSuccess) return fmt::format("NCCL: {}", ncclGetErrorString(code));
  return fmt::format("NCCL: header {}, library {}, {}", version_text(NCCL_VERSION_CODE),
                     version_text(library),
                     library == NCCL_VERSION_CODE
                         ? "equal"
                         : "NOT EQUAL: build again where include and library folders belong "
                           "together");
}

#endif

}  // namespace tpudist
