#include "results/records/sweep_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"

namespace tpudist {

TPUDIST_JSON_FIELDS(SweepRun, index, id, variant, experiment, collection, seed, first_member,
                    members, folds, inputs, config)
TPUDIST_JSON_FIELDS(Stage, name, first, count, step_divisor, confirms)
TPUDIST_JSON_FIELDS(SweepRecord::Halves, choosing, confirming)

void to_json(nlohmann::json& json, const FrozenData::Graph& graph) {
  json = {graph.split, graph.name, to_hex(graph.source_hash), graph.configs};
}

void from_json(const nlohmann::json& json, FrozenData::Graph& graph) {
  const auto hash = from_hex(json.at(2).get<std::string>());
  if (!hash) throw DataError("the hash of a graph is not 16 hexadecimal digits");
  graph = {json.at(1), json.at(0), *hash, json.at(3)};
}

TPUDIST_JSON_FIELDS(FrozenData, shards, collection, graphs)

// The fields that need no code of their own: all but `choice` and those of variants.
TPUDIST_JSON_FIELDS(SweepRecord, name, keep, baseline, confirmed_on, experiments, stages, runs,
                    data, halves)

namespace {

using Json = nlohmann::json;

constexpr const char* kSweepFormat = "tpudist sweep 1";
constexpr const char* kStageFormat = "tpudist sweep stage 1";
constexpr std::string_view kChoices[] = {"none", "valid", "out_of_fold"};  // by ChoiceScore

// Later stages may repeat a run of an earlier one, but no run may occur twice in a stage.
void require_sound(const std::vector<SweepRun>& runs, const SweepRecord& record, int first) {
  const int variants = static_cast<int>(record.labels.size());
  const int experiments = static_cast<int>(record.experiments.size());
  std::map<std::string, int> seen;
  for (const SweepRun& run : runs) {
    if (run.id.size() != 16 || run.id.find_first_not_of("0123456789abcdef") != std::string::npos)
      throw DataError(fmt::format("run {}: its id is not 16 hexadecimal digits", run.index));
    if (run.variant < 0 || run.variant >= variants) {
      throw DataError(fmt::format("run {} is of variant {}, but there are {}", run.index,
                                  run.variant, variants));
    }
    const int experiment = record.variant_experiment[static_cast<std::size_t>(run.variant)];
    if (experiment < 0 || experiment >= experiments || run.experiment != experiment) {
      throw DataError(fmt::format("run {} and its variant are of different experiments, or of none",
                                  run.index));
    }
    if (run.members < 1) throw DataError(fmt::format("run {} has no members", run.index));
    const auto [other, is_new] = seen.emplace(run.id, run.index);
    if (!is_new) {
      throw DataError(
          fmt::format("runs {} and {} are the same ({})", other->second, run.index, run.id));
    }
    if (run.index != first++) {
      throw DataError(fmt::format("run {} stands where run {} belongs", run.index, first - 1));
    }
  }
}

}  // namespace

std::string name_of(const SweepRun& run) {
  return fmt::format("run {} ({})", run.index, run.id);
}

std::string SweepRecord::text_of(const SweepRun& run) const {
  const int last = run.first_member + run.members - 1;
  return label(run.variant) + (run.seed ? fmt::format(", seed {}", *run.seed) : "") +
         (run.members == 1 ? fmt::format(", member {}", last)
                           : fmt::format(", members {} to {}", run.first_member, last));
}

bool is_baseline(const std::vector<SweepRun>& runs, const SweepRun& run) {
  return std::ranges::find(runs, run.experiment, &SweepRun::experiment)->variant != run.variant;
}

void write_record(const std::filesystem::path& path, const SweepRecord& record) {
  Json json = record;
  json["format"] = kSweepFormat;
  json["choose_by"] = kChoices[static_cast<int>(record.choice)];
  Json& variants = json["variants"] = Json::array();
  for (std::size_t i = 0; i < record.labels.size(); ++i)
    variants.push_back({{"experiment", record.variant_experiment[i]},
                        {"label", record.labels[i]},
                        {"group", record.variant_group[i]}});
  write_file_atomically(path, json.dump(1) + "\n");
}

void write_stage_runs(const std::filesystem::path& path, const std::vector<SweepRun>& runs) {
  const Json json = {{"format", kStageFormat}, {"runs", runs}};
  write_file_atomically(path, json.dump(1) + "\n");
}

SweepRecord read_record(const std::filesystem::path& path) {
  SweepRecord record;
  const auto from = [&](const Json& json) {
    json.get_to(record);
    std::string choice;
    read_field(json, "choose_by", choice);
    const auto at = std::ranges::find(kChoices, choice);
    if (at == std::end(kChoices))
      throw DataError("choose_by: is neither none, valid nor out_of_fold");
    record.choice = static_cast<ChoiceScore>(at - kChoices);
    for (const Json& variant : json.at("variants")) {
      read_field(variant, "experiment", record.variant_experiment.emplace_back());
      read_field(variant, "label", record.labels.emplace_back());
      read_field(variant, "group", record.variant_group.emplace_back());
    }
    if (record.stages.empty() || record.runs.empty()) throw DataError("it has no runs");
    require_sound(record.runs, record, 0);
  };
  read_json_file(path, kSweepFormat, "expand the sweep again into another folder", from);
  return record;
}

std::vector<SweepRun> read_stage_runs(const std::filesystem::path& path, const SweepRecord& record,
                                      int stage) {
  std::vector<SweepRun> runs;
  const auto from = [&](const Json& json) {
    read_field(json, "runs", runs);
    require_sound(runs, record, record.stages[static_cast<std::size_t>(stage)].first);
  };
  read_json_file(path, kStageFormat, "remove it, and `tpudist sweep run` makes it again", from);
  return runs;
}

}  // namespace tpudist
