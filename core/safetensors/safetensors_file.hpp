#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"

namespace tpudist {

// The element type of a stored tensor, in the order in which the safetensors package sorts types.
enum class TensorType { boolean, u8, i8, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

// The name in a safetensors header, e.g. "F32".
std::string_view to_text(TensorType type);

std::size_t bytes_of(TensorType type);
// F64, F32, F16 or BF16.
bool is_floating(TensorType type);

// "[3, 4]"; "[]" for a single number.
std::string shape_text(const std::vector<std::int64_t>& shape);

// One tensor of a safetensors file, in row-major order.
struct StoredTensor {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;     // offset of its first byte from the end of the header
  std::uint64_t elements = 1;  // product of the shape
};

// A safetensors file (https://github.com/huggingface/safetensors), open for reading. It has 8 bytes
// with the length of the header, the header (a JSON object with type, shape and offsets of each
// tensor), and the bytes of the tensors. Opening reads only the header and checks it against the
// size of the file: each byte after the header must belong to exactly one tensor. Not thread-safe.
//
// Throws DataError "FILE: what", in one line, for any fault of the content, and IoError when the
// file cannot be read.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // In the order of their bytes in the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // The texts of `__metadata__`.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Null if no tensor has that name.
  const StoredTensor* find(std::string_view name) const;
  // Throws DataError if no tensor has that name; the message names the nearest name.
  const StoredTensor& tensor(std::string_view name) const;

  // All values of a tensor. Floating types only; F64 is rounded to the nearest float32.
  std::vector<float> floats(std::string_view name);
  // The bytes of a tensor as they are stored. Throws as tensor().
  std::string bytes(std::string_view name);

 private:
  [[noreturn]] void refuse(std::string_view what) const;
  std::string read(std::uint64_t place, std::uint64_t bytes);
  void read_header();

  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t data_ = 0;  // offset of the tensors' first byte in the file
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

// Collects tensors and writes them as one safetensors file. The order is that of the safetensors
// package: the widest types first, then by name. The header is padded with spaces to a multiple of
// 8 bytes. The bytes are a pure function of the content. Keeps copies. Not thread-safe.
class SafetensorsWriter {
 public:
  // `values` in row-major order. Throws Error if their number is not the product of `shape`, or a
  // tensor of that name exists.
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           std::span<const float> values);
  // The same for bytes of any type.
  void add(const std::string& name, TensorType type, const std::vector<std::int64_t>& shape,
           std::span<const std::byte> bytes);

  // A text under `__metadata__`, UTF-8.
  void add_metadata(const std::string& key, const std::string& text);

  // The bytes of the file.
  std::string bytes() const;
  // Writes them with write_file_atomically. Throws IoError.
  void write(const std::filesystem::path& path, FileSystem& files = posix_file_system()) const;

 private:
  struct Tensor {
    TensorType type;
    std::vector<std::int64_t> shape;
    std::string bytes;
  };

  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace tpudist
