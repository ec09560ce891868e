#include <nlohmann/json.hpp>

#include "ensemble/interval_json.hpp"
#include "results/comparison_text.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

Json names_json(const SystemScores& system) {
  return {{"collection", system.collection},
          {"metric", system.metric},
          {"graphs", system.judged == EvaluatedOn::valid ? "valid" : "out_of_fold"},
          {"score_of", name_of(system.score)},
          {"runs", system.labels},
          {"members", system.members},
          {"notes", system.notes},
          {"left_out", system.left_out}};
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
          {"p", own.interval.runs == 1 ? Json() : Json(own.p)},
          {"these_models", test_json(own.signs)},
          {"chance_to_win_again", own.shake_up.chance},
          {"expected_regret", own.shake_up.regret}};
}

Json these_graphs_json(const Comparison::TheseGraphs& own) {
  return {{"interval", interval_json(own.interval)},
          {"p", own.p},
          {"exchanged_labels", own.labels ? test_json(*own.labels) : Json()}};
}

// Both intervals of `scores`, whose columns are trainings.
Json intervals_json(const RunScoreTable& scores) {
  return {{"score", mean_score(scores)},
          {"these_graphs", interval_json(run_interval(scores))},
          {"other_families", family_interval_json(family_interval({&scores, 1}))}};
}

Json needed_json(const std::optional<NeededRange>& found) {
  const auto number = [](const NeededNumber& value) { return value ? Json(*value) : Json(); };
  if (!found) return {};
  return {{"number", number(found->number)},
          {"low", number(found->low)},
          {"high", number(found->high)}};
}

}  // namespace

Json system_json(const SystemScores& system) {
  Json json = names_json(system);
  if (system.labels.empty()) return json;
  json.update(intervals_json(system.scores));
  json["members_together"] = system.together ? intervals_json(*system.together) : Json();
  json["other_members"] = system.members_of_one
                              ? interval_json(mean_interval(run_means(*system.members_of_one)))
                              : Json();
  return json;
}

Json comparison_json(const SystemPair& pair, const Comparison& found) {
  return {{"a", system_json(pair.a)},
          {"b", system_json(pair.b)},
          {"verdict", verdict_text(found)},
          {"difference", found.difference},
          {"graphs", found.graphs},
          {"families", found.families},
          {"these_graphs", found.these_graphs ? these_graphs_json(*found.these_graphs) : Json()},
          {"other_families",
           found.other_families ? other_families_json(*found.other_families) : Json()}};
}

Json plan_json(const DifferencePlan& plan) {
  return {{"difference", plan.difference},
          {"runs", needed_json(plan.runs)},
          {"families", needed_json(plan.families)},
          {"families_with_ten_times_the_runs", needed_json(plan.families_with_more_runs)}};
}

}  // namespace tpudist
