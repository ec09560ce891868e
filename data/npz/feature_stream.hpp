#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/bounded_queue.hpp"
#include "data/npz/npz_reader.hpp"

namespace tpudist {

// The rows (first axis) of a float array of an NPZ file. A separate thread inflates rows ahead; an
// array of one block needs no thread. Holds a fixed number of blocks of about 1 MiB, or of one row
// if a row is larger. Nothing else may use the reader meanwhile. One consumer.
class FeatureStream {
 public:
  struct Block {
    std::int64_t first_row = 0, rows = 0;
    std::vector<float> values;  // [rows, row_values]
  };

  explicit FeatureStream(NpzArray array);
  ~FeatureStream();
  FeatureStream(const FeatureStream&) = delete;
  FeatureStream& operator=(const FeatureStream&) = delete;

  // The next rows; null at the end. The block is valid until the next call. Throws as
  // NpzArray::read.
  const Block* next();
  // If the array is one block, next() returns that block again, without reading. Returns false for
  // larger arrays.
  bool restart();

  // "FILE: NAME[i, j, k]" of a value, by its C-order index in the whole array.
  std::string where(std::uint64_t value) const { return array_.where(value); }
  // Throws DataError at the first value of the block that is NaN or infinite.
  void check_finite(const Block& block) const;

 private:
  void read_ahead();
  bool fill(Block& block);

  NpzArray array_;
  std::uint64_t row_values_ = 1;
  std::int64_t block_rows_ = 1, next_row_ = 0;
  Block current_;
  bool given_ = false;  // whether next() has returned the only block
  BoundedQueue<Block> full_, free_;
  std::exception_ptr failure_;  // set before full_ is closed
  std::thread thread_;
};

}  // namespace tpudist
