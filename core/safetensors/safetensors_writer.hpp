#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/file_system.hpp"
#include "core/safetensors/tensor_type.hpp"

namespace tpudist {

// Collects tensors and writes them as one safetensors file. The order is that of the safetensors
// package: the widest types first, then by name. The header is padded with spaces to a multiple of
// 8 bytes. The bytes are a pure function of what was added. Keeps copies. Not thread-safe.
class SafetensorsWriter {
 public:
  // `values` in row-major order. Throws Error unless their number is the product of `shape`, and
  // when a tensor of that name exists.
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           std::span<const float> values);
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           std::span<const double> values);
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           std::span<const std::int64_t> values);

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
  void add(const std::string& name, TensorType type, const std::vector<std::int64_t>& shape,
           std::span<const std::byte> bytes);

  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace tpudist
