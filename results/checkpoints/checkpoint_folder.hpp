#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/file_system.hpp"
#include "results/checkpoints/checkpoint.hpp"

namespace tpudist {

// The file of a step in a run's checkpoint folder, "step-000000123.h5".
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
// The file of the best evaluation, "best.h5". It is a complete checkpoint, which pruning does not
// touch.
std::filesystem::path best_checkpoint_path(const std::filesystem::path& folder);

// The files of all steps, newest first; none when there is no folder. If the newest is damaged, use
// the next.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// How to treat a damaged file: `skip` leaves it, for callers that only read; `set_aside` renames it
// to "step-000000123.h5.damaged", so that it no longer counts as a checkpoint.
enum class DamagedFile { skip, set_aside };

// The newest complete checkpoint, nothing when there is none. Warns, in one line, of damaged ones,
// and says which one is used instead. Throws IoError when one cannot be read.
std::optional<CheckpointFile> newest_checkpoint(const std::filesystem::path& folder,
                                                DamagedFile damaged,
                                                FileSystem& files = posix_file_system());

// The checkpoint that a user asks for: `last` (the newest complete one), `best`, or a step. Throws
// ConfigError, which lists the existing steps, when it does not exist or `which` is none of these;
// DataError when it is damaged.
CheckpointFile find_checkpoint(const std::filesystem::path& folder, std::string_view which);

// Opens a checkpoint. Where size or hash are not as recorded, warns and returns nothing. Throws
// IoError when the file cannot be read, DataError when it is not a checkpoint.
std::optional<CheckpointFile> open_if_whole(const std::filesystem::path& checkpoint);

// Renames a damaged file as DamagedFile::set_aside says, and logs it.
void set_aside(const std::filesystem::path& checkpoint, FileSystem& files = posix_file_system());

// Removes all but the `keep` newest and the one of step `written`; also the temporary files of
// interrupted writers. Throws IoError.
void prune_checkpoints(const std::filesystem::path& folder, int keep, std::int64_t written,
                       FileSystem& files = posix_file_system());

}  // namespace tpudist
