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

// The messages of hlo.proto by field numbers. All throw protozero::exception for damaged bytes.

// Runs `read`, and turns protozero's exceptions for damaged bytes into DataError.
template <typename Read>
auto checked(std::string_view where, const Read& read) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    throw DataError(fmt::format("{}: the proto is damaged ({})", where, error.what()));
  }
}

// The value of a field that is a message, else nothing. Consumes the field.
std::optional<protozero::data_view> message_of(protozero::pbf_reader& field);
// The same, but nothing for a field with another number.
std::optional<protozero::data_view> message_of(protozero::pbf_reader& field,
                                               protozero::pbf_tag_type tag);

// Appends the values of a repeated integer field, packed or not.
void append_integers(protozero::pbf_reader& message, std::vector<std::int64_t>& to);

// Reads a HloModuleProto. Throws DataError for more than kMaxNodes instructions.
HloModule read_module(protozero::pbf_reader message);

// Whether the bytes are a whole HloModuleProto with a computation that has instructions.
bool is_module(protozero::data_view bytes);

}  // namespace tpudist
