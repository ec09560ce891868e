#include "sweep/records/sweep_record.hpp"

#include <fmt/format.h>

#include <functional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json_fault.hpp"

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

SweepRecord record_from(const Json& json) {
  SweepRecord record;
  record.name = json.at("name").get<std::string>();
  const std::string choice = json.at("choose_by").get<std::string>();
  for (int i = 0; i < 3; ++i) {
    if (choice == kChoices[i]) record.choice = static_cast<ChoiceScore>(i);
  }
  record.keep = json.at("keep").get<int>();
  record.confirmed_on = json.at("confirmed_on").get<std::string>();
  record.experiments = json.at("experiments").get<std::vector<std::string>>();
  for (const Json& variant : json.at("variants")) {
    record.variant_experiment.push_back(variant.at("experiment").get<int>());
    record.labels.push_back(variant.at("label").get<std::string>());
  }
  for (const Json& stage : json.at("stages")) record.stages.push_back(stage_from(stage));
  record.runs = runs_from(json.at("runs"));
  const int variants = static_cast<int>(record.labels.size());
  for (const SweepRun& run : record.runs) {
    if (run.variant < 0 || run.variant >= variants) {
      throw DataError(fmt::format("run {} is of variant {}, but there are {}", run.index,
                                  run.variant, variants));
    }
  }
  if (record.stages.empty() || record.runs.empty()) throw DataError("it has no runs");
  return record;
}

template <typename T>
T read_json(const std::filesystem::path& path, const char* format,
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
    throw DataError(fmt::format("{}: damaged: {}; expand the sweep again into another folder",
                                path.string(), json_fault(error.what())));
  }
}

}  // namespace

void write_record(const std::filesystem::path& path, const SweepRecord& record) {
  Json variants = Json::array(), stages = Json::array();
  for (std::size_t i = 0; i < record.labels.size(); ++i) {
    variants.push_back({{"experiment", record.variant_experiment[i]}, {"label", record.labels[i]}});
  }
  for (const Stage& stage : record.stages) stages.push_back(to_json(stage));
  const Json json = {{"format", kSweepFormat},
                     {"name", record.name},
                     {"choose_by", kChoices[static_cast<int>(record.choice)]},
                     {"keep", record.keep},
                     {"confirmed_on", record.confirmed_on},
                     {"experiments", record.experiments},
                     {"variants", variants},
                     {"stages", stages},
                     {"runs", runs_json(record.runs)}};
  write_file_atomically(path, json.dump(1) + "\n");
}

void write_stage_runs(const std::filesystem::path& path, const std::vector<SweepRun>& runs) {
  const Json json = {{"format", kStageFormat}, {"runs", runs_json(runs)}};
  write_file_atomically(path, json.dump(1) + "\n");
}

SweepRecord read_record(const std::filesystem::path& path) {
  return read_json<SweepRecord>(path, kSweepFormat, record_from);
}

std::vector<SweepRun> read_stage_runs(const std::filesystem::path& path) {
  return read_json<std::vector<SweepRun>>(
      path, kStageFormat, [](const Json& json) { return runs_from(json.at("runs")); });
}

}  // namespace tpudist
