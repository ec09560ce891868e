#include "scores/submission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "schema/merged_collection.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kHeader = "ID,TopConfigs";

// "3;0;1" as numbers; throws DataError "WHERE: ...".
std::vector<std::int32_t> parse_configs(std::string_view text, const std::string& where) {
  std::vector<std::int32_t> configs;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::int32_t config = 0;
    const auto [next, error] = std::from_chars(at, end, config);
    if (error != std::errc{} || config < 0 || (next != end && *next != ';')) {
      const std::string_view rest(at,
                                  std::min<std::size_t>(static_cast<std::size_t>(end - at), 20));
      throw DataError(
          fmt::format("{}: expected configuration numbers joined by ';', but entry {} "
                      "begins with '{}'",
                      where, configs.size(), rest));
    }
    configs.push_back(config);
    if (next == end) break;
    at = next + 1;
  }
  std::vector<std::int32_t> sorted = configs;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end())
    throw DataError(fmt::format("{}: configuration {} is listed twice", where, *twice));
  return configs;
}

Submission::Row parse_row(std::string_view line, const std::string& where) {
  const std::size_t comma = line.find(',');
  if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos)
    throw DataError(where + ": expected two columns, ID,TopConfigs");
  const std::string_view id = line.substr(0, comma);
  if (collection_of_id(id).empty()) {
    throw DataError(
        fmt::format("{}: the ID '{}' is no collection and graph such as "
                    "layout:xla:default:bert",
                    where, id.substr(0, 100)));
  }
  return {std::string(id), parse_configs(line.substr(comma + 1), where)};
}

}  // namespace

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

void Submission::add_row(Row row) {
  if (!row_of_id_.emplace(row.id, rows_.size()).second)
    throw DataError("the submission already holds a row of " + row.id);
  rows_.push_back(std::move(row));
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
  add_row(std::move(row));
}

const Submission::Row* Submission::find(std::string_view id) const {
  const auto found = row_of_id_.find(id);
  return found == row_of_id_.end() ? nullptr : &rows_[found->second];
}

void Submission::merge(const Submission& other) {
  for (const Row& row : other.rows_) {
    const Row* mine = find(row.id);
    if (mine && mine->configs != row.configs) {
      throw ConfigError("two submissions rank " + row.id +
                        " differently: give each collection to one of them only");
    }
  }
  for (const Row& row : other.rows_) {
    if (!find(row.id)) add_row(row);
  }
}

std::string Submission::to_csv() const {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "{}\n", kHeader);
  for (const Row& row : rows_)
    fmt::format_to(std::back_inserter(text), "{},{}\n", row.id, fmt::join(row.configs, ";"));
  return fmt::to_string(text);
}

void Submission::write(const std::filesystem::path& path, FileSystem& files) const {
  write_file_atomically(path, to_csv(), files);
}

Submission Submission::read(const std::filesystem::path& path) {
  return parse(read_text_file(path), path.string());
}

Submission Submission::parse(std::string_view csv, std::string_view name) {
  Submission submission;
  std::int64_t number = 0;
  while (!csv.empty()) {
    const std::string where = fmt::format("{}:{}", name, ++number);
    const std::size_t end = csv.find('\n');
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1) {
      if (line != kHeader)
        throw DataError(fmt::format("{}: expected the header {}", where, kHeader));
      continue;
    }
    Row row = parse_row(line, where);
    if (submission.find(row.id))
      throw DataError(fmt::format("{}: a second row of {}", where, row.id));
    submission.add_row(std::move(row));
  }
  if (number == 0) throw DataError(fmt::format("{}: empty; expected the header {}", name, kHeader));
  return submission;
}

}  // namespace tpudist
