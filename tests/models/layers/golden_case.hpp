#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/safetensors/safetensors_file.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/stored_numbers.hpp"

namespace tpudist::test {

// A tensor of a golden case, float64, row-major.
struct GoldenTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

// One of the cases that tests/golden/layers/README.md describes.
class GoldenCase {
 public:
  explicit GoldenCase(const std::filesystem::path& path) : file_(path) {
    const auto facts = nlohmann::json::parse(file_.metadata().at("case"));
    name_ = facts.at("name");
    layer_ = facts.value("layer", "");
    options_ = facts.value("options", nlohmann::json::object());
    model_ = facts.value("model", "");
    parameters_ = facts.value("parameters", 0);
  }

  const std::string& name() const { return name_; }
  const std::string& layer() const { return layer_; }  // empty for networks
  const nlohmann::json& options() const { return options_; }
  std::int64_t parameters() const { return parameters_; }  // number, for systems
  const std::string& model() const { return model_; }  // as in experiment files, for small networks
  const SafetensorsFile& file() const { return file_; }

  GoldenTensor tensor(const std::string& name) {
    return {file_.tensor(name).shape, stored_numbers<double>(file_, name)};
  }
  std::vector<std::int64_t> integers(const std::string& name) {
    return stored_numbers<std::int64_t>(file_, name);
  }

  // The tensors whose names begin with `prefix` and a dot, by the rest of the name: "weights",
  // "gradients", "statistics".
  std::map<std::string, GoldenTensor> tensors(const std::string& prefix) {
    std::map<std::string, GoldenTensor> found;
    for (const StoredTensor& stored : file_.tensors()) {
      if (stored.name.rfind(prefix + ".", 0) != 0) continue;
      found[stored.name.substr(prefix.size() + 1)] = tensor(stored.name);
    }
    return found;
  }

 private:
  SafetensorsFile file_;
  std::string name_, layer_, model_;
  std::int64_t parameters_ = 0;
  nlohmann::json options_;
};

// The files of tests/models/layers/<folder>, "cases", "networks" or "systems", by name.
inline std::vector<std::filesystem::path> golden_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder() / "tests/models/layers" / folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tpudist::test
