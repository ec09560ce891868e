#include "launch/program/experiment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// cmake/TpudistInstall.cmake puts the installed experiments there, beside the program.
fs::path installed_root() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "share/tpudist";
}

// The folders in which names are searched, the nearest first.
std::vector<fs::path> experiment_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& root : {fs::path(), installed_root()}) {
    folders.push_back(root);  // for names that begin with "experiments/"
    for (const char* below : {"experiments", "experiments/sweeps", "experiments/systems"})
      folders.push_back(root / below);
  }
  return folders;
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_directory(path, error);
}

bool is_sweep(const fs::directory_entry& entry) {
  return is_file(entry.path() / "sweep.json");
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  const std::string name = folder.string();
  if (is_file(folder / "sweep.json")) {
    throw ConfigError(fmt::format(
        "{} is the folder of a sweep, not an experiment file: `tpudist sweep run {}` trains it",
        name, shell_word(name)));
  }
  if (const fs::path config = folder / "config.yaml"; is_file(config)) {
    throw ConfigError(fmt::format("{} is the folder of a run, not an experiment file: give {}",
                                  name, config.string()));
  }
  throw ConfigError(fmt::format("{} is a folder: give an experiment file (*.yaml)", name));
}

std::optional<fs::path> find_file(const fs::path& wanted) {
  if (is_file(wanted)) return wanted;
  if (wanted.is_absolute()) return std::nullopt;
  for (const fs::path& folder : experiment_folders()) {
    for (const char* ending : {"", ".yaml"})
      if (const fs::path file = folder / (wanted.string() + ending); is_file(file)) return file;
  }
  return std::nullopt;
}

std::vector<std::string> entries_of(const fs::path& folder,
                                    bool (*accepts)(const fs::directory_entry&)) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != end(entries); entries.increment(error))
    if (accepts(*entries)) paths.push_back((folder / entries->path().filename()).string());
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::string> names_in(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders)
    for (const std::string& file : yaml_files(folder)) names.push_back(fs::path(file).stem());
  return names;
}

}  // namespace

std::vector<std::string> yaml_files(const fs::path& folder) {
  return entries_of(folder, is_yaml);
}

fs::path find_experiment(const fs::path& wanted) {
  if (const auto file = find_file(wanted)) return *file;
  std::error_code error;
  if (fs::is_directory(wanted, error)) refuse_folder(wanted);
  std::string advice = near_path(wanted, is_yaml, experiment_folders());
  const std::vector<std::string> files = yaml_files("experiments");
  if (advice.empty() && !files.empty()) advice = fmt::format("; there are {}", join(files, ", "));
  throw ConfigError(
      fmt::format("{}: there is no such experiment file here, in experiments/ or in {}{}",
                  wanted.string(), (installed_root() / "experiments").string(), advice));
}

fs::path find_sweep(const fs::path& wanted) {
  std::error_code error;
  if (fs::is_directory(wanted, error)) return wanted;
  if (const auto file = find_file(wanted)) return *file;
  std::string advice = near_path(wanted, is_sweep, {"sweeps"});
  if (advice.empty()) advice = near_path(wanted, is_yaml, experiment_folders());
  const std::vector<std::string> folders = sweep_folders();
  if (advice.empty() && !folders.empty())
    advice = fmt::format("; there are {}", join(folders, ", "));
  throw ConfigError(
      fmt::format("{}: there is no such sweep or sweep file{}", wanted.string(),
                  advice.empty() ? "; `tpudist sweep expand FILE` makes one" : advice));
}

std::vector<std::string> experiment_names() {
  return names_in(experiment_folders());
}

std::vector<std::string> sweep_file_names() {
  return names_in({"", "experiments/sweeps", installed_root() / "experiments/sweeps"});
}

std::vector<std::string> sweep_folders() {
  return entries_of("sweeps", is_sweep);
}

fs::path find_experiment_folder(const fs::path& wanted) {
  std::error_code error;
  for (const fs::path& folder : {wanted, installed_root() / wanted})
    if (fs::is_directory(folder, error)) return folder;
  throw ConfigError(fmt::format("{}: there is no such folder here or in {}", wanted.string(),
                                installed_root().string()));
}

}  // namespace tpudist
