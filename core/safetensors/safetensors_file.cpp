#include "core/safetensors/safetensors_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
};

// In the order of the enum.
constexpr std::array<TypeFacts, 13> kTypes{{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"F64", 8},
                                            {"I64", 8},
                                            {"U64", 8}}};

// Maximum size of a header, as in the safetensors package.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

using nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMostAxes = 32;

// Nothing for an unknown name.
std::optional<TensorType> tensor_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

std::string tensor_type_names() {
  std::string names;
  for (const TypeFacts& type : kTypes)
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

// Reads one header. All of its input is untrusted.
class HeaderParser {
 public:
  HeaderParser(std::uint64_t bytes, const std::function<void(const std::string& what)>& refuse)
      : bytes_(bytes), refuse_(refuse) {}

  // Adds to the tensors, which it sorts by `begin`, then by end, and to the metadata.
  void parse(std::string_view text, std::vector<StoredTensor>& tensors,
             std::map<std::string, std::string>& metadata) {
    const json root = parse_json(text);
    for (const auto& [name, value] : root.items()) {
      if (name == kMetadata) {
        metadata = read_metadata(value);
      } else {
        tensors.push_back(read_tensor(name, value));
      }
    }
    std::ranges::sort(tensors, {}, [&](const StoredTensor& tensor) {
      return std::tuple(tensor.begin, tensor.begin + bytes_in(tensor), tensor.name);
    });
    check_places(tensors);
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

  // Parses the text's object. A header has three levels: tensors, their keys, and lists.
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
      refuse(fmt::format("the header is not JSON ({})", json_fault(error.what())));
    }
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

  // Checks that `tensors`, sorted by place, cover the data.
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

std::string_view to_text(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::size_t bytes_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

bool is_floating(TensorType type) {
  return type == TensorType::f64 || type == TensorType::f32 || type == TensorType::f16 ||
         type == TensorType::bf16;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw_io_error("read", path, EISDIR);
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) throw_io_error("open", path, errno);
  read_header();
}

void SafetensorsFile::refuse(std::string_view what) const {
  throw DataError(fmt::format("{}: {}", path_.string(), what.substr(0, 400)));  // names may be long
}

std::string SafetensorsFile::read(std::uint64_t place, std::uint64_t bytes) {
  std::string content(bytes, '\0');
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(place));
  file_.read(content.data(), static_cast<std::streamsize>(bytes));
  if (static_cast<std::uint64_t>(file_.gcount()) != bytes)
    throw IoError(
        fmt::format("cannot read {}: it became shorter while it was read", path_.string()));
  return content;
}

void SafetensorsFile::read_header() {
  file_.seekg(0, std::ios::end);
  const std::streamoff end = file_.tellg();
  const std::uint64_t size = end < 0 ? 0 : static_cast<std::uint64_t>(end);
  if (size < 8) refuse("is no safetensors file: it has fewer than 8 bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, read(0, 8).data(), 8);
  if (length > kMostHeaderBytes || length > size - 8) {
    refuse(fmt::format(
        "is no whole safetensors file: its header should have {} bytes, but {} follow (at most {} "
        "are taken)",
        length, size - 8, kMostHeaderBytes));
  }
  const std::string text = read(8, length);
  if (text.empty() || text.front() != '{')
    refuse("is no safetensors file: its header does not begin with {");
  data_ = 8 + length;
  HeaderParser(size - data_, [&](const std::string& what) {
    refuse(what);
  }).parse(text, tensors_, metadata_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_[tensors_[i].name] = i;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& SafetensorsFile::tensor(std::string_view name) const {
  if (const StoredTensor* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const StoredTensor& tensor : tensors_) names.push_back(tensor.name);
  const std::string near = nearest_of(name, names);
  refuse(fmt::format("holds no tensor \"{}\"{}", name,
                     near.empty() ? "" : fmt::format(" (there is \"{}\")", near)));
}

std::string SafetensorsFile::bytes(std::string_view name) {
  const StoredTensor& stored = tensor(name);
  return read(data_ + stored.begin, stored.elements * bytes_of(stored.type));
}

std::vector<float> SafetensorsFile::floats(std::string_view name) {
  const StoredTensor& stored = tensor(name);
  if (!is_floating(stored.type)) {
    refuse(fmt::format("tensor \"{}\" has dtype {}, but F64, F32, F16 or BF16 is needed", name,
                       to_text(stored.type)));
  }
  const std::string bytes = this->bytes(name);
  std::vector<float> values(stored.elements);
  const auto convert = [&](auto number, const auto& to_float) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
      values[i] = to_float(number);
    }
  };
  if (stored.type == TensorType::f64) {
    convert(double{}, [](double number) { return static_cast<float>(number); });
  } else if (stored.type == TensorType::f32) {
    convert(float{}, [](float number) { return number; });
  } else if (stored.type == TensorType::f16) {
    convert(std::uint16_t{}, half_to_float);
  } else {  // BF16 is the upper half of a float32
    convert(std::uint16_t{}, [](std::uint16_t half) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
    });
  }
  return values;
}

void SafetensorsWriter::add(const std::string& name, const std::vector<std::int64_t>& shape,
                            std::span<const float> values) {
  add(name, TensorType::f32, shape, std::as_bytes(values));
}

void SafetensorsWriter::add(const std::string& name, TensorType type,
                            const std::vector<std::int64_t>& shape,
                            std::span<const std::byte> bytes) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  if (static_cast<std::size_t>(elements) * bytes_of(type) != bytes.size()) {
    throw Error(ErrorKind::failed, "safetensors: " + name + " does not hold the numbers of shape " +
                                       shape_text(shape));
  }
  std::string copy(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  if (!tensors_.emplace(name, Tensor{type, shape, std::move(copy)}).second)
    throw Error(ErrorKind::failed, "safetensors: there is a tensor " + name + " already");
}

void SafetensorsWriter::add_metadata(const std::string& key, const std::string& text) {
  metadata_[key] = text;
}

std::string SafetensorsWriter::bytes() const {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& entry : tensors_) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto* entry) { return entry->second.type; });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata_.empty()) header["__metadata__"] = metadata_;
  std::uint64_t end = 0;
  for (const auto* entry : order) {
    const Tensor& tensor = entry->second;
    const std::uint64_t begin = end;
    end += tensor.bytes.size();
    header[entry->first] = {{"dtype", std::string(to_text(tensor.type))},
                            {"shape", tensor.shape},
                            {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &length, 8);
  result += text;
  for (const auto* entry : order) result += entry->second.bytes;
  return result;
}

void SafetensorsWriter::write(const std::filesystem::path& path, FileSystem& files) const {
  write_file_atomically(path, bytes(), files);
}

}  // namespace tpudist
