#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tpudist {

// The byte ranges of the ranks' parts in the buffer of an exchange.
struct Parts {
  std::vector<std::size_t> offset;  // [ranks + 1]
  std::size_t size(int rank) const { return offset[rank + 1] - offset[rank]; }
};

// Turns counts in elements into offsets in bytes. Throws DistError, with the name of `call`, unless
// there are `ranks` counts, none is negative, and together they fill `buffer_bytes` exactly.
Parts parts_of(std::span<const std::int64_t> counts, std::int64_t element_bytes, int ranks,
               std::size_t buffer_bytes, std::string_view call);

// The parts of both sides of an all_to_all. This rank's own part has one size on both sides, or is
// missing on the receiving side; then `copies_own` is false.
struct Exchange {
  Parts send, recv;
  bool copies_own = false;
};
// Throws DistError when counts and buffers do not match.
Exchange exchange_of(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                     std::span<const std::byte> recv, std::span<const std::int64_t> recv_counts,
                     std::int64_t element_bytes, int rank, int ranks);

// Returns the parts of an all_gather. Throws DistError when counts and `recv` do not match, or
// `send` does not have the size of this rank's part.
Parts gather_parts_of(std::span<const std::byte> send, std::span<const std::byte> recv,
                      std::span<const std::int64_t> counts, std::int64_t element_bytes, int rank,
                      int ranks);

// Throws DistError unless 0 <= root < ranks.
void check_root(int root, int ranks);

// Throws DistError unless color >= 0.
void check_color(int color);

}  // namespace tpudist
