#include "models/layers/directions.hpp"

#include <algorithm>

namespace tpudist {
namespace {

struct Direction {
  const char* name;
  EdgeKind kind;
  const char* text;
};
constexpr Direction kDirections[] = {
    {"consumer_to_producer", EdgeKind::consumer_to_producer, " from consumers"},
    {"producer_to_consumer", EdgeKind::producer_to_consumer, " from producers"},
    {"config_consumer_to_producer", EdgeKind::config_consumer_to_producer,
     " from configurable consumers"},
    {"config_producer_to_consumer", EdgeKind::config_producer_to_consumer,
     " from configurable producers"},
};

}  // namespace

std::vector<EdgeKind> read_directions(ConfigNode block, bool some,
                                      const std::vector<std::string>& fallback) {
  std::vector<std::string> names;
  for (const Direction& direction : kDirections) names.emplace_back(direction.name);
  std::vector<EdgeKind> kinds;
  for (const std::string& name : block.words("directions", fallback, names))
    kinds.push_back(std::ranges::find(kDirections, name, &Direction::name)->kind);
  if (some && kinds.empty()) {
    block.mistake("directions", "must hold at least one direction");
    kinds = {EdgeKind::consumer_to_producer};
  }
  return kinds;
}

std::string direction_text(const std::vector<EdgeKind>& directions) {
  std::string text;
  for (const EdgeKind kind : directions)
    text += std::ranges::find(kDirections, kind, &Direction::kind)->text;
  return text;
}

std::vector<double> neighbour_counts(const PlanLayer& step, const EdgeSet& edges) {
  std::vector<double> counts(static_cast<std::size_t>(step.rows_out));
  const Csr& matrix = edges.aggregate.forward;
  for (std::int64_t row = 0; row < step.rows_out; ++row) {
    const std::int64_t of = edges.neighbourhood(row) / edges.aggregate.replicas;
    for (std::int64_t entry = matrix.begin[of]; entry < matrix.begin[of + 1]; ++entry)
      counts[static_cast<std::size_t>(row)] += matrix.weight_of(entry);
  }
  return counts;
}

}  // namespace tpudist
