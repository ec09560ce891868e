#include "dist/collectives/mpi_communicator.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "dist/collectives/counts.hpp"

namespace tpudist {
namespace {

using Collective = RankActivity::Collective;

MPI_Op to_mpi(ReduceOp op) {
  switch (op) {
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::sum:
      break;
  }
  return MPI_SUM;
}

// Calls piece(offset, count) for pieces of at most `largest` of `total`.
template <typename Piece>
void in_pieces(std::size_t total, std::int64_t largest, const Piece& piece) {
  for (std::size_t offset = 0; offset < total;) {
    const std::size_t count = std::min(total - offset, static_cast<std::size_t>(largest));
    piece(offset, static_cast<int>(count));
    offset += count;
  }
}

}  // namespace

void check_mpi(int code, std::string_view call, std::source_location place) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw DistError(fmt::format("{} failed: {} ({}:{})", call, std::string_view(text, length),
                              std::filesystem::path(place.file_name()).filename().string(),
                              place.line()));
}

MpiComm::MpiComm(MPI_Comm owned, std::int64_t largest_count, RankActivity* activity)
    : comm_(owned), largest_count_(largest_count), activity_(activity) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

MpiComm::~MpiComm() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && MPI_Comm_free(&comm_) != MPI_SUCCESS) spdlog::warn("MPI_Comm_free failed");
}

void MpiComm::barrier() {
  const Collective call(activity_, "barrier", 0);
  check_mpi(MPI_Barrier(comm_), "MPI_Barrier");
}

bool MpiComm::wait_for_all(std::chrono::milliseconds patience,
                           const std::function<bool()>& in_vain) {
  const Collective call(activity_, "wait_for_all", 0, /*patient=*/true);
  constexpr std::chrono::milliseconds kShortest{1}, kLongest{20};  // between two checks
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  const auto begin = std::chrono::steady_clock::now();
  for (auto pause = kShortest;; pause = std::min(2 * pause, kLongest)) {
    int all_here = 0;
    check_mpi(MPI_Test(&request, &all_here, MPI_STATUS_IGNORE), "MPI_Test");
    if (all_here) return true;
    if (std::chrono::steady_clock::now() - begin >= patience) return false;
    if (in_vain && in_vain()) return false;
    std::this_thread::sleep_for(pause);
  }
}

std::unique_ptr<Communicator> MpiComm::split(int color) {
  check_color(color);
  const Collective call(activity_, "split", 0);
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, color, rank_, &part), "MPI_Comm_split");
  return std::make_unique<MpiComm>(part, largest_count_, activity_);
}

std::unique_ptr<MpiComm> MpiComm::split_by_node() {
  const Collective call(activity_, "split_by_node", 0);
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  return std::make_unique<MpiComm>(node, largest_count_, activity_);
}

void MpiComm::broadcast_bytes(std::span<std::byte> data, int root) {
  check_root(root, size_);
  const Collective call(activity_, "broadcast", data.size());
  in_pieces(data.size(), largest_count_, [&](std::size_t offset, int count) {
    check_mpi(MPI_Bcast(data.data() + offset, count, MPI_BYTE, root, comm_), "MPI_Bcast");
  });
}

void MpiComm::all_reduce(Numbers data, ReduceOp op) {
  const MPI_Datatype type = std::array{MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T}[data.index()];
  std::visit(
      [&](auto numbers) {
        const Collective call(activity_, "all_reduce", numbers.size_bytes());
        in_pieces(numbers.size(), largest_count_, [&](std::size_t offset, int count) {
          check_mpi(
              MPI_Allreduce(MPI_IN_PLACE, numbers.data() + offset, count, type, to_mpi(op), comm_),
              "MPI_Allreduce");
        });
      },
      data);
}

// Point to point rather than MPI_Alltoallv, for which the ranks would first have to agree whether
// all counts fit. Sender and receiver of a pair know the same size, so they cut it in the same
// pieces.
void MpiComm::all_to_all_bytes(std::span<const std::byte> send,
                               std::span<const std::int64_t> send_counts, std::span<std::byte> recv,
                               std::span<const std::int64_t> recv_counts,
                               std::int64_t element_bytes) {
  const Exchange parts =
      exchange_of(send, send_counts, recv, recv_counts, element_bytes, rank_, size_);
  const Collective call(activity_, "all_to_all", std::max(send.size(), recv.size()));
  constexpr int tag = 0;
  std::vector<MPI_Request> requests;
  for (int step = 1; step < size_; ++step) {
    const int source = (rank_ - step + size_) % size_;
    std::byte* data = recv.data() + parts.recv.offset[source];
    in_pieces(parts.recv.size(source), largest_count_, [&](std::size_t offset, int count) {
      check_mpi(
          MPI_Irecv(data + offset, count, MPI_BYTE, source, tag, comm_, &requests.emplace_back()),
          "MPI_Irecv");
    });
  }
  for (int step = 1; step < size_; ++step) {
    const int target = (rank_ + step) % size_;
    const std::byte* data = send.data() + parts.send.offset[target];
    in_pieces(parts.send.size(target), largest_count_, [&](std::size_t offset, int count) {
      check_mpi(
          MPI_Isend(data + offset, count, MPI_BYTE, target, tag, comm_, &requests.emplace_back()),
          "MPI_Isend");
    });
  }
  if (parts.copies_own) {
    std::memcpy(recv.data() + parts.recv.offset[rank_], send.data() + parts.send.offset[rank_],
                parts.send.size(rank_));
  }
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
}

void MpiComm::all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                               std::span<const std::int64_t> counts, std::int64_t element_bytes) {
  const Parts parts = gather_parts_of(send, recv, counts, element_bytes, rank_, size_);
  std::byte* own = recv.data() + parts.offset[rank_];
  if (!send.empty() && own != send.data()) std::memcpy(own, send.data(), send.size());
  if (std::ssize(recv) > largest_count_) {  // the same decision on all ranks
    for (int root = 0; root < size_; ++root) {
      broadcast_bytes(recv.subspan(parts.offset[root], parts.size(root)), root);
    }
    return;
  }
  const Collective call(activity_, "all_gather", recv.size());
  std::vector<int> sizes(size_), offsets(size_);
  for (int rank = 0; rank < size_; ++rank) {
    sizes[rank] = static_cast<int>(parts.size(rank));
    offsets[rank] = static_cast<int>(parts.offset[rank]);
  }
  check_mpi(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, recv.data(), sizes.data(), offsets.data(),
                           MPI_BYTE, comm_),
            "MPI_Allgatherv");
}

}  // namespace tpudist
