#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/file_system.hpp"
#include "data/hdf5/hdf5_dataset.hpp"
#include "results/records/predictions.hpp"

namespace tpudist {

// A prediction file: HDF5, directly readable by h5py (docs/predictions.md describes it). The header
// gives all sizes, and graphs are written one by one, so that memory holds only one of them.

// Writes such a file under a temporary name.
class PredictionsWriter {
 public:
  // Throws Error when the header is inconsistent, and IoError.
  PredictionsWriter(const std::filesystem::path& path, PredictionsHeader header,
                    FileSystem& files = posix_file_system());
  ~PredictionsWriter();

  const PredictionsHeader& header() const { return header_; }

  // The predictions for graph `graph` of the header, once for each, in any order. Throws Error when
  // they do not match the header, and IoError.
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

// Reads such a file. Thread-safe.
class PredictionsFile : public PredictionSource {
 public:
  // Reads the file once and checks hash, format, counts, names and flags. Throws DataError that
  // says what is wrong, IoError when it cannot be read.
  explicit PredictionsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const PredictionsHeader& header() const override { return header_; }

  // Throws DataError when configuration numbers are not those of the graph, and IoError.
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
