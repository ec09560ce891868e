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
    std::uint64_t data_hash = 0;  // 0: unknown, because an earlier version wrote the file
    double score = 0;             // of the combined members
  };
  struct Member {
    std::optional<int> number;  // nothing: unknown, because an earlier version wrote the file
    bool used = false;          // false: the member failed
    std::optional<double> mean;
    std::vector<double> scores;  // one for each of `graphs`
  };
  struct OutOfFold {
    int number = 0, graphs = 0;
    std::optional<double> score;
  };

  std::string split;
  std::int64_t most_rows = 0;    // most scored rows of a graph; 0: all
  std::string combine;           // rule by which members are combined (to_text); empty: unknown
  std::uint64_t parameters = 0;  // hash of the parameters; 0: unknown
  std::vector<Graph> graphs;     // `graphs` and `members` are empty where nothing was evaluated
  std::vector<Member> members;
  std::vector<OutOfFold> out_of_fold;
};

// Throws DataError that names the file where it is damaged, and IoError.
ScoresFile read_scores_file(const std::filesystem::path& path);

}  // namespace tpudist
