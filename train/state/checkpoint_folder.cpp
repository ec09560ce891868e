#include "train/state/checkpoint_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kPrefix = "step-", kSuffix = ".h5";

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(name.size(), kSuffix.size()));
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
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

}  // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{:09}{}", kPrefix, step, kSuffix);
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

void prune_checkpoints(const std::filesystem::path& folder, int keep, FileSystem& files) {
  const auto checkpoints = list_checkpoints(folder);
  for (std::size_t i = static_cast<std::size_t>(std::max(keep, 0)); i < checkpoints.size(); ++i) {
    files.remove(checkpoints[i]);
  }
  // Temporary files of a process that was killed; there is one writer, and it is here.
  for (const auto& path : files_of(folder)) {
    const std::string name = path.filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(".tmp")) files.remove(path);
  }
}

}  // namespace tpudist
