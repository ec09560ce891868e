#include "train/state/run_folder.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "core/file_system.hpp"

namespace tpudist {

bool RunFolder::exists(const std::filesystem::path& path) {
  return std::filesystem::exists(path / "config.yaml");
}

RunFolder RunFolder::create(const std::filesystem::path& path, const std::string& resolved_yaml) {
  if (exists(path)) {
    throw ConfigError(
        fmt::format("{}: already holds a run; continue it with --resume, or choose another folder "
                    "with --run-dir",
                    path.string()));
  }
  RunFolder folder(path);
  std::error_code error;
  std::filesystem::create_directories(folder.checkpoints(), error);
  if (error)
    throw IoError(fmt::format("{}: cannot make the folder: {}", path.string(), error.message()));
  write_file_atomically(folder.config(), resolved_yaml);
  return folder;
}

RunFolder RunFolder::open(const std::filesystem::path& path) {
  if (!exists(path)) {
    throw ConfigError(fmt::format(
        "{}: no run here (there is no config.yaml); give the folder that `tpudist train` "
        "wrote",
        path.string()));
  }
  return RunFolder(path);
}

void RunFolder::append_metrics(const nlohmann::json& record) const {
  std::ofstream file(metrics(), std::ios::app);
  file << record.dump() << '\n';
  file.flush();
  if (!file) throw IoError(fmt::format("{}: cannot write; is the disk full?", metrics().string()));
}

void RunFolder::rewind_metrics(std::int64_t step) const {
  if (!std::filesystem::exists(metrics())) return;
  std::istringstream lines(read_text_file(metrics()));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_discarded()) continue;
    if (record.value("step", std::int64_t{0}) <= step) kept += line + '\n';
  }
  write_file_atomically(metrics(), kept);
}

}  // namespace tpudist
