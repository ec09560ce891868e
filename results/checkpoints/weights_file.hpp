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
// of the table, including statistics, without padding. Names and layouts are those of PyTorch and
// PyTorch Geometric (ParameterEntry::torch_name, torch_transposes). Throws IoError.
void write_weights(const std::filesystem::path& path, const ParameterTable& table,
                   std::span<const float> flat, const std::map<std::string, std::string>& metadata);

// Reads such a file, of F32, F64, F16 or BF16, into `flat` [P] and leaves padding as it is. The
// file may lack statistics: their values in `flat` stay, and their names are returned.
//
// Throws DataError, one line, when the file is damaged or not of a network with this table. The
// message names the first parameter of the table that is missing or has another shape, else the
// first tensor that the network does not have, and what was expected. Also throws when a number is
// not finite, a scale of standardised columns is negative, or a temperature is 0.
std::vector<std::string> read_weights(const std::filesystem::path& path,
                                      const ParameterTable& table, std::span<float> flat);

// The tensors of a network to take weights from, with the names and layouts of such a file.
struct WeightsSource {
  std::string where;  // for messages
  std::vector<StoredTensor> tensors;
  std::function<std::vector<float>(const std::string& name)> floats;
};
WeightsSource open_weights(const std::filesystem::path& path);
// The tensors of one member. Borrows its parameters `flat` [P] and `table`.
WeightsSource weights_of(const std::string& where, const ParameterTable& table,
                         std::span<const float> flat);

struct TransferredWeights {
  std::vector<std::string> taken, fresh, unused;  // names of tensors; unused: of the source alone
};
// Overwrites the values of `flat` [P] by the source's tensors of the same names. Statistics and
// entries whose names match a pattern of `fresh` keep their values. Throws DataError as
// read_weights for an entry that the source lacks or has in another shape.
TransferredWeights transfer_weights(const WeightsSource& source, const ParameterTable& table,
                                    std::span<const std::string> fresh, std::span<float> flat);

}  // namespace tpudist
