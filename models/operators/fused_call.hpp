#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/buffer_cache.hpp"
#include "core/thread_pool.hpp"
#include "models/kernels/precision.hpp"
#include "models/kernels/row_kernels.hpp"
#include "models/plans/plan.hpp"

// The common base of the fused layers of the CPU (FusedEncoder, FusedSage, FusedReadout). Each
// computes a whole layer forward or backward in at most two loops over tasks. A task is a block of
// rows of one member, or a tile of a weight gradient. It runs in one thread, so the bits depend
// only on the rows.

namespace tpudist {

// One matrix for each of several members: [members, rows, stride], every row on a 64-byte boundary.
struct MemberRows {
  Buffer buffer;
  std::int64_t rows = 0, stride = 0;
  int members = 0;
  Rows of(int member) const { return {buffer.data() + member * rows * stride, stride}; }
  bool empty() const { return !buffer.data(); }
};

// Members of a call that run together, and whether they run only the needed rows
// (Plan::needed_rows).
struct MemberSet {
  int first = 0, count = 0;
  bool needed = false;
};

// The gradients [P] of all members of a call, on 64-byte boundaries.
using MemberGradients = std::span<const std::span<float>>;

// What the fused layers of one call share. Borrowed for the call.
struct FusedCall {
  const Plan& plan;
  const float* flat;  // [members, parameters], on a 64-byte boundary
  std::int64_t parameters;
  Precision precision;
  ThreadPool& pool;
  BufferCache& buffers;

  const float* weights(int member) const { return flat + member * parameters; }
  MemberRows take(std::int64_t rows, std::int64_t stride, int members) const {
    return {buffers.take(members * rows * stride), rows, stride, members};
  }
  // The number of rows before plan layer `depth`, or after the last layer if `depth` is the number
  // of layers.
  std::int64_t rows(std::size_t depth, bool needed) const {
    return needed ? plan.needed_rows(depth) : plan.rows(depth);
  }
};

// A block of the rows of one member.
using BlockTask = std::function<void(int member, std::int64_t first, std::int64_t count)>;
// Runs the task for every block of kBlockRows rows.
void for_blocks(ThreadPool& pool, MemberSet members, std::int64_t rows, const BlockTask& task);

// A block of the rows of one of several matrices.
using RangeTask =
    std::function<void(int member, std::size_t range, std::int64_t first, std::int64_t count)>;
using OtherTask = std::function<void(int member, std::int64_t i)>;
// Runs other(0) .. other(others - 1) for each member, then the blocks of all matrices. Matrices
// with fewer rows have smaller blocks (refined_block_rows).
void for_ranges(ThreadPool& pool, MemberSet members, std::span<const std::int64_t> rows,
                const RangeTask& task, std::int64_t others = 0, const OtherTask& other = {});

// Partial gradients of one range of the parameters: [members, parts, length]. Members are counted
// from the first one of the set.
class Partials {
 public:
  Partials(const FusedCall& call, int members, std::int64_t parts, std::int64_t begin,
           std::int64_t end);
  float* of(int place, std::int64_t part) const {
    return buffer_.data() + (place * parts_ + part) * length_;
  }
  std::int64_t length() const { return length_; }
  // The number of tasks per member that add up the parts, in order.
  std::int64_t pieces() const;
  void add_up(int place, std::int64_t piece, std::span<float> gradient) const;

 private:
  Buffer buffer_;
  std::int64_t parts_, begin_, length_;
};

}  // namespace tpudist
