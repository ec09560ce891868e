#include "data/hlo/hlo_features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

// The data set's list, with a space after each name; the first name has number 1.
constexpr std::string_view kOpcodeNames =
    "abs add add-dependency after-all all-reduce all-to-all atan2 batch-norm-grad "
    "batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast call ceil "
    "cholesky clamp collective-permute count-leading-zeros compare complex concatenate "
    "conditional constant convert convolution copy copy-done copy-start cosine custom-call "
    "divide domain dot dynamic-slice dynamic-update-slice exponential exponential-minus-one fft "
    "floor fusion gather get-dimension-size set-dimension-size get-tuple-element imag infeed "
    "iota is-finite log log-plus-one and not or xor map maximum minimum multiply negate outfeed "
    "pad parameter partition-id popcnt power real recv recv-done reduce reduce-precision "
    "reduce-window remainder replica-id reshape reverse rng rng-get-and-update-state "
    "rng-bit-generator round-nearest-afz rsqrt scatter select select-and-scatter send send-done "
    "shift-left shift-right-arithmetic shift-right-logical sign sine slice sort sqrt subtract "
    "tanh trace transpose triangular-solve tuple tuple-select while cbrt all-gather "
    "collective-permute-start collective-permute-done logistic dynamic-reshape all-reduce-start "
    "all-reduce-done reduce-scatter all-gather-start all-gather-done opt-barrier async-start "
    "async-update async-done round-nearest-even stochastic-convert tan ";
static_assert(std::ranges::count(kOpcodeNames, ' ') == kOpcodes);

const std::vector<std::string>& opcode_names() {
  static const std::vector<std::string> names = split(kOpcodeNames, ' ');
  return names;
}

// xla.PrimitiveType of columns 2 to 20.
constexpr std::array<std::int64_t, 19> kElementTypes = {0,  1,  2,  3,  4,  5,  6,  7,  8, 9,
                                                        10, 11, 12, 16, 15, 18, 13, 14, 17};

using List = std::vector<std::int64_t>;

void write_window(const HloWindow& window, FeatureRow& row) {
  for (const List* values : {&window.size, &window.stride, &window.padding_low,
                             &window.padding_high, &window.window_dilation, &window.base_dilation})
    row.measured(*values, 6);
  row.list(window.reversed, 6);
  const std::int64_t reversed = std::ranges::count(window.reversed, 1);
  row.number(reversed);
  row.number(std::ssize(window.reversed) - reversed);
}

void write_convolution(const HloInstruction& instruction, FeatureRow& row) {
  const HloConvolution& of = instruction.convolution;
  row.number(of.input_batch);
  row.number(of.input_feature);
  row.list(of.input_spatial, 4);
  row.number(of.kernel_input_feature);
  row.number(of.kernel_output_feature);
  row.list(of.kernel_spatial, 4);
  row.number(of.output_batch);
  row.number(of.output_feature);
  row.number(instruction.feature_group_count);
  row.number(instruction.batch_group_count);
}

using Numbers = std::unordered_map<std::int64_t, std::int64_t>;

// Opcodes at the index of their number of operands.
constexpr std::string_view kOperands[] = {
    " iota partition-id replica-id rng-get-and-update-state ",
    " abs bitcast bitcast-convert broadcast ceil cholesky count-leading-zeros convert copy "
    "copy-done copy-start cosine domain exponential exponential-minus-one fft floor "
    "get-dimension-size get-tuple-element imag infeed is-finite log log-plus-one not negate "
    "popcnt real recv recv-done reduce-precision reshape reverse round-nearest-afz rsqrt "
    "send-done sign sine slice sqrt tanh transpose while cbrt collective-permute-done logistic "
    "all-reduce-done all-gather-done opt-barrier round-nearest-even ",
    " add add-dependency atan2 compare complex convolution divide gather set-dimension-size and "
    "or xor maximum minimum multiply outfeed pad power remainder send shift-left "
    "shift-right-arithmetic shift-right-logical subtract triangular-solve stochastic-convert ",
    " batch-norm-training clamp select select-and-scatter ",
    "",
    " batch-norm-grad batch-norm-inference "};

// That XLA requires; nothing if it depends on the instruction, or for an unknown opcode.
std::optional<std::size_t> operand_count(const std::string& opcode) {
  for (std::size_t count = 0; count < std::size(kOperands); ++count) {
    if (kOperands[count].find(" " + opcode + " ") != std::string_view::npos) return count;
  }
  return std::nullopt;
}

// Throws DataError for a module that XLA would not compile.
void require_sound(const HloModule& module, std::string_view where) {
  constexpr std::size_t kResult = SIZE_MAX;
  std::unordered_set<std::int64_t> ids, computations;
  std::unordered_map<std::string_view, std::optional<std::size_t>> counts;  // of operands
  for (const HloComputation& computation : module.computations) {
    std::unordered_map<std::int64_t, std::int64_t> ranks;  // of the instructions so far
    std::unordered_set<std::string_view> names;
    std::unordered_set<std::int64_t> parameters;
    for (const HloInstruction& own : computation.instructions) {
      const auto fail = [&](const std::string& what) {
        throw DataError(fmt::format("{}: {} in {}: {}", where, own.name, computation.name, what));
      };
      if (!ids.insert(own.id).second || !names.insert(own.name).second)
        fail("another instruction has its name or id");
      for (const std::int64_t id : own.operands)
        if (!ranks.contains(id)) fail(fmt::format("its operand {} does not stand above", id));
      for (const std::int64_t id : own.called_computations)
        if (!computations.contains(id)) fail("a computation that it calls does not stand above");
      if (own.opcode == "parameter" && !parameters.insert(own.parameter_number).second)
        fail(fmt::format("two parameters have the number {}", own.parameter_number));
      const auto [known, is_new] = counts.try_emplace(own.opcode);
      if (is_new) known->second = operand_count(own.opcode);
      if (const auto& count = known->second; count && own.operands.size() != *count)
        fail(fmt::format("{} takes {} operands, not {}", own.opcode, *count, own.operands.size()));
      const auto require_dimensions = [&](List list, std::size_t operand) {
        const std::int64_t rank = operand < own.operands.size() ? ranks.at(own.operands[operand])
                                                                : std::ssize(own.shape.dimensions);
        std::ranges::sort(list);
        if (std::ranges::adjacent_find(list) != list.end() ||
            (!list.empty() && (list.front() < 0 || list.back() >= rank)))
          fail(fmt::format("names dimensions twice, or others than those of a tensor of {}", rank));
      };
      require_dimensions(own.shape.minor_to_major, kResult);
      const bool of_result = own.opcode == "broadcast" || own.opcode == "reshape";
      if (opcode_number(own.opcode) != 0)
        require_dimensions(own.dimensions, of_result ? kResult : 0);
      require_dimensions(own.lhs_dimensions, 0);
      require_dimensions(own.rhs_dimensions, 1);
      if (own.opcode == "convolution") {
        const HloConvolution& of = own.convolution;
        List input = of.input_spatial, kernel = of.kernel_spatial;
        input.insert(input.end(), {of.input_batch, of.input_feature});
        kernel.insert(kernel.end(), {of.kernel_input_feature, of.kernel_output_feature});
        require_dimensions(input, 0);
        require_dimensions(kernel, 1);
        require_dimensions({of.output_batch, of.output_feature}, kResult);
      }
      ranks.emplace(own.id, std::ssize(own.shape.dimensions));
    }
    if (!ranks.contains(computation.root) || !computations.insert(computation.id).second)
      throw DataError(fmt::format("{}: computation {} lacks its root, or another has its id", where,
                                  computation.name));
  }
}

// The edges of all instructions: to distinct operands, and to the roots of called computations.
List edges_of(const HloModule& module) {
  Numbers node_of, root_of;
  std::int64_t node = 0;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& own : computation.instructions) node_of[own.id] = node++;
    root_of[computation.id] = node_of.at(computation.root);
  }
  List edges, producers;
  node = 0;
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& instruction : computation.instructions) {
      producers.clear();
      for (const std::int64_t id : instruction.operands) producers.push_back(node_of.at(id));
      std::ranges::sort(producers);
      producers.erase(std::ranges::unique(producers).begin(), producers.end());
      for (const std::int64_t id : instruction.called_computations)
        producers.push_back(root_of.at(id));
      std::ranges::sort(producers);
      for (const std::int64_t producer : producers) {
        edges.push_back(node);
        edges.push_back(producer);
      }
      ++node;
    }
  }
  return edges;
}

bool splits_nodes(const std::string& computation) {
  return std::ranges::any_of(std::array{"cluster", "while", "cond"}, [&](const char* part) {
    return computation.find(part) != std::string::npos;
  });
}

class Names {
 public:
  void add(std::string_view name) { names_.emplace_back(name); }
  void each(std::string_view before, std::initializer_list<std::string_view> ends) {
    for (const std::string_view end : ends) names_.push_back(fmt::format("{}_{}", before, end));
  }
  void list(std::string_view name, int count) {
    for (int i = 0; i < count; ++i) names_.push_back(fmt::format("{}_{}", name, i));
  }
  void measured(std::string_view name, int count) {
    list(name, count);
    each(name, {"sum", "product"});
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

}  // namespace

void FeatureRow::list(const List& values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) number(i < values.size() ? values[i] : 0);
}

void FeatureRow::measured(const List& values, std::size_t count, std::uint64_t product_of_none) {
  list(values, count);
  std::uint64_t sum = 0, product = values.empty() ? product_of_none : 1;
  for (const std::int64_t value : values) {
    sum += static_cast<std::uint64_t>(value);
    product *= static_cast<std::uint64_t>(value);
  }
  number(static_cast<std::int64_t>(sum));
  number(static_cast<std::int64_t>(product));
}

void write_node_features(const HloInstruction& instruction, bool is_root,
                         std::span<float, kNodeFeatures> to) {
  FeatureRow row(to.data());
  const HloShape& shape = instruction.shape;
  row.number(is_root);
  row.number(0);  // element size, which the extractor never sets
  for (const std::int64_t type : kElementTypes) row.number(shape.element_type == type);
  row.measured(shape.dimensions, 6);
  row.number(shape.tuple_shapes);
  row.number(instruction.parameter_number);
  row.list(instruction.dimensions, 6);
  write_window(instruction.window, row);
  write_convolution(instruction, row);
  for (const List* values : {&instruction.slice_start, &instruction.slice_stride,
                             &instruction.slice_limit, &instruction.dynamic_slice_sizes,
                             &instruction.edge_padding_low, &instruction.edge_padding_high})
    row.measured(*values, 2);
  row.number(instruction.is_stable != 0);
  row.list(shape.minor_to_major, 6);
  if (row.end() != to.data() + kNodeFeatures)
    throw Error(ErrorKind::failed, "a row of node features has another length");
}

std::uint8_t opcode_number(std::string_view opcode) {
  const auto& names = opcode_names();
  const auto place = std::ranges::find(names, opcode) - names.begin();
  return place + 1 < kOpcodes ? static_cast<std::uint8_t>(place + 1) : std::uint8_t{0};
}

std::string_view opcode_name(std::uint8_t number) {
  return number > 0 && number <= kOpcodes ? std::string_view(opcode_names()[number - 1U])
                                          : "unknown";
}

bool takes_layouts(std::string_view opcode) {
  return opcode == "convolution" || opcode == "dot" || opcode == "reshape";
}

HloGraph featurise(const HloModule& module, std::string_view where) {
  HloGraph graph;
  require_sound(module, where);
  graph.edges = edges_of(module);
  const auto nodes = static_cast<std::size_t>(module.nodes());
  graph.node_features.resize(nodes * kNodeFeatures);
  std::unordered_map<std::string_view, std::uint8_t> numbers;
  float* row = graph.node_features.data();
  graph.node_splits.push_back(0);
  for (const HloComputation& computation : module.computations) {
    for (const HloInstruction& instruction : computation.instructions) {
      write_node_features(instruction, instruction.id == computation.root,
                          std::span<float, kNodeFeatures>(row, kNodeFeatures));
      row += kNodeFeatures;
      const auto [number, is_new] = numbers.try_emplace(instruction.opcode);
      if (is_new) number->second = opcode_number(instruction.opcode);
      graph.opcodes.push_back(number->second);
      if (number->second == 0) graph.unknown_opcodes.insert(instruction.opcode);
      const std::int64_t type = instruction.shape.element_type;
      if (std::ranges::find(kElementTypes, type) == kElementTypes.end())
        graph.unknown_element_types.insert(type);
    }
    if (splits_nodes(computation.name)) graph.node_splits.push_back(graph.nodes());
  }
  if (graph.node_splits.back() != graph.nodes() || graph.node_splits.size() == 1)
    graph.node_splits.push_back(graph.nodes());
  return graph;
}

std::vector<std::string> node_feature_names() {
  Names names;
  names.add("is_root");
  names.add("element_size_in_bits");
  names.each("shape_element_type_is",
             {"invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32",
              "f64", "bf16", "c64", "c128", "tuple", "opaque", "token"});
  names.measured("shape_dimensions", 6);
  names.add("shape_tuple_shapes_size");
  names.add("parameter_number");
  names.list("dimensions", 6);
  for (const char* field :
       {"size", "stride", "padding_low", "padding_high", "window_dilation", "base_dilation"})
    names.measured(fmt::format("window_{}", field), 6);
  names.list("window_window_reversal", 6);
  names.each("window_window_reversal", {"true_count", "false_count"});
  names.each("convolution", {"input_batch_dim", "input_feature_dim"});
  names.list("convolution_input_spatial_dims", 4);
  names.each("convolution", {"kernel_input_feature_dim", "kernel_output_feature_dim"});
  names.list("convolution_kernel_spatial_dims", 4);
  names.each("convolution", {"output_batch_dim", "output_feature_dim"});
  names.add("feature_group_count");
  names.add("batch_group_count");
  for (const char* field : {"start", "stride", "limit"})
    names.measured(fmt::format("slice_dims_{}", field), 2);
  names.measured("dynamic_slice_sizes", 2);
  for (const char* field : {"low", "high"})
    names.measured(fmt::format("padding_config_edge_padding_{}", field), 2);
  names.add("is_stable");
  names.list("layout_minor_to_major", 6);
  return names.take();
}

}  // namespace tpudist
