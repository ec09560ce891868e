#include "train/experiment/values_to_agree.hpp"

namespace tpudist {

std::vector<AgreedValue> values_to_agree(const Experiment& experiment) {
  std::vector<AgreedValue> values;
  for (const ConfigEntry& entry : experiment.entries) {
    const bool is_path = entry.key == "data.shards" || entry.key == "ensemble.fold_file";
    if (!is_path) values.push_back({entry.key, entry.value});
  }
  return values;
}

}  // namespace tpudist
