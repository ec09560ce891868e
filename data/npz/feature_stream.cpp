#include "data/npz/feature_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr std::uint64_t kBlockValues = 1 << 18;
constexpr std::size_t kBlocksAhead = 3;

}  // namespace

FeatureStream::FeatureStream(NpzArray array)
    : array_(std::move(array)), full_(kBlocksAhead), free_(kBlocksAhead) {
  for (std::size_t axis = 1; axis < array_.shape().size(); ++axis) {
    row_values_ *= static_cast<std::uint64_t>(array_.shape()[axis]);
  }
  row_values_ = std::max<std::uint64_t>(row_values_, 1);
  block_rows_ = static_cast<std::int64_t>(std::max<std::uint64_t>(kBlockValues / row_values_, 1));
  if (array_.remaining() > static_cast<std::uint64_t>(block_rows_) * row_values_) {
    for (std::size_t i = 0; i < kBlocksAhead; ++i) free_.push(Block{});
    thread_ = std::thread([this] { read_ahead(); });
  }
}

FeatureStream::~FeatureStream() {
  full_.close();
  free_.close();
  if (thread_.joinable()) thread_.join();
}

bool FeatureStream::fill(Block& block) {
  const auto rows = static_cast<std::int64_t>(array_.remaining() / row_values_);
  block.first_row = next_row_;
  block.rows = std::min(rows, block_rows_);
  block.values.resize(static_cast<std::size_t>(block.rows) * row_values_);
  if (block.rows == 0) return false;
  array_.read(block.values);
  next_row_ += block.rows;
  return true;
}

void FeatureStream::read_ahead() {
  try {
    while (auto block = free_.pop()) {
      if (!fill(*block) || !full_.push(std::move(*block))) break;
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  full_.close();
}

const FeatureStream::Block* FeatureStream::next() {
  if (!thread_.joinable()) {
    if (std::exchange(given_, true)) return nullptr;
    return current_.rows > 0 || fill(current_) ? &current_ : nullptr;
  }
  if (!current_.values.empty()) free_.push(std::move(current_));
  auto block = full_.pop();
  if (!block) {
    if (failure_) std::rethrow_exception(failure_);
    current_ = {};
    return nullptr;
  }
  current_ = std::move(*block);
  return &current_;
}

bool FeatureStream::restart() {
  given_ = false;
  return !thread_.joinable();
}

void FeatureStream::check_finite(const Block& block) const {
  const auto bad = std::ranges::find_if(block.values, [](float v) { return !std::isfinite(v); });
  if (bad == block.values.end()) return;
  const auto value = static_cast<std::uint64_t>(block.first_row) * row_values_ +
                     static_cast<std::uint64_t>(bad - block.values.begin());
  throw DataError(fmt::format("{} is {}", where(value), *bad));
}

}  // namespace tpudist
