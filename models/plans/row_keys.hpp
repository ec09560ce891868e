#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// Returns the class of each row [n]: rows with equal floats (-0.0 equals 0) and equal extra bytes
// get equal numbers, by first occurrence. `rows` is [n, width]; `extra` is [n], or empty for no
// extra bytes. Rows are compared in full, not only by hash. A row with a NaN equals no row. Pure,
// thread-safe.
std::vector<std::int32_t> classes_of_rows(std::span<const float> rows, std::int64_t width,
                                          std::span<const std::uint8_t> extra = {});

// Returns a key for every row of a plan, before layer 0 .. depth (depth: after the last): a hash of
// all inputs of the row's state. Rows of equal content have equal keys in dense and refined plans
// and in parts of a slate, so random draws by key are the same in all of them. `node_keys`
// [plan.nodes] and `state_keys` [plan.states] are hashes of the contents of input rows and states.
// Only for plans whose weights are multiplicities. Pure, thread-safe.
std::vector<std::vector<std::uint64_t>> row_keys(const Plan& plan,
                                                 std::span<const std::uint64_t> node_keys,
                                                 std::span<const std::uint64_t> state_keys);

// Returns a key for every (node, configuration), in the row order of a dense plan with
// Plan::config: a hash of the content of the whole configuration and of the node's number in its
// graph. Equal configurations have equal keys at a node, and a configuration has the same keys in
// every slate and in parts of it. `last_keys`: row_keys(...).back(). Pure, thread-safe.
std::vector<std::uint64_t> element_keys(const Plan& plan, std::span<const std::uint64_t> last_keys);

}  // namespace tpudist
