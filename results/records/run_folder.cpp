#include "results/records/run_folder.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/tensorboard_file.hpp"

namespace tpudist {

namespace {

constexpr std::string_view kCommand = "tpudist train";

// The name of an unexpected file in the folder of a new run; empty if there is none. The remains of
// a run that died at its beginning are allowed: a lock file, an empty folder of checkpoints, the
// temporary file of config.yaml.
std::string stranger_in(const RunFolder& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(), error)) {
    const std::string name = entry.path().filename().string();
    const bool own =
        name == kLockName || is_temporary_name(name, "config.yaml") ||
        (entry.path() == folder.checkpoints() && std::filesystem::is_empty(entry.path(), error));
    if (!own) return name;
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw ConfigError(fmt::format("{}: cannot be used as the folder of a run: {}",
                                  folder.path().string(), error.message()));
  }
  return {};
}

// The size of a file in bytes; 0 if there is no file.
std::uintmax_t file_bytes(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  return error ? 0 : bytes;
}

// Takes a line back. If this fails, the next attempt writes the line a second time.
void cut(const std::filesystem::path& file, std::uintmax_t bytes) {
  std::error_code ignored;
  std::filesystem::resize_file(file, bytes, ignored);
}

// The first run in a folder of runs, or of a sweep; "" without one.
std::filesystem::path run_in(const std::filesystem::path& path) {
  std::filesystem::path first;
  for (const auto& folder : {path, path / "runs"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (RunFolder::exists(entry.path()) && (first.empty() || entry.path() < first))
        first = entry.path();
  }
  return first;
}

// Throws unless a run can begin (or, with `resume`, go on) here.
void check_claim(const RunFolder& folder, bool resume) {
  const std::string where = folder.path().string();
  if (RunFolder::exists(folder.path())) {
    if (resume) return;
    throw ConfigError(
        fmt::format("{}: already holds a run; continue it with --resume, or choose "
                    "another folder with --run-dir",
                    where));
  }
  const std::string stranger = stranger_in(folder);
  if (stranger.empty()) return;
  throw ConfigError(
      fmt::format("{}: is neither empty nor the folder of a run: it holds {}; choose another one "
                  "with --run-dir",
                  where, stranger));
}

}  // namespace

bool RunFolder::exists(const std::filesystem::path& path) {
  const RunFolder folder(path);
  std::error_code ignored;
  if (!list_checkpoints(folder.checkpoints()).empty()) return true;
  return std::filesystem::exists(folder.config(), ignored) &&
         (std::filesystem::is_directory(folder.checkpoints(), ignored) ||
          std::filesystem::exists(folder.metrics(), ignored));
}

RunFolder RunFolder::open(const std::filesystem::path& path) {
  const RunFolder folder(path);
  if (exists(path)) return folder;
  std::error_code error;  // set if the folder may not be read, but not if it is missing
  if (!std::filesystem::exists(folder.config(), error) && error) {
    throw IoError(fmt::format("{}: cannot look for a run: {}", path.string(), error.message()));
  }
  const bool has_config = std::filesystem::exists(folder.config(), error);
  const std::string run = run_in(path).string();
  const auto is_folder = [](const auto& entry) { return entry.is_directory(); };
  throw ConfigError(fmt::format(
      "{}: no run here ({}); give {}{}", path.string(),
      has_config ? "config.yaml is there, but no checkpoints"
                 : "there are neither config.yaml nor checkpoints",
      run.empty() ? "the folder that `tpudist train` wrote" : "one of the runs in it, as " + run,
      std::filesystem::exists(path, error) ? "" : near_path(path, is_folder, {"runs", "sweeps"})));
}

RunClaim::RunClaim(const std::filesystem::path& path, bool resume)
    : folder_(path), resumes_(resume && RunFolder::exists(path)) {
  check_claim(folder_, resume);
  if (resumes_) lock_.emplace(folder_.path(), kCommand);
}

void RunClaim::begin(const std::string& resolved_yaml) {
  if (!lock_) {
    make_folder(folder_.path());
    lock_.emplace(folder_.path(), kCommand);
    check_claim(folder_, resumes_);  // another run may have begun and ended since
  }
  make_folder(folder_.checkpoints());
  std::error_code error;
  const bool same = std::filesystem::exists(folder_.config(), error) &&
                    read_text_file(folder_.config()) == resolved_yaml;
  if (!same) write_file_atomically(folder_.config(), resolved_yaml);
}

void RunFolder::append_metrics(const nlohmann::json& record) const {
  const std::uintmax_t bytes = file_bytes(metrics());
  append_to_file(metrics(), json_text(record) + '\n');
  try {
    append_events(events(), record);
  } catch (const IoError&) {
    cut(metrics(), bytes);
    throw;
  }
}

void RunFolder::rewind_metrics(std::int64_t step) const {
  rewind_events(events(), step);
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
