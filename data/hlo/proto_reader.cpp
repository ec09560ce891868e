#include "data/hlo/proto_reader.hpp"

#include <fmt/format.h>

#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "data/schema/feature_schema.hpp"

namespace tpudist {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Calls visit(field) for each field; it must take or skip the value.
template <typename Visit>
void for_fields(pbf_reader message, const Visit& visit) {
  while (message.next()) visit(message);
}

// These functions take the value of a field, and skip another wire type as protobuf does. Names may
// have any bytes, and are shown and written into other files.
void take(pbf_reader& field, std::int64_t& to) {
  if (!field.has_wire_type(pbf_wire_type::varint)) return field.skip();
  to = field.get_int64();
}
void take(pbf_reader& field, std::string& to) {
  if (!field.has_wire_type(pbf_wire_type::length_delimited)) return field.skip();
  to = printable(field.get_string());
}
// read(message)
template <typename Read>
void take_message(pbf_reader& field, const Read& read) {
  if (const auto bytes = message_of(field)) read(pbf_reader{*bytes});
}

// read(message) for each field 1 of a message.
template <typename Read>
void take_repeated(pbf_reader& field, const Read& read) {
  take_message(field, [&](pbf_reader list) {
    for_fields(list,
               [&](pbf_reader& part) { part.tag() == 1 ? take_message(part, read) : part.skip(); });
  });
}

HloShape read_shape(pbf_reader message) {
  HloShape shape;
  for_fields(message, [&](pbf_reader& field) {
    switch (field.tag()) {
      case 2:
        return take(field, shape.element_type);
      case 3:
        return append_integers(field, shape.dimensions);
      case 4:
        ++shape.tuple_shapes;
        return field.skip();
      case 5:
        return take_message(field, [&](pbf_reader layout) {
          for_fields(layout, [&](pbf_reader& part) {
            part.tag() == 1 ? append_integers(part, shape.minor_to_major) : part.skip();
          });
        });
      default:
        field.skip();
    }
  });
  return shape;
}

void read_window_dimension(pbf_reader message, HloWindow& window) {
  std::int64_t values[8] = {};
  for_fields(message, [&](pbf_reader& field) {
    field.tag() <= 7 ? take(field, values[field.tag()]) : field.skip();
  });
  window.size.push_back(values[1]);
  window.stride.push_back(values[2]);
  window.padding_low.push_back(values[3]);
  window.padding_high.push_back(values[4]);
  window.window_dilation.push_back(values[5]);
  window.base_dilation.push_back(values[6]);
  window.reversed.push_back(values[7] != 0);
}

HloConvolution read_convolution(pbf_reader message) {
  HloConvolution of;
  const std::map<protozero::pbf_tag_type, std::int64_t*> numbers = {
      {3, &of.kernel_input_feature}, {4, &of.kernel_output_feature}, {7, &of.input_batch},
      {8, &of.input_feature},        {9, &of.output_batch},          {10, &of.output_feature}};
  for_fields(message, [&](pbf_reader& field) {
    if (field.tag() == 6) return append_integers(field, of.kernel_spatial);
    if (field.tag() == 11) return append_integers(field, of.input_spatial);
    const auto number = numbers.find(field.tag());
    number == numbers.end() ? field.skip() : take(field, *number->second);
  });
  return of;
}

// Appends fields 1, 2 and 3 of a message of three integers; 0 if absent.
void read_three(pbf_reader message, std::vector<std::int64_t>& first,
                std::vector<std::int64_t>& second, std::vector<std::int64_t>* third) {
  std::int64_t values[4] = {};
  for_fields(message, [&](pbf_reader& field) {
    field.tag() <= 3 ? take(field, values[field.tag()]) : field.skip();
  });
  first.push_back(values[1]);
  second.push_back(values[2]);
  if (third) third->push_back(values[3]);
}

// OpMetadata.
void read_metadata(pbf_reader message, HloInstruction& to) {
  std::string file;
  std::int64_t line = 0;
  for_fields(message, [&](pbf_reader& own) {
    switch (own.tag()) {
      case 2:
        return take(own, to.op_name);
      case 3:
        return take(own, file);
      case 4:
        return take(own, line);
      case 15:
        return take(own, to.stack_frame);
      default:
        own.skip();
    }
  });
  to.source = source_text(file, line);
}

// StackFrameIndexProto: tables counted from 1.
HloSources read_sources(pbf_reader message) {
  HloSources sources;
  for_fields(message, [&](pbf_reader& field) {
    if (field.tag() == 1) return take(field, sources.files[std::ssize(sources.files) + 1]);
    if (field.tag() != 3 && field.tag() != 4) return field.skip();
    const bool is_frame = field.tag() == 4;
    take_message(field, [&](pbf_reader row) {
      std::int64_t first = 0, third = 0;  // file and line, or location
      for_fields(row, [&](pbf_reader& part) {
        part.tag() == 1 ? take(part, first) : part.tag() == 3 ? take(part, third) : part.skip();
      });
      if (is_frame)
        sources.frames[std::ssize(sources.frames) + 1] = first;
      else
        sources.locations[std::ssize(sources.locations) + 1] = {first, third};
    });
  });
  return sources;
}

HloInstruction read_instruction(pbf_reader message) {
  HloInstruction read;
  for_fields(message, [&](pbf_reader& field) {
    switch (field.tag()) {
      case 1:
        return take(field, read.name);
      case 2:
        return take(field, read.opcode);
      case 3:
        return take_message(field, [&](pbf_reader shape) { read.shape = read_shape(shape); });
      case 7:
        return take_message(field, [&](pbf_reader metadata) {
          read_metadata(metadata, read);
        });
      case 9:
        return take(field, read.parameter_number);
      case 14:
        return append_integers(field, read.dimensions);
      case 15:
        return take_repeated(
            field, [&](pbf_reader dimension) { read_window_dimension(dimension, read.window); });
      case 16:
        return take_message(field, [&](pbf_reader of) { read.convolution = read_convolution(of); });
      case 17:
        return take_message(field, [&](pbf_reader slice) {
          read_three(slice, read.slice_start, read.slice_limit, &read.slice_stride);
        });
      case 20:
        return append_integers(field, read.dynamic_slice_sizes);
      case 21:
        return take_repeated(field, [&](pbf_reader dimension) {
          read_three(dimension, read.edge_padding_low, read.edge_padding_high, nullptr);
        });
      case 30:
        return take_message(field, [&](pbf_reader dot) {
          for_fields(dot, [&](pbf_reader& part) {
            append_integers(part, part.tag() % 2 == 1 ? read.lhs_dimensions : read.rhs_dimensions);
          });
        });
      case 35:
        return take(field, read.id);
      case 36:
        return append_integers(field, read.operands);
      case 38:
        return append_integers(field, read.called_computations);
      case 50:
        return take(field, read.feature_group_count);
      case 58:
        return take(field, read.batch_group_count);
      case 60:
        return take(field, read.is_stable);
      default:  // 8 is the literal
        field.skip();
    }
  });
  return read;
}

HloComputation read_computation(pbf_reader message) {
  HloComputation read;
  for_fields(message, [&](pbf_reader& field) {
    switch (field.tag()) {
      case 1:
        return take(field, read.name);
      case 2:
        return take_message(field, [&](pbf_reader instruction) {
          read.instructions.push_back(read_instruction(instruction));
        });
      case 5:
        return take(field, read.id);
      case 6:
        return take(field, read.root);
      default:
        field.skip();
    }
  });
  return read;
}

}  // namespace

std::string source_text(const std::string& file, std::int64_t line) {
  return file.empty() || line <= 0 ? file : fmt::format("{}:{}", file, line);
}

std::string HloSources::text(std::int64_t frame) const {
  const auto at = frames.find(frame);
  if (at == frames.end()) return {};
  const auto location = locations.find(at->second);
  if (location == locations.end()) return {};
  const auto file = files.find(location->second.file);
  return file == files.end() ? std::string() : source_text(file->second, location->second.line);
}

std::optional<protozero::data_view> message_of(pbf_reader& field) {
  if (field.has_wire_type(pbf_wire_type::length_delimited)) return field.get_view();
  field.skip();
  return std::nullopt;
}

std::optional<protozero::data_view> message_of(pbf_reader& field, protozero::pbf_tag_type tag) {
  if (field.tag() == tag) return message_of(field);
  field.skip();
  return std::nullopt;
}

void append_integers(pbf_reader& message, std::vector<std::int64_t>& to) {
  if (message.has_wire_type(pbf_wire_type::varint)) return to.push_back(message.get_int64());
  if (!message.has_wire_type(pbf_wire_type::length_delimited)) return message.skip();
  for (const std::int64_t value : message.get_packed_int64()) to.push_back(value);
}

HloModule read_module(pbf_reader message) {
  HloModule module;
  std::int64_t nodes = 0;
  HloSources sources;
  for_fields(message, [&](pbf_reader& field) {
    if (field.tag() == 1) return take(field, module.name);
    if (field.tag() == 17)
      return take_message(field, [&](pbf_reader tables) { sources = read_sources(tables); });
    if (field.tag() != 3) return field.skip();
    take_message(field, [&](pbf_reader computation) {
      module.computations.push_back(read_computation(computation));
      nodes += std::ssize(module.computations.back().instructions);
    });
    if (nodes > kMaxNodes)
      throw DataError(fmt::format("a module has more than {} instructions", kMaxNodes));
  });
  for (HloComputation& computation : module.computations) {
    for (HloInstruction& own : computation.instructions) {
      if (own.source.empty()) own.source = sources.text(own.stack_frame);
    }
  }
  return module;
}

bool is_module(protozero::data_view bytes) {
  constexpr auto kMessage = pbf_wire_type::length_delimited;
  try {
    bool has_opcode = false;
    for (pbf_reader module{bytes}; module.next(3, kMessage);) {
      pbf_reader computation{module.get_view()};
      while (!has_opcode && computation.next(2, kMessage)) {
        pbf_reader instruction{computation.get_view()};
        while (!has_opcode && instruction.next(2, kMessage))
          has_opcode = instruction.get_view().size() > 0;
      }
    }
    return has_opcode;
  } catch (const protozero::exception&) {
    return false;
  }
}

}  // namespace tpudist
