#include "data/hlo/feature_names.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

namespace tpudist {
namespace {

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
