#pragma once

#include <filesystem>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.hpp"

// Small programs of XLA: protos written field by field, and dumps of JAX.

namespace tpudist::test {

// NAME.pb and NAME.txt, made by tests/golden/hlo_modules.py.
inline std::filesystem::path jax_modules() {
  return source_folder() / "tests/data/hlo/modules";
}

using protozero::pbf_writer;

// Runs write(writer) and returns the message.
template <typename Write>
std::string proto(const Write& write) {
  std::string bytes;
  pbf_writer writer(bytes);
  write(writer);
  return bytes;
}

struct InstructionSketch {
  std::string name, opcode;
  std::int64_t id = 0;
  std::vector<std::int64_t> operands, called, dimensions;
  std::string literal;
};

inline std::string instruction(const InstructionSketch& sketch) {
  return proto([&](pbf_writer& to) {
    to.add_string(1, sketch.name);
    to.add_string(2, sketch.opcode);
    to.add_message(3, proto([&](pbf_writer& shape) {
                     shape.add_int64(2, 11);
                     shape.add_packed_int64(3, sketch.dimensions.begin(), sketch.dimensions.end());
                     shape.add_message(5, proto([&](pbf_writer& layout) {
                                         for (std::size_t d = sketch.dimensions.size(); d-- > 0;)
                                           layout.add_int64(1, static_cast<std::int64_t>(d));
                                       }));
                   }));
    if (!sketch.literal.empty()) to.add_message(8, sketch.literal);
    to.add_int64(35, sketch.id);
    for (const std::int64_t operand : sketch.operands) to.add_int64(36, operand);
    to.add_packed_int64(38, sketch.called.begin(), sketch.called.end());
  });
}

inline std::string computation(const std::string& name, std::int64_t id, std::int64_t root,
                               const std::vector<InstructionSketch>& instructions) {
  return proto([&](pbf_writer& to) {
    to.add_string(1, name);
    for (const InstructionSketch& own : instructions) to.add_message(2, instruction(own));
    to.add_int64(5, id);
    to.add_int64(6, root);
  });
}

inline std::string module(const std::string& name, const std::vector<std::string>& computations) {
  return proto([&](pbf_writer& to) {
    to.add_string(1, name);
    for (const std::string& own : computations) to.add_message(3, own);
    to.add_int64(6, 1);
  });
}

struct RunSketch {
  std::int64_t nanoseconds = 0;
  bool is_default = false, error = false;
  // Layouts: the tensors of each node; tiles: kernel, output and input bounds of one node.
  std::vector<std::vector<std::vector<std::int64_t>>> config;
};

inline std::string run(const RunSketch& sketch, bool tiles) {
  const std::string config = proto([&](pbf_writer& to) {
    if (tiles) {
      for (std::size_t t = 0; t < 3; ++t)
        to.add_packed_int64(static_cast<protozero::pbf_tag_type>(t + 1),
                            sketch.config[0][t].begin(), sketch.config[0][t].end());
      return;
    }
    for (const auto& node : sketch.config) {
      to.add_message(1, proto([&](pbf_writer& tensors) {
                       for (const auto& own : node) {
                         tensors.add_message(1, proto([&](pbf_writer& layout) {
                                               layout.add_packed_int64(1, own.begin(), own.end());
                                             }));
                       }
                     }));
    }
  });
  return proto([&](pbf_writer& to) {
    to.add_message(tiles ? 1 : 2, proto([&](pbf_writer& inner) { inner.add_message(1, config); }));
    to.add_bool(3, sketch.error);
    to.add_message(4,
                   proto([&](pbf_writer& profile) { profile.add_int64(4, sketch.nanoseconds); }));
    to.add_bool(5, sketch.is_default);
  });
}

inline std::string tuned(const std::string& module, const std::vector<RunSketch>& runs,
                         const std::vector<std::uint64_t>& nodes, bool tiles) {
  return proto([&](pbf_writer& to) {
    to.add_message(1, module);
    to.add_uint64(2, 7);
    for (const RunSketch& own : runs) to.add_message(3, run(own, tiles));
    to.add_packed_uint64(4, nodes.begin(), nodes.end());
  });
}

}  // namespace tpudist::test
