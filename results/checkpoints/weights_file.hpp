#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/parameters/parameter_table.hpp"
#include "core/safetensors/safetensors_file.hpp"

namespace tpudist {

// Writes one member's parameters, flat [P], as a safetensors file: a float32 tensor for each entry
// of the table, with the name and layout of PyTorch and PyTorch Geometric
// (ParameterEntry::torch_name, torch_transposes), without padding. Statistics are entries like
// others. Throws IoError.
void write_weights(const std::filesystem::path& path, const ParameterTable& table,
                   std::span<const float> flat, const std::map<std::string, std::string>& metadata);

// Reads such a file, of F32, F64, F16 or BF16, into `flat` [P]; padding is not changed. Entries of
// statistics may be missing: their values are not changed either, and their names are returned.
//
// Throws DataError, one line, when the file is damaged or not of a network with this table. It
// names the first parameter of the table that is missing or has another shape, else the first
// tensor that the network does not have, and what was expected. Also when a number is not finite, a
// scale of standardised columns is negative, or a temperature is 0. Names are those of the file.
std::vector<std::string> read_weights(const std::filesystem::path& path,
                                      const ParameterTable& table, std::span<float> flat);

// The tensors of a network that weights are taken from, as such a file has them.
struct WeightsSource {
  std::string where;  // for messages
  std::vector<StoredTensor> tensors;
  std::function<std::vector<float>(const std::string& name)> floats;
};
WeightsSource open_weights(const std::filesystem::path& path);
// One member's parameters, flat [P], which are borrowed.
WeightsSource weights_of(const std::string& where, const ParameterTable& table,
                         std::span<const float> flat);

struct TransferredWeights {
  std::vector<std::string> taken, fresh, unused;  // names of tensors; unused: of the source alone
};
// Overwrites the values of `flat` [P] by the source's tensors of the same names, but for entries
// whose names match a pattern of `fresh`, and statistics. Throws DataError as read_weights for
// those that the source lacks or has in another shape.
TransferredWeights transfer_weights(const WeightsSource& source, const ParameterTable& table,
                                    std::span<const std::string> fresh, std::span<float> flat);

}  // namespace tpudist
