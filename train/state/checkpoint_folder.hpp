#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"

namespace tpudist {

// The file of a step in a run's folder of checkpoints, "step-000000123.h5".
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
// That of the best evaluation, "best.h5". It is a whole checkpoint of its own, so that pruning does
// not concern it.
std::filesystem::path best_checkpoint_path(const std::filesystem::path& folder);

// Those of all steps, newest first; none when there is no folder. The newest may turn out to be
// damaged: the others are what to fall back to.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// What becomes of a damaged file: `skip` leaves it, for those who only read; `set_aside` gives it
// the name "step-000000123.h5.damaged", so that it counts as a checkpoint no more.
enum class DamagedFile { skip, set_aside };

// The newest checkpoint that is whole, none when there is none. Warns, in one line, of those that are
// damaged, and says which one is taken instead. Throws IoError when one cannot be read.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder,
                                                       DamagedFile damaged,
                                                       FileSystem& files = posix_file_system());

// The checkpoint that a user asks for: `last` (the newest that is whole), `best`, or a step. Throws
// ConfigError, which names the steps that are there, when there is no such one or `which` is none
// of these; DataError when it is damaged.
std::filesystem::path find_checkpoint(const std::filesystem::path& folder, std::string_view which);

// Whether the content is what was written: false where size or hash differ, with a warning. Throws
// IoError when the file cannot be read.
bool is_whole(const std::filesystem::path& checkpoint);

// Gives a damaged file its other name, and says so.
void set_aside(const std::filesystem::path& checkpoint, FileSystem& files = posix_file_system());

// Removes all but the `keep` newest and the one of the step that was just `written`, and what
// interrupted writers left behind. Throws IoError.
void prune_checkpoints(const std::filesystem::path& folder, int keep, std::int64_t written,
                       FileSystem& files = posix_file_system());

}  // namespace tpudist
