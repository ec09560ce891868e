#include "models/layers/directions.hpp"

namespace tpudist {

std::vector<EdgeKind> read_directions(ConfigNode block, bool some,
                                      const std::vector<std::string>& fallback) {
  std::vector<EdgeKind> kinds;
  for (const std::string& direction : block.texts("directions", fallback)) {
    if (direction == "consumer_to_producer") {
      kinds.push_back(EdgeKind::consumer_to_producer);
    } else if (direction == "producer_to_consumer") {
      kinds.push_back(EdgeKind::producer_to_consumer);
    } else {
      block.mistake("directions",
                    "must hold consumer_to_producer or producer_to_consumer, not " + direction);
    }
  }
  if (some && kinds.empty()) {
    block.mistake("directions", "must hold at least one direction");
    kinds = {EdgeKind::consumer_to_producer};
  }
  return kinds;
}

std::string direction_text(const std::vector<EdgeKind>& directions) {
  std::string text;
  for (const EdgeKind kind : directions)
    text += kind == EdgeKind::consumer_to_producer ? " from consumers" : " from producers";
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
