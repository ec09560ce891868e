#include "train/experiment/agreed_values.hpp"

#include "core/text.hpp"

namespace tpudist {

std::vector<AgreedValue> agreed_values(const Experiment& experiment) {
  std::vector<AgreedValue> values;
  for (const std::string& line : split(experiment.resolved_table, '\n')) {
    const std::size_t end = line.find(' ');
    if (end == std::string::npos || line.substr(0, end) == "data.shards") continue;
    // A `*` behind the value only says that it is not the default.
    std::string_view value = trim(std::string_view(line).substr(end));
    if (value.ends_with(" *")) value = trim(value.substr(0, value.size() - 2));
    values.push_back({line.substr(0, end), std::string(value)});
  }
  return values;
}

}  // namespace tpudist
