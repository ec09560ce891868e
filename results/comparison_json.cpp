#include <nlohmann/json.hpp>

#include "ensemble/interval_json.hpp"
#include "results/comparison_text.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

Json names_json(const SystemScores& system) {
  return {{"collection", system.collection},
          {"metric", system.metric},
          {"graphs", system.judged == JudgedGraphs::valid ? "valid" : "out_of_fold"},
          {"unit", system.unit == MatrixRows::members ? "members" : "runs"},
          {"runs", system.labels},
          {"left_out", system.left_out}};
}

Json count_json(const std::optional<int>& count) {
  return count ? Json(*count) : Json();
}

// p is null where the test cannot tell.
Json test_json(const PermutationTest& test) {
  return {{"p", test.can_tell() ? Json(test.p) : Json()},
          {"smallest_p", test.smallest_p},
          {"labellings", test.labellings},
          {"exact", test.exact}};
}

Json other_families_json(const Comparison::OtherFamilies& own) {
  return {{"interval", family_interval_json(own.interval)},
          {"p", own.p},
          {"these_models", test_json(own.signs)},
          {"runs_needed", count_json(own.runs_needed)},
          {"detectable", own.detectable},
          {"chance_to_win_again", own.shake_up.chance},
          {"expected_regret", own.shake_up.regret}};
}

}  // namespace

Json system_json(const SystemScores& system) {
  Json json = names_json(system);
  if (system.labels.empty()) return json;
  json["score"] = mean_score(system.scores);
  json["these_graphs"] = interval_json(run_interval(system.scores));
  json["other_families"] = family_interval_json(family_interval({&system.scores, 1}));
  return json;
}

Json comparison_json(const SystemPair& pair, const Comparison& found) {
  return {{"a", system_json(pair.a)},
          {"b", system_json(pair.b)},
          {"difference", found.difference},
          {"graphs", found.graphs},
          {"families", found.families},
          {"these_graphs",
           {{"interval", interval_json(found.these_graphs.interval)},
            {"test", test_json(found.these_graphs.test)},
            {"runs_needed", count_json(found.these_graphs.runs_needed)}}},
          {"other_families",
           found.other_families ? other_families_json(*found.other_families) : Json()}};
}

}  // namespace tpudist
