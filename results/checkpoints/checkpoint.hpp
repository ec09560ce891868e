#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/config_record.hpp"
#include "core/file_system.hpp"
#include "core/parameters/parameter_table.hpp"

namespace tpudist {

// The part of a checkpoint that can be read without knowing its network.
struct CheckpointSummary {
  std::int64_t step = 0;             // steps done
  std::uint64_t config_hash = 0;     // of the resolved settings that influence the numbers
  std::uint64_t selection_hash = 0;  // of the training data's selection
  std::string config;                // resolved YAML
  std::string changed_keys;          // keys of `config` that are not at their default, one per line
  // hash_of_folds and segment_hash of the training data. No fold_hash if members hold no graphs
  // out; no segment_hash if graphs are not cut.
  std::optional<std::uint64_t> fold_hash, segment_hash;
  std::optional<std::uint64_t> metis_hash;  // where METIS cuts graphs
  // Hash of the weights at train.init_from (a run's parameter_hash); nothing without that key.
  std::optional<std::uint64_t> init_hash;

  // `config` as a list; keys that `changed_keys` lacks are at their default. Throws ConfigError
  // when `config` is not YAML.
  std::vector<ConfigEntry> entries() const;
};

// Everything that training needs to continue as if it had never stopped. Plain data.
struct Checkpoint : CheckpointSummary {
  int members = 0;
  std::vector<float> parameters;                   // [M, P] flat, padded
  std::vector<float> first_moment, second_moment;  // [M, P]
  std::vector<std::int64_t> optimizer_steps;       // [M]
  std::vector<float> average;                      // [M, P] averaged weights; empty: none
  std::vector<std::int64_t> average_points;        // [M] of WeightAverage; empty: none
  std::vector<double> best_score;                  // [M] best validation score so far, NaN if none
  std::vector<std::int64_t> best_step;             // [M]
  std::vector<int> failed;  // [M] 1 = dropped: its loss or gradient was not finite
  // [M] of EarlyStop; empty without early stopping.
  std::vector<double> stop_best;
  std::vector<std::int64_t> stop_waited, stopped_at;
  std::vector<double> losses;  // [M, 30] of results/records/initial_and_final_loss.hpp
  // [M, n] of SegmentTable; empty without cut graphs, and in best.h5.
  std::vector<float> segment_scores;
  std::map<std::string, double> numbers;  // other scalars, e.g. seconds trained
};

// Writes one HDF5 file, readable by h5py:
//
//   /                   format = "tpudist-checkpoint", version, step, config_hash, selection_hash,
//                       config, changed_keys, members, fold_hash if there are folds,
//                       segment_hash where graphs are cut, metis_hash where METIS does, init_hash
//                       with train.init_from
//   /parameters         <name with dots> float32 [M, shape...], without padding
//   /optimizer/first    the same names and shapes: Adam's moments
//   /optimizer/second
//   /average            the same names and shapes: averaged weights, of runs that keep them
//   /segment_scores     f32 [M, n]: SegmentTable, of runs that cut graphs
//   /members            optimizer_steps i64[M], best_score f64[M], best_step i64[M], failed i32[M];
//                       average_points i64[M], with /average; stop_best f64[M],
//                       stop_waited, stopped_at i64[M], with early stopping; losses f64[M, 30]
//   /numbers            one f64 attribute for each number
//
// The first 512 bytes, which HDF5 skips, hold size and XXH3 of the rest. The file is built in
// memory (core driver, file image) and written with write_file_atomically, which never leaves an
// existing file half overwritten. Throws Error if a size in `checkpoint` does not match `table`,
// and IoError.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const ParameterTable& table, FileSystem& files = posix_file_system());

// A checkpoint in memory. The file is read and checked once, here or by another rank. The
// constructor decodes only the summary.
class CheckpointFile {
 public:
  // Throws IoError when the file cannot be read, DataError when it is damaged (hash), not a
  // checkpoint, or of a newer version.
  explicit CheckpointFile(std::filesystem::path path);
  // Takes the bytes of that file, already checked by the caller. Throws DataError.
  CheckpointFile(std::filesystem::path path, std::vector<std::byte> bytes);

  const std::filesystem::path& path() const { return path_; }
  const CheckpointSummary& summary() const { return summary_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Throws DataError when the checkpoint does not match `table`; the message names the first
  // parameter that differs. Sets padding to zero. Only training needs the large segment scores.
  Checkpoint load(const ParameterTable& table, bool segment_scores = true) const;
  // Names and shapes of the parameters, sorted by name. Use this table for `load` if the network
  // is not known. Throws DataError.
  ParameterTable parameters() const;

 private:
  std::filesystem::path path_;
  std::vector<std::byte> bytes_;
  CheckpointSummary summary_;
};

// XXH3 over the unpadded parameters of all members, in name order, with names and shapes. `train`
// prints this hash as `parameters: <hash>`. `flat` is [M, P].
std::uint64_t parameter_hash(std::span<const float> flat, int members, const ParameterTable& table);

// Which checkpoints hold a list: all, those of runs with averages, or those of runs with early
// stopping. In other runs the list is empty.
enum class ListKept { always, averages, early_stop };

// Calls visit(path in the file, ListKept, this list of each object in `all`) for each list of
// members that a checkpoint keeps, in the order of the file. Lists of floats are [M, P]; all others
// are [M].
// To add a list, add it here, to Checkpoint, and to what TrainingState copies
// (train/loop/training_state.cpp).
template <typename Visit, typename... Checkpoints>
void visit_lists(const Visit& visit, Checkpoints&... all) {
  visit("parameters", ListKept::always, all.parameters...);
  visit("optimizer/first", ListKept::always, all.first_moment...);
  visit("optimizer/second", ListKept::always, all.second_moment...);
  visit("members/optimizer_steps", ListKept::always, all.optimizer_steps...);
  visit("members/best_score", ListKept::always, all.best_score...);
  visit("members/best_step", ListKept::always, all.best_step...);
  visit("members/failed", ListKept::always, all.failed...);
  visit("average", ListKept::averages, all.average...);
  visit("members/average_points", ListKept::averages, all.average_points...);
  visit("members/stop_best", ListKept::early_stop, all.stop_best...);
  visit("members/stop_waited", ListKept::early_stop, all.stop_waited...);
  visit("members/stopped_at", ListKept::early_stop, all.stopped_at...);
}

}  // namespace tpudist
