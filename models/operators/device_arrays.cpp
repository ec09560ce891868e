#include "models/operators/device_arrays.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.hpp"
#include "models/operators/operators.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kBoundary = 256;  // bytes; as cudaMalloc aligns at least

std::vector<float> totals_of(const Csr& matrix) {
  std::vector<float> totals;
  totals.reserve(static_cast<std::size_t>(matrix.rows()));
  for (std::int64_t row = 0; row < matrix.rows(); ++row)
    totals.push_back(static_cast<float>(std::max(matrix.total_weight(row), 1.0)));
  return totals;
}

}  // namespace

void DeviceArrays::add_bytes(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  const auto [part, is_new] = part_of_.try_emplace(data, parts_.size());
  if (is_new) {
    parts_.push_back({data, bytes_, bytes});
    bytes_ += (bytes + kBoundary - 1) / kBoundary * kBoundary;
  } else if (parts_[part->second].bytes != bytes) {
    throw Error(ErrorKind::failed, "two arrays of a plan lie at one place");
  }
}

void DeviceArrays::add(const Csr& matrix) {
  add(matrix.begin);
  add(matrix.source);
  add(matrix.weight);
  LongRows split = split_long_rows(matrix, chunk_);
  if (split.row.empty()) return;
  const auto [kept, is_new] = long_rows_.try_emplace(&matrix, std::move(split));
  if (!is_new) return;
  add(kept->second.chunk_begin);
  add(kept->second.chunk_row);
  add(kept->second.row);
  add(kept->second.begin);
}

void DeviceArrays::add(const SparseMatrix& matrix) {
  add(matrix.forward);
  add(matrix.transposed);
  const auto [kept, is_new] = totals_.try_emplace(&matrix);
  if (is_new) add(kept->second = totals_of(matrix.forward));
}

void DeviceArrays::add(const GatherIndex& gather) {
  if (gather.is_identity()) return;
  add(gather.index);
  add(gather.transposed);
}

void DeviceArrays::add(const PlanLayer& layer) {
  add(layer.self);
  for (const EdgeSet& edges : layer.edges) {
    add(edges.aggregate);
    add(edges.neighbourhood);
  }
}

void DeviceArrays::add(const RowGroups& groups) {
  add(groups.rows);
  add(groups.of_row);
  add(groups.count);
  add(groups.size);
}

void DeviceArrays::add(const NeighbourEntries& entries) {
  add(entries.source);
  add(entries.of_source);
  add(entries.of_row);
}

void DeviceArrays::add(const Readout& readout) {
  for (const SparseMatrix* matrix : {&readout.cells, &readout.scores, &readout.common}) {
    add(matrix->forward);
    add(matrix->transposed);
  }
  add(readout.slate_of_config);
  const auto [kept, is_new] = derived_.try_emplace(&readout);
  if (!is_new) return;
  Derived& derived = kept->second;
  std::vector<std::int32_t> slate_of_config = readout.slate_of_config;
  if (units_) {  // padding has no slate
    std::ranges::fill(slate_of_config, -1);
    for (const RowRun& run : units_->configs->runs)
      std::copy_n(readout.slate_of_config.begin() + run.begin, run.count,
                  slate_of_config.begin() + run.begin);
  }
  derived = {node_counts(readout), transpose_index(slate_of_config, readout.common.forward.rows())};
  add(derived.nodes);
  add(derived.configs_of_slate);
}

void DeviceArrays::add(NodeAttention& attention) {
  for (at::Tensor* const tensor : attention.tensors()) add(*tensor);
  add(attention.after.of_plan);
  add(attention.before.of_plan);
}

void DeviceArrays::add(const std::shared_ptr<const JoinedUnits>& units) {
  units_ = units;
  if (!units) return;
  for (const auto& kind : units->kinds) {
    add(kind->runs);
    add(kind->run_of_row);
    add(kind->rows_of_run);
  }
}

void DeviceArrays::add(at::Tensor& tensor) {
  add_bytes(tensor.const_data_ptr(), tensor.nbytes());
  tensors_.push_back(&tensor);
}

void DeviceArrays::upload(DeviceCopies& copies) {
  buffer_ = copies.upload(parts_, bytes_);
  for (at::Tensor* const tensor : tensors_) {
    const auto bytes = static_cast<std::int64_t>(tensor->nbytes());
    const std::size_t begin = bytes ? parts_[part_of_.at(tensor->const_data_ptr())].begin : 0;
    *tensor = buffer_.narrow(0, static_cast<std::int64_t>(begin), bytes)
                  .view(tensor->scalar_type())
                  .view(tensor->sizes());
  }
  tensors_.clear();
}

const void* DeviceArrays::find_bytes(const void* data, std::size_t bytes) const {
  if (bytes == 0) return nullptr;
  const auto found = part_of_.find(data);
  if (found == part_of_.end() || parts_[found->second].bytes != bytes || !buffer_.defined())
    throw Error(ErrorKind::failed,
                "an operator takes an array of a plan that is not on the device");
  return buffer_.const_data_ptr<std::uint8_t>() + parts_[found->second].begin;
}

CsrPointers DeviceArrays::find(const Csr& matrix) const {
  CsrPointers found{find(matrix.begin), find(matrix.source), find(matrix.weight), matrix.rows()};
  const auto split = long_rows_.find(&matrix);
  if (split == long_rows_.end()) return found;
  const LongRows& rows = split->second;
  found.long_rows = {rows.length,
                     find(rows.chunk_begin),
                     find(rows.chunk_row),
                     find(rows.row),
                     find(rows.begin),
                     static_cast<std::int64_t>(rows.chunk_row.size()),
                     static_cast<std::int64_t>(rows.row.size())};
  return found;
}

const float* DeviceArrays::find_totals(const SparseMatrix& matrix) const {
  const auto totals = totals_.find(&matrix);
  if (totals == totals_.end())
    throw Error(ErrorKind::failed, "a mean takes a matrix that is not on the device");
  return find(totals->second);
}

GroupPointers DeviceArrays::find(const RowGroups& groups) const {
  const auto count = static_cast<std::int64_t>(groups.count.size());
  GroupPointers found{find(groups.rows), find(groups.of_row), find(groups.count), find(groups.size),
                      count};
  if (units_) found.run = find(units_->of(groups.groups()).run_of_row);
  return found;
}

ReadoutPointers DeviceArrays::find(const Readout& readout) const {
  const auto derived = derived_.find(&readout);
  if (derived == derived_.end())
    throw Error(ErrorKind::failed, "an operator takes a readout that is not on the device");
  return {find(readout.cells.forward),
          find(readout.cells.transposed),
          find(readout.common.forward),
          find(readout.common.transposed),
          find(readout.scores.forward),
          find(readout.scores.transposed),
          find(derived->second.configs_of_slate),
          find(readout.slate_of_config),
          find(derived->second.nodes)};
}

}  // namespace tpudist
