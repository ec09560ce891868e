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
// The file of the best evaluation, "best.h5": a complete checkpoint, which pruning leaves alone.
std::filesystem::path best_checkpoint_path(const std::filesystem::path& folder);

// The files of all steps, newest first; empty without a folder. A damaged file is listed, too.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// How to treat a damaged file. `skip` leaves the file, for callers that only read; `set_aside`
// renames it to "step-000000123.h5.damaged", so that it no longer counts as a checkpoint.
enum class DamagedFile { skip, set_aside };

// The newest complete checkpoint, nothing when there is none. If newer files are damaged, one
// warning names them and the checkpoint used instead. Throws IoError when a file cannot be read.
std::optional<CheckpointFile> newest_checkpoint(const std::filesystem::path& folder,
                                                DamagedFile damaged,
                                                FileSystem& files = posix_file_system());

// The checkpoint that a user asks for: `last` (the newest complete one), `best`, or a step. Throws
// ConfigError when `which` is something else, or when there is no such checkpoint (the message
// lists the existing steps); DataError when the checkpoint is damaged.
CheckpointFile find_checkpoint(const std::filesystem::path& folder, std::string_view which);

// Opens a checkpoint. If its size or hash is not as recorded, warns and returns nothing. Throws
// IoError when the file cannot be read, DataError when it is not a checkpoint.
std::optional<CheckpointFile> open_if_whole(const std::filesystem::path& checkpoint);

// Renames a damaged file as DamagedFile::set_aside says, and logs it.
void set_aside(const std::filesystem::path& checkpoint, FileSystem& files = posix_file_system());

// Removes all checkpoints except the `keep` newest and that of step `written`, and the temporary
// files of interrupted writers. Throws IoError.
void prune_checkpoints(const std::filesystem::path& folder, int keep, std::int64_t written,
                       FileSystem& files = posix_file_system());

}  // namespace tpudist
