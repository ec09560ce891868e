#include "results/scores/submission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace tpudist {

std::vector<std::int32_t> ranking_of(std::span<const double> scores) {
  const auto bad = std::ranges::find_if(scores, [](double s) { return std::isnan(s); });
  if (bad != scores.end())
    throw DataError(fmt::format("the score of configuration {} is NaN", bad - scores.begin()));
  if (scores.size() > std::numeric_limits<std::int32_t>::max())
    throw DataError("a graph has more configurations than 32-bit numbers");
  std::vector<std::int32_t> ranking(scores.size());
  std::iota(ranking.begin(), ranking.end(), 0);
  std::ranges::stable_sort(ranking, {},
                           [&](std::int32_t i) { return scores[static_cast<std::size_t>(i)]; });
  return ranking;
}

void Submission::add(const Collection& collection, std::string_view graph,
                     std::span<const double> scores) {
  Row row{fmt::format("{}:{}", collection.name, graph), {}};
  if (graph.empty() || graph.find_first_of(",\"\r\n") != std::string_view::npos)
    throw DataError(fmt::format("the graph name '{}' cannot stand in a submission", graph));
  if (scores.empty()) throw DataError(row.id + " has no configurations to rank");
  try {
    row.configs = ranking_of(scores);
  } catch (const DataError& error) {
    throw DataError(row.id + ": " + error.what());
  }
  if (collection.is_tile())
    row.configs.resize(std::min<std::size_t>(row.configs.size(), kTileConfigs));
  if (!ids_.insert(row.id).second)
    throw DataError("the submission already holds a row of " + row.id);
  rows_.push_back(std::move(row));
}

std::string Submission::to_csv() const {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "ID,TopConfigs\n");
  for (const Row& row : rows_)
    fmt::format_to(std::back_inserter(text), "{},{}\n", row.id, fmt::join(row.configs, ";"));
  return fmt::to_string(text);
}

void Submission::write(const std::filesystem::path& path, FileSystem& files) const {
  write_file_atomically(path, to_csv(), files);
}

}  // namespace tpudist
