#include "dist/collectives/counts.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace tpudist {

Parts parts_of(std::span<const std::int64_t> counts, std::int64_t element_bytes, int ranks,
               std::size_t buffer_bytes, std::string_view call) {
  if (std::ssize(counts) != ranks) {
    throw DistError(fmt::format("{}: {} counts given for {} ranks", call, counts.size(), ranks));
  }
  Parts parts;
  parts.offset.assign(1, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t left = buffer_bytes - parts.offset.back();
    if (counts[rank] < 0 || static_cast<std::size_t>(counts[rank]) > left / element_bytes) {
      throw DistError(fmt::format("{}: count {} for rank {} does not fit into a buffer of {} bytes",
                                  call, counts[rank], rank, buffer_bytes));
    }
    parts.offset.push_back(parts.offset.back() + counts[rank] * element_bytes);
  }
  if (parts.offset.back() != buffer_bytes) {
    throw DistError(fmt::format("{}: the counts cover {} bytes of a buffer of {}", call,
                                parts.offset.back(), buffer_bytes));
  }
  return parts;
}

Exchange exchange_of(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                     std::span<const std::byte> recv, std::span<const std::int64_t> recv_counts,
                     std::int64_t element_bytes, int rank, int ranks) {
  Exchange exchange;
  exchange.send = parts_of(send_counts, element_bytes, ranks, send.size(), "all_to_all (send)");
  exchange.recv = parts_of(recv_counts, element_bytes, ranks, recv.size(), "all_to_all (receive)");
  exchange.copies_own = exchange.recv.size(rank) > 0;
  if (exchange.copies_own && exchange.send.size(rank) != exchange.recv.size(rank)) {
    throw DistError(fmt::format("all_to_all: rank {} sends {} elements to itself and expects {}",
                                rank, send_counts[rank], recv_counts[rank]));
  }
  return exchange;
}

Parts gather_parts_of(std::span<const std::byte> send, std::span<const std::byte> recv,
                      std::span<const std::int64_t> counts, std::int64_t element_bytes, int rank,
                      int ranks) {
  Parts parts = parts_of(counts, element_bytes, ranks, recv.size(), "all_gather");
  if (send.size() != parts.size(rank)) {
    throw DistError(fmt::format("all_gather: rank {} gives {} bytes, but its count says {}", rank,
                                send.size(), parts.size(rank)));
  }
  return parts;
}

void check_root(int root, int ranks) {
  if (root < 0 || root >= ranks) {
    throw DistError(fmt::format("broadcast: root {} is not a rank of {}", root, ranks));
  }
}

void check_color(int color) {
  if (color < 0) throw DistError(fmt::format("split: colour {} is negative", color));
}

}  // namespace tpudist
