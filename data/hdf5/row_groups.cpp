#include "data/hdf5/row_groups.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

namespace tpudist {
namespace {

// Rows read in ascending order, one inflated chunk at a time.
class RowCursor {
 public:
  explicit RowCursor(const Hdf5Dataset& dataset) : dataset_(dataset) {}

  std::span<const std::byte> row(std::int64_t row) {
    const std::int64_t chunk = row / dataset_.chunk_rows();
    const std::size_t bytes = dataset_.row_bytes();
    if (chunk != chunk_) {
      data_.resize(static_cast<std::size_t>(dataset_.rows_of_chunk(chunk)) * bytes);
      dataset_.read_chunk(chunk, data_);
      chunk_ = chunk;
    }
    const auto within = static_cast<std::size_t>(row - chunk * dataset_.chunk_rows());
    return std::span(data_).subspan(within * bytes, bytes);
  }

 private:
  const Hdf5Dataset& dataset_;
  std::int64_t chunk_ = -1;
  std::vector<std::byte> data_;
};

// first[i] = the first row with the hash of row i.
std::vector<std::int32_t> first_of_same_hash(std::span<const std::uint64_t> hashes) {
  std::vector<std::int32_t> order(hashes.size()), first(hashes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
    const auto x = hashes[a], y = hashes[b];
    return x != y ? x < y : a < b;
  });
  std::int32_t leader = -1;
  for (const std::int32_t row : order) {
    const auto i = static_cast<std::size_t>(row);
    if (leader < 0 || hashes[leader] != hashes[i]) leader = row;
    first[i] = leader;
  }
  return first;
}

// Compares the rows of `pending` (ascending) that have a leader in `leaders` (ascending) with that
// leader. `differ` collects the rows that differ.
void compare(const Hdf5Dataset& dataset, std::span<const std::int32_t> leaders,
             std::span<const std::int32_t> first, std::span<const std::int32_t> pending,
             std::vector<std::int32_t>& differ) {
  const std::size_t bytes = dataset.row_bytes();
  std::vector<std::byte> held(leaders.size() * bytes);
  RowCursor cursor(dataset);
  for (std::size_t k = 0; k < leaders.size(); ++k) {
    std::memcpy(&held[k * bytes], cursor.row(leaders[k]).data(), bytes);
  }
  for (const std::int32_t row : pending) {
    const std::int32_t leader = first[row];
    const auto at = std::ranges::lower_bound(leaders, leader);
    if (at == leaders.end() || *at != leader) continue;
    const auto k = static_cast<std::size_t>(at - leaders.begin());
    if (std::memcmp(&held[k * bytes], cursor.row(row).data(), bytes) != 0) differ.push_back(row);
  }
}

// Compares all pending rows with their leaders, in groups of leaders that fit into the budget.
// Returns the rows that differ from their leader: unequal rows of one hash.
std::vector<std::int32_t> compare_all(const Hdf5Dataset& dataset,
                                      std::span<const std::int32_t> first,
                                      std::span<const std::int32_t> pending, std::size_t budget) {
  std::vector<std::int32_t> leaders, differ;
  for (const std::int32_t row : pending) leaders.push_back(first[row]);
  std::ranges::sort(leaders);
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  const std::size_t most =
      std::max<std::size_t>(budget / std::max<std::size_t>(dataset.row_bytes(), 1), 1);
  for (std::size_t begin = 0; begin < leaders.size(); begin += most) {
    const auto part = std::span(leaders).subspan(begin, std::min(most, leaders.size() - begin));
    compare(dataset, part, first, pending, differ);
  }
  std::ranges::sort(differ);
  return differ;
}

}  // namespace

std::vector<std::int32_t> group_equal_rows(const Hdf5Dataset& dataset,
                                           std::span<const std::uint64_t> hashes,
                                           std::size_t budget_bytes) {
  if (std::ssize(hashes) != dataset.rows()) {
    throw std::invalid_argument("group_equal_rows: one hash for each row");
  }
  std::vector<std::int32_t> first = first_of_same_hash(hashes), pending;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] != static_cast<std::int32_t>(i)) pending.push_back(static_cast<std::int32_t>(i));
  }
  while (!pending.empty()) {
    // The first row that differs from its leader becomes the leader of the others that differ.
    std::vector<std::int32_t> differ = compare_all(dataset, first, pending, budget_bytes);
    std::unordered_map<std::int32_t, std::int32_t> new_leader;
    pending.clear();
    for (const std::int32_t row : differ) {
      std::int32_t& leader = first[row];
      const auto [at, is_new] = new_leader.try_emplace(leader, row);
      leader = at->second;
      if (!is_new) pending.push_back(row);
    }
  }
  std::int32_t groups = 0;
  std::vector<std::int32_t> group(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto leader = static_cast<std::size_t>(first[i]);
    group[i] = leader == i ? groups++ : group[leader];
  }
  return group;
}

}  // namespace tpudist
