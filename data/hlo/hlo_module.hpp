#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tpudist {

// An XLA program as in its protos (xla/service/hlo.proto, xla/xla_data.proto), without literals.
// Plain data.

struct HloShape {
  std::int64_t element_type = 0;  // xla.PrimitiveType
  std::vector<std::int64_t> dimensions;
  std::int64_t tuple_shapes = 0;  // number of elements of a tuple
  std::vector<std::int64_t> minor_to_major;
};

// One entry for each dimension in each list.
struct HloWindow {
  std::vector<std::int64_t> size, stride, padding_low, padding_high, window_dilation, base_dilation;
  std::vector<std::int64_t> reversed;  // 0 or 1
};

struct HloConvolution {
  std::int64_t input_batch = 0, input_feature = 0;
  std::int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  std::int64_t output_batch = 0, output_feature = 0;
  std::vector<std::int64_t> input_spatial, kernel_spatial;
};

struct HloInstruction {
  std::string name, opcode;
  // From metadata: the front end's name, jit(f)/dot_general, and its file and line, model.py:12.
  std::string op_name, source;
  std::int64_t stack_frame = 0;  // in newer dumps names the source, by HloSources; 0: none
  std::int64_t id = 0;
  HloShape shape;
  std::int64_t parameter_number = 0;
  std::vector<std::int64_t> dimensions;
  HloWindow window;
  HloConvolution convolution;
  std::vector<std::int64_t> lhs_dimensions, rhs_dimensions;  // of a dot: contracted or batch
  std::int64_t feature_group_count = 0, batch_group_count = 0;
  std::vector<std::int64_t> slice_start, slice_limit, slice_stride;
  std::vector<std::int64_t> dynamic_slice_sizes;
  std::vector<std::int64_t> edge_padding_low, edge_padding_high;
  std::int64_t is_stable = 0;                     // 0 or 1
  std::vector<std::int64_t> operands;             // ids of instructions
  std::vector<std::int64_t> called_computations;  // ids of computations
};

struct HloComputation {
  std::string name;
  std::int64_t id = 0, root = 0;  // of an instruction
  std::vector<HloInstruction> instructions;
};

// The tables of newer dumps on sources, by number.
struct HloSources {
  struct Location {
    std::int64_t file = 0, line = 0;
  };
  std::map<std::int64_t, std::string> files;
  std::map<std::int64_t, Location> locations;
  std::map<std::int64_t, std::int64_t> frames;  // location of a stack frame

  // "model.py:12"; empty if the tables lack the frame.
  std::string text(std::int64_t frame) const;
};

// "model.py:12"; without a line "model.py".
std::string source_text(const std::string& file, std::int64_t line);

struct HloModule {
  std::string name;
  std::vector<HloComputation> computations;

  std::int64_t nodes() const {
    std::int64_t sum = 0;
    for (const HloComputation& computation : computations)
      sum += std::ssize(computation.instructions);
    return sum;
  }
};

}  // namespace tpudist
