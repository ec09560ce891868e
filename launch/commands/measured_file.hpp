#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "statistics/ranking/measured_correction.hpp"
#include "train/scoring/module_ranking.hpp"
#include "train/scoring/module_search.hpp"

namespace tpudist {

// The measured configurations of a file that a module has. Plain data.
struct MeasuredFile {
  std::vector<Measurement> measurements;  // by row of the module, of equal ones any
  std::int64_t not_listed = 0;            // measurements of other configurations
  std::int64_t without_time = 0;          // entries whose time is no number above 0
};

// Reads a JSON file, {"graph": ..., "ranking": [...], "measured": {"next": [...]}} as `rank --json`
// prints it, or a list alone: each entry has `runtime_ns` or `time`, and `layouts` (of a made
// configuration) or `config`, its number. Entries without a time are not measured. Or a tuning file or
// NPZ of the same program with run times (`name` names the module of several), whose configurations
// are found by their content. Throws DataError, which names the file, also for another graph, and
// IoError.
MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const std::string& name);

// The same for a search of the module: measurements are by index in `points`, the configurations of
// the file that the space has.
MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const SearchedModule& searched, std::vector<ConfigSpace::Point>& points);

// [c][n] of a ranking: equal numbers are equal states of a configurable node, or of a feature of
// tile sizes.
std::vector<std::int32_t> ranked_states(const Module& module,
                                        const std::vector<ModuleRanking::Config>& ranking);

}  // namespace tpudist
