#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/hdf5/hdf5_dataset.hpp"

namespace tpudist {

// Groups the rows of a dataset by equal bytes: returns one number per row, equal for equal rows,
// numbered by first occurrence. `hashes` [rows] are any hashes of the rows. Equal hashes only
// suggest equal rows; each suggestion is checked in the dataset. Holds about `budget_bytes` of rows
// at a time, and 24 bytes per row.
std::vector<std::int32_t> group_equal_rows(const Hdf5Dataset& dataset,
                                           std::span<const std::uint64_t> hashes,
                                           std::size_t budget_bytes = 24 << 20);

}  // namespace tpudist
