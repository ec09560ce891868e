#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/file_system.hpp"
#include "data/hdf5/plain_dataset.hpp"
#include "ensemble/prediction_source.hpp"
#include "ensemble/predictions.hpp"

namespace tpudist {

// A file of predictions, HDF5 that h5py reads plainly (docs/predictions.md describes it). Sizes are
// known from the header on, and graphs are written as they come, so that memory holds one of them.

// Writes such a file under a temporary name.
class PredictionsWriter {
 public:
  // Throws Error where the header does not fit itself, and IoError.
  PredictionsWriter(const std::filesystem::path& path, PredictionsHeader header,
                    FileSystem& files = posix_file_system());
  ~PredictionsWriter();

  const PredictionsHeader& header() const { return header_; }

  // The predictions for graph `graph` of the header, once for each, in any order. Throws Error where
  // they do not fit the header, IoError.
  void add(int graph, const PredictionRows& predictions);

  // Seals the file and gives it its name. Throws Error when a graph is missing, IoError.
  void finish();

 private:
  TemporaryFile file_;
  const PredictionsHeader header_;
  std::vector<std::int64_t> begin_;  // [G + 1]
  std::vector<bool> added_;
  std::vector<double> offset_;  // [G, M]
  Hdf5Id hdf5_, rows_;
  PlainDataset config_, runtime_, group_, normalizer_, score_;
};

// Reads such a file. Thread-safe.
class PredictionsFile : public PredictionSource {
 public:
  // Reads the file once and checks hash, format, counts, names and flags. Throws DataError that says
  // what is wrong, IoError when it cannot be read.
  explicit PredictionsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const PredictionsHeader& header() const override { return header_; }

  // Throws DataError when configuration numbers are not those of the graph, IoError.
  PredictionRows read(int graph) const override;

 private:
  std::filesystem::path path_;
  PredictionsHeader header_;
  std::vector<std::int64_t> begin_;  // [G + 1]
  std::vector<double> offset_;       // [G, M]
  Hdf5Id hdf5_;
  std::optional<PlainDataset> group_;  // files of an earlier version lack it
  PlainDataset config_, runtime_, normalizer_, score_;
};

}  // namespace tpudist
