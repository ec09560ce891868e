#include "launch/program/experiment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/near_path.hpp"
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

// Where names are looked for, the nearest first.
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

bool is_yaml(const fs::directory_entry& entry) {
  return entry.path().extension() == ".yaml";
}

bool is_sweep(const fs::directory_entry& entry) {
  return is_file(entry.path() / "sweep.json");
}

// The paths in a folder that are taken, in the order of their names.
template <typename Takes>
std::vector<std::string> paths_in(const fs::path& folder, Takes takes) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != end(entries); entries.increment(error)) {
    if (takes(*entries)) paths.push_back((folder / entries->path().filename()).string());
  }
  std::ranges::sort(paths);
  return paths;
}

// " (there are X, Y)": what is taken in the first folder that has some.
template <typename Takes>
std::string list_of(const std::vector<fs::path>& folders, Takes takes) {
  for (const fs::path& folder : folders) {
    const std::vector<std::string> paths = paths_in(folder, takes);
    if (!paths.empty()) return fmt::format(" (there are {})", join(paths, ", "));
  }
  return "";
}

// For a name without a folder: " here, in experiments/ or in /usr/share/tpudist/experiments".
std::string looked_in(const fs::path& wanted) {
  if (wanted.has_parent_path()) return "";
  return fmt::format(" here, in experiments/ or in {}",
                     (installed_root() / "experiments").string());
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  const std::string name = folder.string();
  if (is_file(folder / "sweep.json")) {
    throw ConfigError(fmt::format(
        "{} is the folder of a sweep, not an experiment file: `tpudist sweep run {}` trains it",
        name, name));
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
    for (const char* ending : {"", ".yaml"}) {
      if (const fs::path file = folder / (wanted.string() + ending); is_file(file)) return file;
    }
  }
  return std::nullopt;
}

}  // namespace

fs::path find_experiment(const fs::path& wanted) {
  if (const auto file = find_file(wanted)) return *file;
  std::error_code error;
  if (fs::is_directory(wanted, error)) refuse_folder(wanted);
  std::vector<fs::path> folders = experiment_folders();
  const std::string near = near_path(wanted, is_yaml, folders);
  folders.insert(folders.begin(), wanted.parent_path());
  throw ConfigError(fmt::format("{}: there is no such experiment file{}{}", wanted.string(),
                                looked_in(wanted),
                                near.empty() ? list_of(folders, is_yaml) : near));
}

fs::path find_sweep(const fs::path& wanted) {
  std::error_code error;
  if (fs::is_directory(wanted, error)) return wanted;
  if (const auto file = find_file(wanted)) return *file;
  std::string near = near_path(wanted, is_sweep, {"sweeps"});
  if (near.empty()) near = near_path(wanted, is_yaml, experiment_folders());
  if (near.empty()) near = list_of({wanted.parent_path(), "sweeps"}, is_sweep);
  throw ConfigError(fmt::format("{}: there is no such sweep or sweep file{}{}", wanted.string(),
                                looked_in(wanted), near));
}

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const fs::path& folder : experiment_folders())
    for (const std::string& path : paths_in(folder, is_yaml))
      names.push_back(fs::path(path).stem().string());
  return names;
}

fs::path find_experiment_folder(const fs::path& wanted) {
  std::error_code error;
  for (const fs::path& folder : {wanted, installed_root() / wanted})
    if (fs::is_directory(folder, error)) return folder;
  throw ConfigError(fmt::format("{}: there is no such folder here or in {}", wanted.string(),
                                installed_root().string()));
}

}  // namespace tpudist
