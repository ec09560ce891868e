#include "models/layers/directions.hpp"

namespace tpudist {
namespace {

const std::vector<std::string> kDefaultDirections = {"consumer_to_producer"};

}  // namespace

std::vector<EdgeKind> read_directions(ConfigNode block) {
  std::vector<EdgeKind> kinds;
  for (const std::string& direction : block.texts("directions", kDefaultDirections)) {
    if (direction == "consumer_to_producer") {
      kinds.push_back(EdgeKind::consumer_to_producer);
    } else if (direction == "producer_to_consumer") {
      kinds.push_back(EdgeKind::producer_to_consumer);
    } else {
      block.mistake("directions",
                    "must hold consumer_to_producer or producer_to_consumer, not " + direction);
    }
  }
  return kinds;
}

std::string direction_text(const std::vector<EdgeKind>& directions) {
  std::string text;
  for (const EdgeKind kind : directions)
    text += kind == EdgeKind::consumer_to_producer ? " from consumers" : " from producers";
  return text;
}

}  // namespace tpudist
