#include "results/checkpoints/checkpoint_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "data/hdf5/sealed_file.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kPrefix = "step-", kSuffix = ".h5", kBest = "best.h5";

std::optional<std::int64_t> parse_step(std::string_view digits) {
  std::int64_t step = -1;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, step);
  if (error != std::errc{} || end != last || step < 0) return std::nullopt;
  return step;
}

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(name.size(), kSuffix.size()));
  return parse_step(name);
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return {};
  std::vector<std::filesystem::path> paths;
  auto entry = std::filesystem::directory_iterator(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error) {
    throw IoError(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  }
  return paths;
}

// Opens a file. Nothing if the content is not as written; `damage` has the reason. Throws IoError.
std::optional<CheckpointFile> open_undamaged(const std::filesystem::path& path,
                                             std::string& damage) {
  std::vector<std::byte> bytes;
  try {
    bytes = read_sealed_file(path);
  } catch (const DataError& error) {
    damage = error.what();
    return std::nullopt;
  }
  return CheckpointFile(path, std::move(bytes));
}

std::filesystem::path put_aside(const std::filesystem::path& checkpoint, FileSystem& files) {
  const std::filesystem::path aside = checkpoint.string() + ".damaged";
  files.rename(checkpoint, aside);
  return aside;
}

std::string steps_that_are_there(const std::filesystem::path& folder) {
  std::vector<std::string> steps;
  for (const auto& path : list_checkpoints(folder)) {
    steps.push_back(fmt::format("{}", *step_of(path.filename().string())));
  }
  if (std::filesystem::exists(best_checkpoint_path(folder))) steps.push_back("best");
  return steps.empty() ? "there is none yet; train the run first"
                       : "there are: " + join(steps, ", ");
}

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{:09}{}", kPrefix, step, kSuffix);
}

std::filesystem::path best_checkpoint_path(const std::filesystem::path& folder) {
  return folder / kBest;
}

std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  for (const auto& path : files_of(folder)) {
    if (const auto step = step_of(path.filename().string())) found.emplace_back(*step, path);
  }
  std::ranges::sort(found, std::greater<>{});
  std::vector<std::filesystem::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::optional<CheckpointFile> open_if_whole(const std::filesystem::path& checkpoint) {
  std::string damage;
  auto file = open_undamaged(checkpoint, damage);
  if (!file) spdlog::warn("{}", damage);
  return file;
}

void set_aside(const std::filesystem::path& checkpoint, FileSystem& files) {
  const std::filesystem::path aside = put_aside(checkpoint, files);
  spdlog::warn("{}: set aside as {}", checkpoint.string(), aside.filename().string());
}

std::optional<CheckpointFile> newest_checkpoint(const std::filesystem::path& folder,
                                                DamagedFile damaged, FileSystem& files) {
  std::string complaints;
  // A training may write a newer file and remove the listed ones: then the list is read again.
  for (int attempt = 0; attempt < 3; ++attempt) {
    bool vanished = false;
    for (const std::filesystem::path& path : list_checkpoints(folder)) {
      std::string complaint;
      try {
        if (auto file = open_undamaged(path, complaint)) {
          if (!complaints.empty()) spdlog::warn("{}{} is taken instead", complaints, path.string());
          return file;
        }
      } catch (const IoError&) {
        if (std::filesystem::exists(path)) throw;
        vanished = true;
        continue;
      }
      complaints += complaint + "; ";
      if (damaged == DamagedFile::set_aside)
        complaints += fmt::format("set aside as {}; ", put_aside(path, files).filename().string());
    }
    if (!vanished) break;
  }
  if (!complaints.empty()) spdlog::warn("{}no other one is there", complaints);
  return std::nullopt;
}

CheckpointFile find_checkpoint(const std::filesystem::path& folder, std::string_view which) {
  if (which == "last") {
    if (auto newest = newest_checkpoint(folder, DamagedFile::skip)) return *std::move(newest);
    throw ConfigError(fmt::format("{}: no checkpoint that is whole; {}", folder.string(),
                                  steps_that_are_there(folder)));
  }
  const std::optional<std::int64_t> step = parse_step(which);
  if (which != "best" && !step) {
    throw ConfigError(fmt::format("--checkpoint {}: must be last, best or a step", which));
  }
  const auto path = step ? checkpoint_path(folder, *step) : best_checkpoint_path(folder);
  if (!std::filesystem::exists(path)) {
    throw ConfigError(
        fmt::format("{}: there is no such checkpoint{}; {}", path.string(),
                    step ? "" : " (it is written when the run is scored on the validation split)",
                    steps_that_are_there(folder)));
  }
  return CheckpointFile(path);
}

void prune_checkpoints(const std::filesystem::path& folder, int keep, std::int64_t written,
                       FileSystem& files) {
  const auto checkpoints = list_checkpoints(folder);
  for (std::size_t i = static_cast<std::size_t>(std::max(keep, 0)); i < checkpoints.size(); ++i) {
    if (checkpoints[i] != checkpoint_path(folder, written)) files.remove(checkpoints[i]);
  }
  // Temporary files of a killed process. This process is the only writer.
  for (const auto& path : files_of(folder)) {
    const std::string name = path.filename().string();
    const bool ours = name.starts_with(kPrefix) || name.starts_with(kBest);
    if (ours && name.ends_with(".tmp")) files.remove(path);
  }
}

}  // namespace tpudist
