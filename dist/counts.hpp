#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tpudist {

// Where each rank's part lies in the buffers of an exchange, in bytes.
struct Parts {
  std::vector<std::size_t> offset;  // [ranks + 1]
  std::size_t size(int rank) const { return offset[rank + 1] - offset[rank]; }
};

// Turns counts in elements into offsets in bytes. Throws DistError, with the name of the `call`,
// unless there are `ranks` counts, none is negative and they fill `buffer_bytes` exactly.
Parts parts_of(std::span<const std::int64_t> counts, std::int64_t element_bytes, int ranks,
               std::size_t buffer_bytes, std::string_view call);

// The parts of both sides of an all_to_all. This rank's own part is as large on both sides, or left
// out of what is received (`copies_own` is then false).
struct Exchange {
  Parts send, recv;
  bool copies_own = false;
};
// Throws DistError when counts and buffers do not fit together.
Exchange exchange_of(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                     std::span<const std::byte> recv, std::span<const std::int64_t> recv_counts,
                     std::int64_t element_bytes, int rank, int ranks);

// Returns the parts of an all_gather. Throws DistError when counts and `recv` do not fit together,
// or `send` has not the size of this rank's part.
Parts gather_parts_of(std::span<const std::byte> send, std::span<const std::byte> recv,
                      std::span<const std::int64_t> counts, std::int64_t element_bytes, int rank,
                      int ranks);

// Throws DistError unless 0 <= root < ranks.
void check_root(int root, int ranks);

// Throws DistError unless color >= 0.
void check_color(int color);

}  // namespace tpudist
