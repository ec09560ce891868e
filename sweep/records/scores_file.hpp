#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tpudist {

// What scores.json says, which `train` writes into the folder of a run. Scores are of the primary
// metric; NaN where it is undefined. Plain data.
struct ScoresFile {
  struct Graph {
    std::string name;
    std::int64_t configs = 0;     // that were scored
    std::uint64_t data_hash = 0;  // 0: unknown, of an earlier version
    double score = 0;             // of members together
  };
  struct Member {
    std::optional<int> number;  // nothing: unknown, of an earlier version
    bool used = false;          // else it failed
    std::optional<double> mean;
    std::vector<double> scores;  // of its graphs
  };
  struct OutOfFold {
    int number = 0, graphs = 0;
    std::optional<double> score;
  };

  std::string split;
  std::int64_t most_rows = 0;    // of a graph; 0: all
  std::string combine;           // by which members are together (to_text); empty: unknown
  std::uint64_t parameters = 0;  // hash; 0: unknown
  std::vector<Graph> graphs;     // these and members are none where nothing was evaluated
  std::vector<Member> members;
  std::vector<OutOfFold> out_of_fold;
};

// Throws DataError that names the file where it is damaged, and IoError.
ScoresFile read_scores_file(const std::filesystem::path& path);

}  // namespace tpudist
