#include "results/checkpoints/weights_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

bool is_transposed(const ParameterEntry& entry) {
  return entry.torch_transposes && entry.shape.size() == 2;
}

std::vector<std::int64_t> stored_shape(const ParameterEntry& entry) {
  std::vector<std::int64_t> shape = entry.shape;
  if (is_transposed(entry)) std::ranges::reverse(shape);
  return shape;
}

// Writes the transpose of `from` [columns, rows], row-major [rows, columns].
void transpose_into(std::span<const float> from, std::int64_t rows, std::int64_t columns,
                    std::span<float> to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
}

std::vector<float> stored_values(const ParameterEntry& entry, std::span<const float> flat) {
  const auto own = flat.subspan(entry.offset, entry.size());
  std::vector<float> values(own.begin(), own.end());
  if (is_transposed(entry)) transpose_into(own, entry.shape[0], entry.shape[1], values);
  return values;
}

// Checks one source against a network's table and copies its tensors.
class WeightsReader {
 public:
  WeightsReader(const WeightsSource& source, const ParameterTable& table)
      : source_(source), table_(table) {
    for (const StoredTensor& tensor : source_.tensors) names_.push_back(tensor.name);
  }

  std::vector<std::string> read(std::span<float> flat) {
    std::vector<std::string> absent;
    for (const ParameterEntry& entry : table_.entries()) {
      if (is_there(entry)) continue;
      absent.push_back(entry.torch_name);
    }
    refuse_superfluous();
    for (const ParameterEntry& entry : table_.entries()) {
      if (find(entry.torch_name)) read(entry, flat.subspan(entry.offset, entry.size()));
    }
    return absent;
  }

  TransferredWeights transfer(std::span<const std::string> fresh, std::span<float> flat) {
    for (const std::string& pattern : fresh) {
      if (std::ranges::none_of(table_.entries(), [&](const ParameterEntry& entry) {
            return glob_match_any(std::span(&pattern, 1), entry.torch_name);
          }))
        throw ConfigError(
            fmt::format("train.init_fresh: \"{}\" matches no tensor of the network", pattern));
    }
    TransferredWeights result;
    std::set<std::string> known;
    for (const ParameterEntry& entry : table_.entries()) {
      known.insert(entry.torch_name);
      if (entry.group == ParameterGroup::statistics) continue;
      const bool is_fresh = glob_match_any(fresh, entry.torch_name);
      if (!is_fresh) is_there(entry);
      (is_fresh ? result.fresh : result.taken).push_back(entry.torch_name);
    }
    for (const ParameterEntry& entry : table_.entries())
      if (std::ranges::find(result.taken, entry.torch_name) != result.taken.end())
        read(entry, flat.subspan(entry.offset, entry.size()));
    for (const std::string& name : names_)
      if (!known.contains(name)) result.unused.push_back(name);
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(fmt::format("{}: {}", source_.where, what));
  }

  const StoredTensor* find(std::string_view name) const {
    const auto found = std::ranges::find(source_.tensors, name, &StoredTensor::name);
    return found == source_.tensors.end() ? nullptr : &*found;
  }

  std::string hint(std::string_view word, const std::vector<std::string>& names) const {
    const std::string near = nearest_of(word, names);
    return near.empty() ? "" : fmt::format(" (did it mean \"{}\"?)", near);
  }

  // Returns false if a statistic is absent, and refuses any other absent entry.
  bool is_there(const ParameterEntry& entry) const {
    const StoredTensor* tensor = find(entry.torch_name);
    const std::string wanted = shape_text(stored_shape(entry));
    if (!tensor) {
      if (entry.group == ParameterGroup::statistics) return false;
      refuse(fmt::format("holds no tensor \"{}\", which the network has with the shape {}{}",
                         entry.torch_name, wanted, hint(entry.torch_name, names_)));
    }
    if (tensor->shape != stored_shape(entry)) {
      refuse(fmt::format("tensor \"{}\" has the shape {}, but the network's has {}{}",
                         entry.torch_name, shape_text(tensor->shape), wanted,
                         is_transposed(entry) ? " (as PyTorch has it: outputs, inputs)" : ""));
    }
    if (!is_floating(tensor->type)) {
      refuse(fmt::format("tensor \"{}\" has dtype {}, but weights are F32, F64, F16 or BF16",
                         entry.torch_name, to_text(tensor->type)));
    }
    return true;
  }

  void refuse_superfluous() const {
    std::set<std::string> known;
    for (const ParameterEntry& entry : table_.entries()) known.insert(entry.torch_name);
    for (const StoredTensor& tensor : source_.tensors) {
      if (known.contains(tensor.name)) continue;
      refuse(fmt::format(
          "tensor \"{}\" of shape {} is of another network: this one has {} tensors, none of that "
          "name{}",
          tensor.name, shape_text(tensor.shape), known.size(),
          hint(tensor.name, {known.begin(), known.end()})));
    }
  }

  void read(const ParameterEntry& entry, std::span<float> to) {
    const std::vector<float> values = source_.floats(entry.torch_name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      refuse(fmt::format("tensor \"{}\" is not finite in float32 at index {} ({})",
                         entry.torch_name, i, values[i]));
    }
    refuse_values_without_meaning(entry, values);
    if (is_transposed(entry)) {
      transpose_into(values, entry.shape[1], entry.shape[0], to);
    } else {
      std::ranges::copy(values, to.begin());
    }
  }

  // Refuses numbers that no training produces, and that would reverse scores or make them NaN.
  void refuse_values_without_meaning(const ParameterEntry& entry,
                                     std::span<const float> values) const {
    const bool scale = entry.group == ParameterGroup::statistics && entry.name.ends_with(".scale");
    const bool temperature = entry.name.ends_with(".temperature");
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (scale && values[i] < 0) {
        refuse(
            fmt::format("tensor \"{}\" is negative at index {} ({}): it is 1 / the standard "
                        "deviation of a column, or 0 for a column to leave out",
                        entry.torch_name, i, values[i]));
      }
      if (temperature && !std::isfinite(1 / values[i])) {
        refuse(fmt::format("tensor \"{}\" is {}: states are divided by it, so it must not be 0",
                           entry.torch_name, values[i]));
      }
    }
  }

  const WeightsSource& source_;
  const ParameterTable& table_;
  std::vector<std::string> names_;  // of all tensors of the source
};

}  // namespace

void write_weights(const std::filesystem::path& path, const ParameterTable& table,
                   std::span<const float> flat,
                   const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer;
  for (const auto& [key, text] : metadata) writer.add_metadata(key, text);
  for (const ParameterEntry& entry : table.entries()) {
    const std::vector<float> values = stored_values(entry, flat);
    writer.add(entry.torch_name, stored_shape(entry), std::span<const float>(values));
  }
  writer.write(path);
}

std::vector<std::string> read_weights(const std::filesystem::path& path,
                                      const ParameterTable& table, std::span<float> flat) {
  const WeightsSource source = open_weights(path);
  return WeightsReader(source, table).read(flat);
}

WeightsSource open_weights(const std::filesystem::path& path) {
  const auto file = std::make_shared<SafetensorsFile>(path);
  return {path.string(), file->tensors(),
          [file](const std::string& name) { return file->floats(name); }};
}

WeightsSource weights_of(const std::string& where, const ParameterTable& table,
                         std::span<const float> flat) {
  WeightsSource source{where, {}, {}};
  for (const ParameterEntry& entry : table.entries())
    source.tensors.push_back({.name = entry.torch_name, .shape = stored_shape(entry)});
  source.floats = [&table, flat](const std::string& name) {
    return stored_values(*std::ranges::find(table.entries(), name, &ParameterEntry::torch_name),
                         flat);
  };
  return source;
}

TransferredWeights transfer_weights(const WeightsSource& source, const ParameterTable& table,
                                    std::span<const std::string> fresh, std::span<float> flat) {
  return WeightsReader(source, table).transfer(fresh, flat);
}

}  // namespace tpudist
