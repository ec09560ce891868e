#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/file_system.hpp"
#include "models/parameter_table.hpp"

namespace tpudist {

// Everything that training needs to go on as if it had never stopped. Plain data.
struct Checkpoint {
  std::int64_t step = 0;                        // steps done
  std::uint64_t config_hash = 0;                // of the resolved configuration that decides the numbers
  std::uint64_t selection_hash = 0;             // of the training data's selection
  std::string config;                           // resolved YAML
  int members = 0;
  std::vector<float> parameters;                // [M, P] flat, padded
  std::vector<float> first_moment, second_moment;  // [M, P]
  std::vector<std::int64_t> optimizer_steps;    // [M]
  std::vector<double> best_score;               // [M] best validation score so far, NaN if none
  std::vector<std::int64_t> best_step;          // [M]
  std::vector<int> failed;                      // [M] 1 = stopped by NaN
  std::map<std::string, double> numbers;        // anything scalar that must survive, e.g. seconds trained
};

// One HDF5 file: /parameters/<name with dots> float32 [M, shape...] (unpadded, readable by h5py), /optimizer/first/<name>, /optimizer/second/<name>, the rest as
// attributes and small datasets; format = "tpudist-checkpoint", version, and the XXH3 of all data. Built in memory (core driver, file image) and written with
// write_file_atomically, so that an existing file is never half overwritten.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint, const ParameterTable& table,
                     FileSystem& files = posix_file_system());

// Throws DataError when the file is damaged (hash), or does not fit `table` (names the first parameter that differs).
Checkpoint load_checkpoint(const std::filesystem::path& path, const ParameterTable& table);

// XXH3 over the unpadded parameters of all members, in name order (names and shapes included): what `train` prints as `parameters: <hash>`.
std::uint64_t parameter_hash(const std::vector<float>& flat, int members, const ParameterTable& table);

// The newest checkpoint of a run's folder that can be read ("step-000000123.h5"), older ones being the fallback; empty when there is none. `keep` newest files
// are kept by `prune_checkpoints`.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);  // newest first
void prune_checkpoints(const std::filesystem::path& folder, int keep, FileSystem& files = posix_file_system());

}  // namespace tpudist
