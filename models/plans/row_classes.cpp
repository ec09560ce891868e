#include "models/plans/row_classes.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/hash.hpp"

namespace tpudist {
namespace {

// The row with every -0.0 made 0, so that equal numbers have equal bytes.
void normalise(std::span<const float> row, std::vector<float>& out) {
  out.assign(row.begin(), row.end());
  for (float& value : out) value += 0.0f;
}

}  // namespace

std::vector<std::int32_t> classes_of_rows(std::span<const float> rows, std::int64_t width,
                                          std::span<const std::uint8_t> extra) {
  const std::int64_t count = static_cast<std::int64_t>(rows.size()) / width;
  const auto row_at = [&](std::int64_t i) { return rows.subspan(i * width, width); };
  const auto extra_at = [&](std::int64_t i) { return extra.empty() ? 0 : extra[i]; };
  std::vector<std::int32_t> classes(count);
  std::vector<std::int64_t> first;  // row that started each class
  std::unordered_multimap<std::uint64_t, std::int32_t> by_hash;
  std::vector<float> bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    normalise(row_at(i), bytes);
    const std::uint64_t hash = hash64(std::as_bytes(std::span(bytes)), extra_at(i));
    const auto [begin, end] = by_hash.equal_range(hash);
    const auto known = std::find_if(begin, end, [&](const auto& entry) {
      const std::int64_t other = first[entry.second];
      return extra_at(other) == extra_at(i) && std::ranges::equal(row_at(other), row_at(i));
    });
    if (known != end) {
      classes[i] = known->second;
      continue;
    }
    classes[i] = static_cast<std::int32_t>(first.size());
    by_hash.emplace(hash, classes[i]);
    first.push_back(i);
  }
  return classes;
}

}  // namespace tpudist
