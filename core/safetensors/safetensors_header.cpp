#include "core/safetensors/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

using nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMostAxes = 32;

// Reads one header. All of its input is untrusted.
class HeaderParser {
 public:
  HeaderParser(std::uint64_t bytes, const std::function<void(const std::string& what)>& refuse)
      : bytes_(bytes), refuse_(refuse) {}

  SafetensorsHeader parse(std::string_view text) {
    const json root = parse_json(text);
    SafetensorsHeader header;
    for (const auto& [name, value] : root.items()) {
      if (name == kMetadata) {
        header.metadata = read_metadata(value);
      } else {
        header.tensors.push_back(read_tensor(name, value));
      }
    }
    std::ranges::sort(header.tensors, {}, [&](const StoredTensor& tensor) {
      return std::tuple(tensor.begin, tensor.begin + bytes_in(tensor), tensor.name);
    });
    check_places(header.tensors);
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    refuse_(what);
    throw DataError(what);
  }
  [[noreturn]] void refuse(std::string_view tensor, const std::string& what) const {
    refuse(fmt::format("tensor \"{}\": {}", tensor, what));
  }

  static std::uint64_t bytes_in(const StoredTensor& tensor) {
    return tensor.elements * bytes_of(tensor.type);
  }

  // The object that the text holds. A header has three levels: tensors, their keys, and lists.
  json parse_json(std::string_view text) const {
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
      if (depth > 3) refuse("the header is nested deeper than that of a safetensors file");
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key) {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys.back().insert(key).second)
          refuse(fmt::format("the header has the key \"{}\" twice", key));
      }
      return true;
    };
    try {
      json root = json::parse(text, watch);
      if (!root.is_object()) refuse("the header is not a JSON object");
      return root;
    } catch (const json::exception& error) {
      refuse(fmt::format("the header is not JSON ({})", one_line(error.what())));
    }
  }

  static std::string one_line(std::string text) {
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < 32 || c > 126; }, ' ');
    return text.substr(0, 160);
  }

  std::map<std::string, std::string> read_metadata(const json& value) const {
    if (!value.is_object()) refuse("__metadata__ is not an object of texts");
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse(fmt::format("__metadata__: \"{}\" is not a text", key));
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  StoredTensor read_tensor(const std::string& name, const json& value) const {
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets")) {
      refuse(name, "is not an object of dtype, shape and data_offsets");
    }
    StoredTensor tensor;
    tensor.name = name;
    tensor.type = read_type(name, value["dtype"]);
    tensor.shape = read_shape(name, value["shape"]);
    for (const std::int64_t size : tensor.shape) {
      const auto product = checked_mul(tensor.elements, static_cast<std::uint64_t>(size));
      if (!product) refuse(name, fmt::format("shape {} is too large", shape_text(tensor.shape)));
      tensor.elements = *product;
    }
    read_place(tensor, value["data_offsets"]);
    return tensor;
  }

  TensorType read_type(const std::string& name, const json& value) const {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const auto type = tensor_type(text);
    if (!type)
      refuse(name, fmt::format("dtype {} is none of {}",
                               value.dump(-1, ' ', true, json::error_handler_t::replace),
                               tensor_type_names()));
    return *type;
  }

  std::vector<std::int64_t> read_shape(const std::string& name, const json& value) const {
    std::vector<std::int64_t> shape;
    if (!value.is_array() || value.size() > kMostAxes)
      refuse(name, fmt::format("shape is not a list of at most {} sizes", kMostAxes));
    for (const json& size : value) {
      if (!size.is_number_unsigned() ||
          size.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
        refuse(name, fmt::format("shape has {} where a size must be", size.dump()));
      }
      shape.push_back(size.get<std::int64_t>());
    }
    return shape;
  }

  void read_place(StoredTensor& tensor, const json& value) const {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
        !value[1].is_number_unsigned()) {
      refuse(tensor.name, "data_offsets are not two whole numbers");
    }
    tensor.begin = value[0].get<std::uint64_t>();
    const auto end = value[1].get<std::uint64_t>();
    if (tensor.begin > end || end > bytes_) {
      refuse(tensor.name, fmt::format("data_offsets [{}, {}] do not lie in the {} bytes after the "
                                      "header; is the file complete?",
                                      tensor.begin, end, bytes_));
    }
    const auto needed = checked_mul(tensor.elements, bytes_of(tensor.type));
    if (!needed || *needed != end - tensor.begin) {
      refuse(tensor.name,
             fmt::format("data_offsets [{}, {}] hold {} bytes, but shape {} of {} takes {}",
                         tensor.begin, end, end - tensor.begin, shape_text(tensor.shape),
                         to_text(tensor.type), needed ? fmt::format("{}", *needed) : "more"));
    }
  }

  // `tensors` by their places.
  void check_places(const std::vector<StoredTensor>& tensors) const {
    std::uint64_t end = 0;
    for (const StoredTensor& tensor : tensors) {
      if (tensor.begin != end) {
        refuse(tensor.name,
               fmt::format("begins at byte {}, but the tensor before it ends at {}: there is {}",
                           tensor.begin, end, tensor.begin < end ? "an overlap" : "a hole"));
      }
      end += bytes_in(tensor);
    }
    if (end != bytes_) {
      refuse(fmt::format("the tensors end at byte {} after the header, but there are {}", end,
                         bytes_));
    }
  }

  const std::uint64_t bytes_;
  const std::function<void(const std::string& what)>& refuse_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(
    std::string_view text, std::uint64_t bytes,
    const std::function<void(const std::string& what)>& refuse) {
  return HeaderParser(bytes, refuse).parse(text);
}

}  // namespace tpudist
