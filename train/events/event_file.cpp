#include "train/events/event_file.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "core/append_file.hpp"
#include "core/file_system.hpp"

namespace tpudist {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// `first`: the number of the first member in the list.
void add_members(const std::string& name, const nlohmann::json& list, std::size_t first,
                 std::vector<Scalar>& scalars) {
  double sum = 0, count = 0;
  for (std::size_t m = 0; m < list.size(); ++m) {
    if (!list[m].is_number()) continue;
    scalars.push_back({fmt::format("{}/member_{}", name, first + m), list[m].get<double>()});
    sum += list[m].get<double>();
    ++count;
  }
  if (count > 0) scalars.push_back({name + "/mean", sum / count});
}

// {"compute": [a number for each rank], ...}
void add_ranks(const std::string& name, const nlohmann::json& lists, std::vector<Scalar>& scalars) {
  for (const auto& [part, list] : lists.items()) {
    for (std::size_t r = 0; r < list.size(); ++r) {
      if (!list[r].is_number()) continue;
      scalars.push_back({fmt::format("{}/{}/rank_{}", name, part, r), list[r].get<double>()});
    }
  }
}

}  // namespace

std::vector<Scalar> scalars_of(const nlohmann::json& record) {
  if (record.value("kind", "") == "start") return {};
  const bool scores = record.value("kind", "") == "evaluation";
  const std::string split = record.value("split", "valid");
  const auto first = record.value("first_member", std::size_t{0});
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : record.items()) {
    if (name == "step" || name == "rows" || name == "first_member") continue;
    if (scores && name == "members") {
      add_members(split, value, first, scalars);
    } else if (name == "rank_seconds" && value.is_object()) {
      add_ranks(name, value, scalars);
    } else if (value.is_array()) {
      add_members(name, value, first, scalars);
    } else if (value.is_number()) {
      const std::string tag = scores && name == "ensemble" ? split + "/ensemble" : name;
      scalars.push_back({tag, value.get<double>()});
    }
  }
  return scalars;
}

std::string event_record(double wall_time, const nlohmann::json& record) {
  const auto step = record.value("step", std::int64_t{0});
  if (record.value("kind", "") != "start")
    return scalar_record(wall_time, step, scalars_of(record));
  Settings settings;
  for (const auto& [key, value] : record.at("settings").items())
    settings.emplace_back(key, value.get<std::string>());
  return settings_record(wall_time, step, settings);
}

void append_events(const std::filesystem::path& file, const nlohmann::json& record) {
  const double time = now();
  std::error_code error;
  std::string bytes = std::filesystem::exists(file, error) ? "" : version_record(time);
  bytes += event_record(time, record);
  append_to_file(file, bytes);
}

void rewind_events(const std::filesystem::path& file, std::int64_t step) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  const std::string bytes = read_text_file(file);
  std::string kept;
  for (const EventRecord& record : whole_records(bytes)) {
    if (record.step <= step) kept += record.record;
  }
  if (kept.empty()) kept = version_record(now());
  write_file_atomically(file, kept);
}

}  // namespace tpudist
