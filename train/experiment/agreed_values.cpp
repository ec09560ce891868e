#include "train/experiment/agreed_values.hpp"

namespace tpudist {

std::vector<AgreedValue> agreed_values(const Experiment& experiment) {
  std::vector<AgreedValue> values;
  for (const ConfigEntry& entry : experiment.entries) {
    if (entry.key != "data.shards") values.push_back({entry.key, entry.value});
  }
  return values;
}

}  // namespace tpudist
