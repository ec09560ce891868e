#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_system.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {

// A submission in the competition's format: a CSV file with the header `ID,TopConfigs` and one line
// per graph, e.g. `layout:xla:default:bert,3;0;1`: configuration numbers, fastest first. Tile
// graphs list the 5 best, layout graphs all. Rows stay in the order of add(). Not thread-safe.
class Submission {
 public:
  static constexpr std::int64_t kTileConfigs = 5;

  struct Row {
    std::string id;                     // "<collection>:<graph>"
    std::vector<std::int32_t> configs;  // fastest first, distinct
  };

  // Ranks the configurations 0 .. scores.size()-1 of a graph: lowest score first, equal scores by
  // number. Throws DataError on NaN, without scores, for a graph that was added before, and for a
  // name that CSV cannot represent.
  void add(const Collection& collection, std::string_view graph, std::span<const double> scores);

  const std::vector<Row>& rows() const { return rows_; }

  std::string to_csv() const;
  // Atomic. Throws IoError.
  void write(const std::filesystem::path& path, FileSystem& files = posix_file_system()) const;

 private:
  std::vector<Row> rows_;
  std::set<std::string> ids_;
};

// Configuration numbers by ascending score, equal scores by number. Throws DataError on NaN.
std::vector<std::int32_t> ranking_of(std::span<const double> scores);

}  // namespace tpudist
