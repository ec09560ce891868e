#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/hdf5/hdf5.hpp"
#include "ensemble/predictions.hpp"

// How a file of predictions keeps its header: attributes of the file and the groups /runs, /members and
// /graphs. For ensemble/predictions_file only.

namespace tpudist {

// Empty where a header fits itself, else what does not.
std::string fault_of(const PredictionsHeader& header);

// Where the rows of each graph begin among those of all graphs, and where the last ones end. [G + 1]
std::vector<std::int64_t> row_begins(const PredictionsHeader& header);

// `where`: the file, for messages. Throws IoError.
void write_header(const Hdf5Id& file, const PredictionsHeader& header, const std::string& where);

// Throws DataError when the file is none of predictions, of a newer version, or its header is damaged
// or does not fit itself; IoError.
PredictionsHeader read_header(const Hdf5Id& file, const std::string& where);

}  // namespace tpudist
