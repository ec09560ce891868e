#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "data/hlo/hlo_module.hpp"

namespace tpudist {

// The messages of hlo.proto by their field numbers. All throw protozero::exception for damaged bytes.

// Appends the values of a repeated integer field, packed or not.
void append_integers(protozero::pbf_reader& message, std::vector<std::int64_t>& to);

// HloModuleProto. Throws DataError where it has more than kMaxNodes instructions.
HloModule read_module(protozero::pbf_reader message);

// Whether these bytes are a whole HloModuleProto: they have a computation with instructions.
bool is_module(protozero::data_view bytes);

}  // namespace tpudist
