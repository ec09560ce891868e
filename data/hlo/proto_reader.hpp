#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "data/hlo/hlo_module.hpp"

namespace tpudist {

// The messages of hlo.proto by their field numbers. All throw protozero::exception for damaged bytes.

// Runs `read`, and turns what protozero throws for damaged bytes into a DataError.
template <typename Read>
auto checked(std::string_view where, const Read& read) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    throw DataError(fmt::format("{}: the proto is damaged ({})", where, error.what()));
  }
}

// The value of a field that is a message, else nothing; the field is consumed.
std::optional<protozero::data_view> message_of(protozero::pbf_reader& field);
// The same, also nothing for a field of another number.
std::optional<protozero::data_view> message_of(protozero::pbf_reader& field,
                                               protozero::pbf_tag_type tag);

// Appends the values of a repeated integer field, packed or not.
void append_integers(protozero::pbf_reader& message, std::vector<std::int64_t>& to);

// HloModuleProto. Throws DataError where it has more than kMaxNodes instructions.
HloModule read_module(protozero::pbf_reader message);

// Whether these bytes are a whole HloModuleProto: they have a computation with instructions.
bool is_module(protozero::data_view bytes);

}  // namespace tpudist
