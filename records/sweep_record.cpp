#include "records/sweep_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"

namespace tpudist {
namespace {

using Json = nlohmann::json;

constexpr const char* kSweepFormat = "tpudist sweep 1";
constexpr const char* kStageFormat = "tpudist sweep stage 1";
constexpr const char* kChoices[] = {"none", "valid", "out_of_fold"};

Json to_json(const SweepRun& run) {
  return {{"index", run.index},
          {"id", run.id},
          {"variant", run.variant},
          {"experiment", run.experiment},
          {"collection", run.collection},
          {"seed", run.seed ? Json(*run.seed) : Json()},
          {"first_member", run.first_member},
          {"members", run.members},
          {"folds", run.folds},
          {"inputs", run.inputs},
          {"config", run.config}};
}

SweepRun run_from(const Json& json) {
  SweepRun run;
  run.index = json.at("index").get<int>();
  run.id = json.at("id").get<std::string>();
  run.variant = json.at("variant").get<int>();
  run.experiment = json.at("experiment").get<int>();
  run.collection = json.at("collection").get<std::string>();
  if (!json.at("seed").is_null()) run.seed = json.at("seed").get<std::uint64_t>();
  run.first_member = json.at("first_member").get<int>();
  run.members = json.at("members").get<int>();
  run.folds = json.at("folds").get<int>();
  run.config = json.at("config").get<std::string>();
  run.inputs = inputs_from(json);
  if (run.id.size() != 16 || run.id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw DataError(fmt::format("run {}: its id is not 16 hexadecimal digits", run.index));
  }
  return run;
}

Json runs_json(const std::vector<SweepRun>& runs) {
  Json list = Json::array();
  for (const SweepRun& run : runs) list.push_back(to_json(run));
  return list;
}

std::vector<SweepRun> runs_from(const Json& list) {
  std::vector<SweepRun> runs;
  for (const Json& run : list) runs.push_back(run_from(run));
  return runs;
}

// Later stages may repeat a run of an earlier one, but no run may occur twice in a stage.
void require_sound(const std::vector<SweepRun>& runs, const SweepRecord& record, int first) {
  const int variants = static_cast<int>(record.labels.size());
  const int experiments = static_cast<int>(record.experiments.size());
  std::map<std::string, int> seen;
  for (const SweepRun& run : runs) {
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

Json to_json(const FrozenData& data) {
  Json graphs = Json::array();
  for (const FrozenGraph& graph : data.graphs) {
    graphs.push_back({graph.split, graph.name, to_hex(graph.source_hash), graph.configs});
  }
  return {{"shards", data.shards}, {"collection", data.collection}, {"graphs", graphs}};
}

FrozenData data_from(const Json& json) {
  FrozenData data{
      json.at("shards").get<std::string>(), json.at("collection").get<std::string>(), {}};
  for (const Json& graph : json.at("graphs")) {
    const auto hash = from_hex(graph.at(2).get<std::string>());
    if (!hash) throw DataError("the hash of a graph is not 16 hexadecimal digits");
    data.graphs.push_back({graph.at(1).get<std::string>(), graph.at(0).get<std::string>(), *hash,
                           graph.at(3).get<std::int64_t>()});
  }
  return data;
}

Json to_json(const Stage& stage) {
  return {{"name", stage.name},
          {"first", stage.first},
          {"count", stage.count},
          {"step_divisor", stage.step_divisor},
          {"confirms", stage.confirms}};
}

Stage stage_from(const Json& json) {
  return {json.at("name").get<std::string>(), json.at("first").get<int>(),
          json.at("count").get<int>(), json.at("step_divisor").get<std::int64_t>(),
          json.at("confirms").get<bool>()};
}

void group_by_collection(SweepRecord& record) {
  std::map<std::pair<int, std::string>, int> groups;
  record.variant_group.assign(record.labels.size(), 0);
  for (const SweepRun& run : record.runs) {
    const int next = static_cast<int>(groups.size());
    record.variant_group[static_cast<std::size_t>(run.variant)] =
        groups.try_emplace({run.experiment, run.collection}, next).first->second;
  }
}

SweepRecord record_from(const Json& json) {
  SweepRecord record;
  record.name = json.at("name").get<std::string>();
  const std::string choice = json.at("choose_by").get<std::string>();
  for (int i = 0; i < 3; ++i) {
    if (choice == kChoices[i]) record.choice = static_cast<ChoiceScore>(i);
  }
  record.keep = json.at("keep").get<int>();
  record.baseline = json.value("baseline", false);
  record.confirmed_on = json.at("confirmed_on").get<std::string>();
  record.experiments = json.at("experiments").get<std::vector<std::string>>();
  for (const Json& variant : json.at("variants")) {
    record.variant_experiment.push_back(variant.at("experiment").get<int>());
    record.labels.push_back(variant.at("label").get<std::string>());
    if (variant.contains("group")) record.variant_group.push_back(variant.at("group").get<int>());
  }
  if (json.contains("data")) {
    record.data.emplace();
    for (const Json& data : json.at("data")) record.data->push_back(data_from(data));
    for (const Json& half : json.at("halves")) {
      record.halves.push_back({half.at("choosing").get<std::vector<std::string>>(),
                               half.at("confirming").get<std::vector<std::string>>()});
    }
  }
  for (const Json& stage : json.at("stages")) record.stages.push_back(stage_from(stage));
  record.runs = runs_from(json.at("runs"));
  if (record.stages.empty() || record.runs.empty()) throw DataError("it has no runs");
  require_sound(record.runs, record, 0);
  if (record.variant_group.size() != record.labels.size()) group_by_collection(record);
  return record;
}

template <typename T>
T read_json(const std::filesystem::path& path, const char* format, const char* advice,
            const std::function<T(const Json&)>& from) {
  const std::string text = read_text_file(path);
  try {
    const Json json = Json::parse(text);
    const std::string found = json.at("format").get<std::string>();
    if (found != format) {
      throw DataError(
          fmt::format("its format is \"{}\", and this program reads \"{}\"", found, format));
    }
    return from(json);
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("{}: damaged: {}; {}", path.string(), json_fault(error.what()), advice));
  }
}

}  // namespace

bool is_baseline(const std::vector<SweepRun>& runs, const SweepRun& run) {
  return std::ranges::find(runs, run.experiment, &SweepRun::experiment)->variant != run.variant;
}

void write_record(const std::filesystem::path& path, const SweepRecord& record) {
  Json variants = Json::array(), stages = Json::array();
  for (std::size_t i = 0; i < record.labels.size(); ++i) {
    variants.push_back({{"experiment", record.variant_experiment[i]}, {"label", record.labels[i]}});
    if (i < record.variant_group.size()) variants.back()["group"] = record.variant_group[i];
  }
  for (const Stage& stage : record.stages) stages.push_back(to_json(stage));
  Json json = {{"format", kSweepFormat},
               {"name", record.name},
               {"choose_by", kChoices[static_cast<int>(record.choice)]},
               {"keep", record.keep},
               {"baseline", record.baseline},
               {"confirmed_on", record.confirmed_on},
               {"experiments", record.experiments},
               {"variants", variants},
               {"stages", stages},
               {"runs", runs_json(record.runs)}};
  if (record.data) {
    json["data"] = Json::array();
    for (const FrozenData& data : *record.data) json["data"].push_back(to_json(data));
    json["halves"] = Json::array();
    for (const ValidationHalves& half : record.halves) {
      json["halves"].push_back({{"choosing", half.choosing}, {"confirming", half.confirming}});
    }
  }
  write_file_atomically(path, json.dump(1) + "\n");
}

void write_stage_runs(const std::filesystem::path& path, const std::vector<SweepRun>& runs) {
  const Json json = {{"format", kStageFormat}, {"runs", runs_json(runs)}};
  write_file_atomically(path, json.dump(1) + "\n");
}

SweepRecord read_record(const std::filesystem::path& path) {
  return read_json<SweepRecord>(path, kSweepFormat, "expand the sweep again into another folder",
                                record_from);
}

std::vector<SweepRun> read_stage_runs(const std::filesystem::path& path, const SweepRecord& record,
                                      int stage) {
  return read_json<std::vector<SweepRun>>(
      path, kStageFormat, "remove it, and `tpudist sweep run` makes it again",
      [&](const Json& json) {
        std::vector<SweepRun> runs = runs_from(json.at("runs"));
        require_sound(runs, record, record.stages[static_cast<std::size_t>(stage)].first);
        return runs;
      });
}

}  // namespace tpudist
