#include "data/hlo/text_attributes.hpp"

#include <algorithm>

namespace tpudist {
namespace {

using enum TextAttribute::Form;

// Without attributes that several opcodes share and that other versions give to more opcodes
// (channel_id, replica_groups, operand_precision, algorithm, ...).
constexpr TextAttribute kAttributes[] = {
    {"dimensions", read,
     " all-to-all broadcast concatenate get-dimension-size set-dimension-size map reduce reverse "
     "sort transpose all-gather reduce-scatter all-gather-start ",
     " concatenate reduce reverse sort transpose all-gather reduce-scatter all-gather-start "
     "get-dimension-size set-dimension-size "},
    {"iota_dimension", read, " iota ", " iota "},
    {"window", read, " convolution custom-call reduce-window select-and-scatter "},
    {"dim_labels", read, " convolution custom-call ", " convolution "},
    {"feature_group_count", read, " convolution custom-call "},
    {"batch_group_count", read, " convolution custom-call "},
    {"slice", read, " slice ", " slice "},
    {"dynamic_slice_sizes", read, " dynamic-slice ", " dynamic-slice "},
    {"padding", read, " pad ", " pad "},
    {"is_stable", read, " sort "},
    {"entry_computation_layout", read, " HloModule "},
    {"to_apply", computations,
     " all-reduce call custom-call map reduce reduce-window scatter sort all-reduce-start "
     "reduce-scatter ",
     " all-reduce call map reduce reduce-window scatter sort all-reduce-start reduce-scatter "},
    {"calls", computations, " fusion async-start async-update async-done ", " fusion "},
    {"condition", computations, " while ", " while "},
    {"body", computations, " while ", " while "},
    {"select", computations, " select-and-scatter ", " select-and-scatter "},
    {"scatter", computations, " select-and-scatter ", " select-and-scatter "},
    {"branch_computations", computations, " conditional "},
    {"true_computation", computations, " conditional "},
    {"false_computation", computations, " conditional "},
    {"called_computations", computations, " custom-call "},
    {"index", integer, " get-tuple-element ", " get-tuple-element "},
    {"direction", word, " compare ", " compare ", " EQ NE GE GT LE LT "},
    {"type", word, " compare ", "", " FLOAT TOTALORDER SIGNED UNSIGNED "},
    {"fft_type", word, " fft ", " fft ", " FFT IFFT RFFT IRFFT "},
    {"fft_length", integers, " fft ", " fft "},
    {"lhs_contracting_dims", read, " dot ragged-dot "},
    {"rhs_contracting_dims", read, " dot ragged-dot "},
    {"lhs_batch_dims", read, " dot ragged-dot "},
    {"rhs_batch_dims", read, " dot ragged-dot "},
    {"index_vector_dim", integer, " gather scatter ", " gather scatter "},
    {"offset_dims", integers, " gather ", " gather "},
    {"collapsed_slice_dims", integers, " gather ", " gather "},
    {"start_index_map", integers, " gather ", " gather "},
    {"slice_sizes", read, " gather collective-permute collective-permute-start ", " gather "},
    {"operand_batching_dims", integers, " gather "},
    {"start_indices_batching_dims", integers, " gather "},
    {"update_window_dims", integers, " scatter ", " scatter "},
    {"inserted_window_dims", integers, " scatter ", " scatter "},
    {"scatter_dims_to_operand_dims", integers, " scatter ", " scatter "},
    {"input_batching_dims", integers, " scatter "},
    {"scatter_indices_batching_dims", integers, " scatter "},
    {"unique_indices", boolean, " scatter "},
    {"indices_are_sorted", boolean, " gather scatter "},
    {"inferred_dimension", read, " reshape "},
    {"exponent_bits", integer, " reduce-precision ", " reduce-precision "},
    {"mantissa_bits", integer, " reduce-precision ", " reduce-precision "},
    {"feature_index", integer, " batch-norm-grad batch-norm-inference batch-norm-training ",
     " batch-norm-grad batch-norm-inference batch-norm-training "},
    {"distribution", word, " rng ", " rng ", " rng_uniform rng_normal "},
    {"delta", integer, " rng-get-and-update-state ", " rng-get-and-update-state "},
    {"lower", boolean, " cholesky triangular-solve "},
    {"left_side", boolean, " triangular-solve "},
    {"unit_diagonal", boolean, " triangular-solve "},
    {"transpose_a", word, " triangular-solve ", "", " NO_TRANSPOSE TRANSPOSE ADJOINT "},
    {"custom_call_target", string, " custom-call ", " custom-call "},
    {"custom_call_has_side_effect", boolean, " custom-call "},
    {"operand_layout_constraints", shapes, " custom-call "},
    {"kind", word, " fusion ", " fusion "},
    {"k", integer, " topk "},
    {"largest", boolean, " topk "},
    {"allow_spmd_sharding_propagation_to_output", booleans, " HloModule "},
    {"allow_spmd_sharding_propagation_to_parameters", booleans, " HloModule "},
    {"execution_thread", string, " computation "}};

// Opcodes at the index of their number of operands.
constexpr std::string_view kOperands[] = {
    " iota partition-id replica-id rng-get-and-update-state ",
    " abs bitcast bitcast-convert broadcast ceil cholesky count-leading-zeros convert copy "
    "copy-done "
    "copy-start cosine domain exponential exponential-minus-one fft floor get-dimension-size "
    "get-tuple-element imag infeed is-finite log log-plus-one not negate popcnt real recv "
    "recv-done "
    "reduce-precision reshape reverse round-nearest-afz rsqrt send-done sign sine slice sqrt tanh "
    "transpose while cbrt collective-permute-done logistic all-reduce-done all-gather-done "
    "opt-barrier round-nearest-even tan ",
    " add add-dependency atan2 compare complex convolution divide gather set-dimension-size and or "
    "xor maximum minimum multiply outfeed pad power remainder send shift-left "
    "shift-right-arithmetic shift-right-logical subtract triangular-solve stochastic-convert ",
    " batch-norm-training clamp select select-and-scatter ",
    "",
    " batch-norm-grad batch-norm-inference "};

bool lists(std::string_view names, std::string_view name) {
  for (std::size_t at = names.find(name); at != std::string_view::npos;
       at = names.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && names[at - 1] == ' ' && end < names.size() && names[end] == ' ') return true;
  }
  return false;
}

}  // namespace

bool TextAttribute::is_taken_by(std::string_view opcode) const {
  return lists(taken_by, opcode);
}

bool TextAttribute::has_word(std::string_view word) const {
  return words.empty() || lists(words, word);
}

const TextAttribute* text_attribute(std::string_view key) {
  const auto* found = std::ranges::find(kAttributes, key, &TextAttribute::key);
  return found == std::end(kAttributes) ? nullptr : found;
}

OpcodeRules opcode_rules(std::string_view opcode) {
  OpcodeRules rules;
  for (const TextAttribute& own : kAttributes) {
    if (lists(own.needed_by, opcode)) rules.needed.push_back(own.key);
  }
  const auto* found =
      std::ranges::find_if(kOperands, [&](std::string_view names) { return lists(names, opcode); });
  if (found != std::end(kOperands))
    rules.operands = static_cast<std::size_t>(found - std::begin(kOperands));
  return rules;
}

}  // namespace tpudist
