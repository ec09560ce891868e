#include "core/safetensors/safetensors_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/check.hpp"
#include "core/error.hpp"
#include "core/safetensors/safetensors_header.hpp"
#include "core/text.hpp"

namespace tpudist {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

namespace {

// Names in a damaged file may contain anything; an error must still be one line of text.
std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 400;
  std::string result(text.substr(0, kMost));
  while (!is_utf8(result)) result.pop_back();  // a character that was cut in two
  std::ranges::replace_if(
      result, [](unsigned char c) { return c < 32 || c == 127; }, '?');
  return result;
}

// Calls take(T{}) with the stored type, for types whose numbers have the same bytes in memory and
// in the file.
template <typename Take>
auto with_type(TensorType type, const Take& take) {
  switch (type) {
    case TensorType::f64:
      return take(double{});
    case TensorType::f32:
      return take(float{});
    case TensorType::i64:
      return take(std::int64_t{});
    case TensorType::u64:
      return take(std::uint64_t{});
    case TensorType::i32:
      return take(std::int32_t{});
    case TensorType::u32:
      return take(std::uint32_t{});
    case TensorType::i16:
      return take(std::int16_t{});
    case TensorType::i8:
      return take(std::int8_t{});
    case TensorType::boolean:
    case TensorType::u8:
      return take(std::uint8_t{});
    default:
      return take(std::uint16_t{});  // U16, and the bits of F16 and BF16
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw_io_error("read", path, EISDIR);
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) throw_io_error("open", path, errno);
  read_header();
}

void SafetensorsFile::refuse(std::string_view what) const {
  throw DataError(fmt::format("{}: {}", path_.string(), printable(what)));
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
  auto header =
      parse_safetensors_header(text, size - data_, [&](const std::string& what) { refuse(what); });
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
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

template <typename T, typename Convert>
std::vector<T> SafetensorsFile::values(const StoredTensor& tensor, const Convert& convert) {
  const std::string bytes = read(data_ + tensor.begin, tensor.elements * bytes_of(tensor.type));
  std::vector<T> result(tensor.elements);
  with_type(tensor.type, [&](auto stored) {
    for (std::uint64_t i = 0; i < tensor.elements; ++i) {
      std::memcpy(&stored, bytes.data() + i * sizeof(stored), sizeof(stored));
      result[i] = static_cast<T>(convert(stored));
    }
  });
  return result;
}

template <typename T>
std::vector<T> SafetensorsFile::floating_values(std::string_view name) {
  const StoredTensor& stored = tensor(name);
  if (!is_floating(stored.type)) {
    refuse(fmt::format("tensor \"{}\" has dtype {}, but F64, F32, F16 or BF16 is needed", name,
                       to_text(stored.type)));
  }
  return values<T>(stored, [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), std::uint16_t>) {
      return stored.type == TensorType::f16 ? half_to_float(value) : bfloat16_to_float(value);
    } else {
      return value;
    }
  });
}

std::vector<float> SafetensorsFile::floats(std::string_view name) {
  return floating_values<float>(name);
}

std::vector<double> SafetensorsFile::doubles(std::string_view name) {
  return floating_values<double>(name);
}

std::vector<std::int64_t> SafetensorsFile::integers(std::string_view name) {
  const StoredTensor& stored = tensor(name);
  if (is_floating(stored.type)) {
    refuse(fmt::format("tensor \"{}\" has dtype {}, but whole numbers are needed", name,
                       to_text(stored.type)));
  }
  return values<std::int64_t>(stored, [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), std::uint64_t>) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse(fmt::format("tensor \"{}\" holds {}, which does not fit 64 bits with a sign", name,
                           value));
    }
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      return std::int64_t{0};  // excluded above
    } else {
      return static_cast<std::int64_t>(value);
    }
  });
}

}  // namespace tpudist
