#include "models/operators/fused_call.hpp"

#include <algorithm>
#include <vector>

#include "models/kernels/cpu_blocks.hpp"

namespace tpudist {
namespace {

// Floats of one task that adds up partial gradients.
constexpr std::int64_t kPiece = 16384;

}  // namespace

void for_blocks(ThreadPool& pool, MemberSet members, std::int64_t rows, const BlockTask& task) {
  const std::int64_t blocks = block_count(rows);
  pool.parallel_for(members.count * blocks, [&](std::int64_t i) {
    const std::int64_t first = i % blocks * kBlockRows;
    task(members.first + static_cast<int>(i / blocks), first, std::min(kBlockRows, rows - first));
  });
}

void for_ranges(ThreadPool& pool, MemberSet members, std::span<const std::int64_t> rows,
                const RangeTask& task, std::int64_t others, const OtherTask& other) {
  std::vector<std::int64_t> end;  // tasks of one member up to the end of each range
  std::int64_t tasks = others;
  for (const std::int64_t n : rows) {
    const std::int64_t size = refined_block_rows(n);
    end.push_back(tasks += (n + size - 1) / size);
  }
  pool.parallel_for(members.count * tasks, [&](std::int64_t i) {
    const int member = members.first + static_cast<int>(i / tasks);
    const std::int64_t at = i % tasks;
    if (at < others) return other(member, at);
    const std::size_t range = std::upper_bound(end.begin(), end.end(), at) - end.begin();
    const std::int64_t size = refined_block_rows(rows[range]);
    const std::int64_t first = (at - (range ? end[range - 1] : others)) * size;
    task(member, range, first, std::min(size, rows[range] - first));
  });
}

Partials::Partials(const FusedCall& call, int members, std::int64_t parts, std::int64_t begin,
                   std::int64_t end)
    : buffer_(call.buffers.take(members * parts * (end - begin))),
      parts_(parts),
      begin_(begin),
      length_(end - begin) {}

std::int64_t Partials::pieces() const {
  return (length_ + kPiece - 1) / kPiece;
}

void Partials::add_up(int place, std::int64_t piece, std::span<float> gradient) const {
  const std::int64_t at = piece * kPiece;
  sum_parts(of(place, 0) + at, length_, parts_, std::min(kPiece, length_ - at),
            gradient.data() + begin_ + at);
}

}  // namespace tpudist
