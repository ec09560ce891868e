#include "ensemble/interval_json.hpp"

#include <nlohmann/json.hpp>

namespace tpudist {

nlohmann::json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"value", interval->value},
          {"error", interval->error},
          {"degrees", interval->degrees},
          {"low", interval->low},
          {"high", interval->high}};
}

nlohmann::json family_interval_json(const std::optional<FamilyInterval>& found) {
  if (!found) return nullptr;
  nlohmann::json json = interval_json(found->interval);
  json["families"] = found->families;
  json["graphs"] = found->graphs;
  json["collections"] = found->collections;
  json["runs"] = found->runs;
  json["family_variance"] = found->family.variance;
  json["run_variance"] = found->run_variance;
  json["bootstrap"] = found->bootstrap;
  return json;
}

}  // namespace tpudist
