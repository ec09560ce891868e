#include "models/plans/row_keys.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/hash.hpp"
#include "models/plans/colour_table.hpp"

namespace tpudist {
namespace {

// The row with every -0.0 made 0, so that equal numbers have equal bytes.
void normalise(std::span<const float> row, std::vector<float>& out) {
  out.assign(row.begin(), row.end());
  for (float& value : out) value += 0.0f;
}

std::uint64_t join(std::uint64_t a, std::uint64_t b) {
  return mix_hash(mix_hash(a + 0x9e3779b97f4a7c15ull) ^ b);
}

std::uint64_t key_of_state(std::int32_t state, std::span<const std::uint64_t> state_keys) {
  return state < 0 ? 0x5bd1e995u : state_keys[state];
}

// The hash of a multiset: the sum of its members' hashes.
std::vector<std::uint64_t> neighbourhood_keys(const SparseMatrix& matrix,
                                              const std::vector<std::uint64_t>& rows) {
  const Csr& csr = matrix.forward;
  std::vector<std::uint64_t> keys;
  for (std::int64_t i = 0; i < csr.rows(); ++i) {
    for (std::int64_t replica = 0; replica < matrix.replicas; ++replica) {
      std::uint64_t sum = 0;
      for (std::int64_t e = csr.begin[i]; e < csr.begin[i + 1]; ++e) {
        const auto count = static_cast<std::uint64_t>(csr.weight_of(e));
        sum += count * mix_hash(rows[csr.source[e] * matrix.replicas + replica]);
      }
      keys.push_back(sum);
    }
  }
  return keys;
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

std::vector<std::vector<std::uint64_t>> row_keys(const Plan& plan,
                                                 std::span<const std::uint64_t> node_keys,
                                                 std::span<const std::uint64_t> state_keys) {
  std::vector<std::vector<std::uint64_t>> levels(1);
  for (std::size_t row = 0; row < plan.node.size(); ++row) {
    levels[0].push_back(join(node_keys[plan.node[row]], key_of_state(plan.state[row], state_keys)));
  }
  for (const auto& layer : plan.layers) {
    const std::vector<std::uint64_t>& before = levels.back();
    std::vector<std::uint64_t> behind;
    for (std::int64_t row = 0; row < layer->rows_out; ++row) {
      std::uint64_t key = join(before[layer->self(row)], 1);
      if (!layer->state.empty()) key = join(key, key_of_state(layer->state[row], state_keys));
      behind.push_back(key);
    }
    for (const EdgeSet& edges : layer->edges) {
      const std::vector<std::uint64_t> around = neighbourhood_keys(edges.aggregate, before);
      for (std::int64_t row = 0; row < layer->rows_out; ++row)
        behind[row] = join(behind[row], around[edges.neighbourhood(row)]);
    }
    levels.push_back(std::move(behind));
  }
  return levels;
}

std::vector<std::uint64_t> element_keys(const Plan& plan,
                                        std::span<const std::uint64_t> last_keys) {
  // The rows of a configuration stand in the order of the nodes, since all of them are needed.
  std::vector<std::uint64_t> node, rows(static_cast<std::size_t>(plan.configs));
  for (const std::int32_t config : plan.config)
    node.push_back(config < 0 ? 0 : rows[config]++);  // below 0: padding of a joined plan
  std::vector<std::uint64_t> content(rows.size());
  for (std::size_t row = 0; row < node.size(); ++row) {
    if (plan.config[row] >= 0)
      content[plan.config[row]] += mix_hash(join(last_keys[row], node[row]));
  }
  std::vector<std::uint64_t> keys;
  for (std::size_t row = 0; row < node.size(); ++row)
    keys.push_back(plan.config[row] < 0 ? 0 : join(content[plan.config[row]], node[row]));
  return keys;
}

}  // namespace tpudist
