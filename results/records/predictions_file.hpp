#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/file_system.hpp"
#include "data/hdf5/hdf5_dataset.hpp"
#include "results/records/predictions.hpp"

namespace tpudist {

// A prediction file: HDF5, readable by h5py (docs/predictions.md). The header gives all sizes.
// Graphs are written one by one, so that memory holds only one of them.

// Writes a prediction file under a temporary name.
class PredictionsWriter {
 public:
  // Throws Error when the header is inconsistent, and IoError.
  PredictionsWriter(const std::filesystem::path& path, PredictionsHeader header,
                    FileSystem& files = posix_file_system());
  ~PredictionsWriter();

  const PredictionsHeader& header() const { return header_; }

  // Adds the predictions for graph `graph` of the header. Call once for each graph, in any order.
  // Throws Error when the predictions do not match the header, and IoError.
  void add(int graph, const PredictionRows& predictions);

  // Seals the file and renames it. Throws Error when a graph is missing, and IoError.
  void finish();

 private:
  TemporaryFile file_;
  const PredictionsHeader header_;
  std::vector<std::int64_t> begin_;  // [G + 1]
  std::vector<bool> added_;
  std::vector<double> offset_;  // [G, M]
  Hdf5Id hdf5_, rows_;
  Hdf5Dataset config_, runtime_, group_, normalizer_, score_;
};

// Reads a prediction file. Thread-safe.
class PredictionsFile : public PredictionSource {
 public:
  // Reads the file once and checks hash, format, counts, names and flags. Throws DataError that
  // says what is wrong, IoError when the file cannot be read.
  explicit PredictionsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const PredictionsHeader& header() const override { return header_; }

  // Throws DataError when a configuration number is not one of the graph's, and IoError.
  PredictionRows read(int graph) const override;

 private:
  std::filesystem::path path_;
  PredictionsHeader header_;
  std::vector<std::int64_t> begin_;  // [G + 1]
  std::vector<double> offset_;       // [G, M]
  Hdf5Id hdf5_;
  Hdf5Dataset config_, runtime_, group_, normalizer_, score_;
};

}  // namespace tpudist
