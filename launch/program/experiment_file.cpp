#include "launch/program/experiment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// Where names are looked for, the nearest first. cmake/TpudistInstall.cmake puts the installed
// experiments beside the program.
std::vector<fs::path> experiment_folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = program.parent_path().parent_path() / "share/tpudist";
  std::vector<fs::path> folders;
  for (const fs::path& root : {fs::path(), installed}) {
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

// Files whose names end in .yaml, in the order of their names.
std::vector<std::string> yaml_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != end(entries); entries.increment(error)) {
    if (entries->path().extension() == ".yaml")
      files.push_back((folder / entries->path().filename()).string());
  }
  std::ranges::sort(files);
  return files;
}

// " (did you mean X?)", or the files of the first folder that has some.
std::string suggestion(const fs::path& wanted, const std::vector<fs::path>& folders) {
  std::vector<std::string> names, files, first;
  for (const fs::path& folder : folders) {
    const std::vector<std::string> found = yaml_files(folder);
    if (first.empty()) first = found;
    for (const std::string& file : found) {
      files.push_back(file);
      names.push_back(fs::path(file).stem().string());
    }
  }
  const std::string nearest = nearest_of(wanted.stem().string(), names);
  if (nearest.empty())
    return first.empty() ? "" : fmt::format(" (there are {})", join(first, ", "));
  return fmt::format(
      " (did you mean {}?)",
      files[static_cast<std::size_t>(std::ranges::find(names, nearest) - names.begin())]);
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

}  // namespace

fs::path find_experiment(const fs::path& wanted) {
  if (is_file(wanted)) return wanted;
  std::vector<fs::path> folders = experiment_folders();
  if (wanted.is_relative()) {
    for (const fs::path& folder : folders) {
      for (const char* ending : {"", ".yaml"}) {
        if (const fs::path file = folder / (wanted.string() + ending); is_file(file)) return file;
      }
    }
  }
  std::error_code error;
  if (fs::is_directory(wanted, error)) refuse_folder(wanted);
  folders.insert(folders.begin(), wanted.parent_path());
  throw ConfigError(fmt::format("{}: there is no such experiment file{}", wanted.string(),
                                suggestion(wanted, folders)));
}

}  // namespace tpudist
