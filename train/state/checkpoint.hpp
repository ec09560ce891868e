#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/config_entries.hpp"
#include "core/file_system.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// What a checkpoint says of itself, which can be read without knowing its network.
struct CheckpointSummary {
  std::int64_t step = 0;             // steps done
  std::uint64_t config_hash = 0;     // of the resolved configuration that decides the numbers
  std::uint64_t selection_hash = 0;  // of the training data's selection
  std::string config;                // resolved YAML
  // The keys of `config` whose values are not the default, one a line. Files of versions up to 0.1
  // do not have it.
  std::optional<std::string> changed_keys;
  // hash_of_folds of the training data; nothing where members hold no graphs out, and in files of
  // versions up to 0.1.
  std::optional<std::uint64_t> fold_hash;

  // `config` as a list; a key counts as default where `changed_keys` says so. Throws ConfigError
  // when it is not YAML.
  std::vector<ConfigEntry> entries() const;
};

// What steps change of members. Plain data.
struct SavedWeights {
  std::vector<float> parameters;                   // [M, P] flat, padded
  std::vector<float> first_moment, second_moment;  // [M, P]
  std::vector<std::int64_t> optimizer_steps;       // [M]
  std::vector<float> average;                      // [M, P] averaged weights; empty if none
  std::vector<std::int64_t> average_points;        // [M] of WeightAverage; empty if none
};

// Everything that training needs to go on as if it had never stopped. Plain data.
struct Checkpoint : CheckpointSummary, SavedWeights {
  int members = 0;
  // What members are rolled back to, where that is of an earlier step.
  std::optional<SavedWeights> roll_back;
  std::vector<double> best_score;       // [M] best validation score so far, NaN if none
  std::vector<std::int64_t> best_step;  // [M]
  std::vector<int> failed;              // [M] 1 = stopped by NaN
  // [M] of EarlyStop; empty if nobody stops early.
  std::vector<double> stop_best;
  std::vector<std::int64_t> stop_waited, stopped_at;
  std::map<std::string, double> numbers;  // scalars that must survive, e.g. seconds trained
};

// Writes one HDF5 file, readable by h5py:
//
//   /                   format = "tpudist-checkpoint", version, step, config_hash, selection_hash,
//                       config, changed_keys, members, fold_hash where there are folds
//   /parameters         <name with dots> float32 [M, shape...], without padding
//   /optimizer/first    the same names and shapes: Adam's moments
//   /optimizer/second
//   /average            the same names and shapes: averaged weights, of runs that keep them
//   /roll_back          what members are rolled back to, where that is of an earlier step: groups
//                       parameters, first, second and average, optimizer_steps and average_points
//   /members            optimizer_steps i64[M], best_score f64[M], best_step i64[M], failed i32[M];
//                       average_points i64[M], where there is /average; stop_best f64[M],
//                       stop_waited i64[M], stopped_at i64[M], where members may stop early
//   /numbers            one f64 attribute for each number
//
// Its first 512 bytes, which HDF5 passes over, hold size and XXH3 of all the rest. Built in memory
// (core driver, file image) and written with write_file_atomically, so that an existing file is
// never half overwritten. Throws Error where a size in `checkpoint` does not fit `table`, and
// IoError.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const ParameterTable& table, FileSystem& files = posix_file_system());

// Throws IoError when the file cannot be read, DataError when it is damaged (hash) or does not fit
// `table` (names the first parameter that differs). Padding comes back as zero. Reads files of all
// versions up to this program's.
Checkpoint load_checkpoint(const std::filesystem::path& path, const ParameterTable& table);

// The same errors, but for those that need a table.
CheckpointSummary read_checkpoint_summary(const std::filesystem::path& path);

// XXH3 over the unpadded parameters of all members, in name order (names and shapes included): what
// `train` prints as `parameters: <hash>`. `flat` is [M, P].
std::uint64_t parameter_hash(std::span<const float> flat, int members, const ParameterTable& table);

}  // namespace tpudist
