#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/hdf5/hdf5.hpp"
#include "records/predictions.hpp"

// How a prediction file stores its header: attributes of the file and the groups /runs, /members
// and /graphs. Only for records/predictions_file.

namespace tpudist {

// Describes the first inconsistency of a header; empty if there is none.
std::string fault_of(const PredictionsHeader& header);

// Index of each graph's first row among the rows of all graphs, and the total. [G + 1]
std::vector<std::int64_t> row_begins(const PredictionsHeader& header);

// `where`: the file, for messages. Throws IoError.
void write_header(const Hdf5Id& file, const PredictionsHeader& header, const std::string& where);

// Throws DataError when the file is not a prediction file, is of a newer version, or has a damaged
// or inconsistent header; also IoError.
PredictionsHeader read_header(const Hdf5Id& file, const std::string& where);

}  // namespace tpudist
