#include "core/safetensors/safetensors_writer.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace tpudist {

void SafetensorsWriter::add(const std::string& name, const std::vector<std::int64_t>& shape,
                            std::span<const float> values) {
  add(name, TensorType::f32, shape, std::as_bytes(values));
}

void SafetensorsWriter::add(const std::string& name, const std::vector<std::int64_t>& shape,
                            std::span<const double> values) {
  add(name, TensorType::f64, shape, std::as_bytes(values));
}

void SafetensorsWriter::add(const std::string& name, const std::vector<std::int64_t>& shape,
                            std::span<const std::int64_t> values) {
  add(name, TensorType::i64, shape, std::as_bytes(values));
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
