#pragma once

#include <string>
#include <string_view>

#include "data/hlo/hlo_module.hpp"

namespace tpudist {

// Whether a text begins with "HloModule", after space and comments.
bool is_hlo_text(std::string_view text);

// Reads the text of one module (*.txt of --xla_dump_hlo_as_text, or HloModule::ToString), short or
// long form. Missing parts have XLA's defaults: layouts descend, strides and dilations are 1,
// paddings 0. Ids are numbers in the order of the text. Skips literals, and attributes that do not
// matter to the features. Throws DataError with the line, beginning with `where`.
HloModule read_text_module(std::string_view text, std::string_view where);

}  // namespace tpudist
