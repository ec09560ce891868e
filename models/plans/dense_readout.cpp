#include "models/plans/dense_rows.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "models/plans/csr.hpp"

namespace tpudist {
namespace {

// 0, 1, ... n
std::vector<std::int32_t> offsets_to(std::int64_t n) {
  std::vector<std::int32_t> offsets(n + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  return offsets;
}

// A matrix without the entries of these source rows.
Csr without(const Csr& matrix, const std::vector<char>& rows) {
  if (rows.empty()) return matrix;
  Csr kept;
  kept.begin.push_back(0);
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e) {
      if (rows[matrix.source[e]]) continue;
      kept.source.push_back(matrix.source[e]);
      kept.weight.push_back(matrix.weight_of(e));
    }
    kept.begin.push_back(to_index32(kept.entries()));
  }
  return kept;
}

}  // namespace

Readout make_dense_readout(std::span<const PlanSlate> slates, bool mean, const DenseRows& rows,
                           std::size_t depth) {
  Readout readout;
  std::vector<std::vector<std::int64_t>> cell_rows(slates.size());  // of the first configuration
  std::vector<std::vector<std::int64_t>> common_rows(slates.size());
  std::int64_t place = 0;
  std::vector<std::int64_t> nodes(slates.size(), 0);
  std::vector<char> constant;  // [rows]; empty: none
  for (const auto& [s, node] : rows.places()) {
    const NodeUse use = slates[s].use.empty() ? NodeUse::trained : slates[s].use[node];
    if (use == NodeUse::constant) {
      constant.resize(static_cast<std::size_t>(rows.rows()), 0);
      std::fill_n(constant.begin() + rows.first_row(place), slates[s].configs, 1);
    }
    if (use == NodeUse::left_out) {
      ++place;
      continue;
    }
    ++nodes[s];
    (place < rows.needed_places(depth) ? cell_rows : common_rows)[s].push_back(
        rows.first_row(place));
    ++place;
  }
  readout.cells.forward.begin.push_back(0);
  readout.common.forward.begin.push_back(0);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const float weight = mean ? static_cast<float>(1.0 / nodes[s]) : 1.0f;
    for (std::int64_t k = 0; k < slates[s].configs; ++k) {
      for (const std::int64_t row : cell_rows[s]) {
        readout.cells.forward.source.push_back(to_index32(row + k));
      }
      readout.cells.forward.begin.push_back(to_index32(readout.cells.forward.entries()));
      readout.slate_of_config.push_back(static_cast<std::int32_t>(s));
    }
    readout.cells.forward.weight.resize(readout.cells.forward.source.size(), weight);
    for (const std::int64_t row : common_rows[s]) {
      readout.common.forward.source.push_back(to_index32(row));
    }
    readout.common.forward.begin.push_back(to_index32(readout.common.forward.entries()));
    readout.common.forward.weight.resize(readout.common.forward.source.size(), weight);
  }
  readout.cells.transposed = transpose(without(readout.cells.forward, constant), rows.rows());
  readout.common.transposed = transpose(without(readout.common.forward, constant), rows.rows());
  const auto configs = static_cast<std::int64_t>(readout.slate_of_config.size());
  std::vector<std::int32_t> every(configs);
  std::iota(every.begin(), every.end(), 0);
  readout.scores.forward = readout.scores.transposed = {offsets_to(configs), every, {}};
  return readout;
}

}  // namespace tpudist
