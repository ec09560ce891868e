#include "launch/commands/measured_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "data/hlo/layout_configs.hpp"

namespace tpudist {
namespace {

using Place = std::optional<std::size_t>;  // of a configuration among the known ones

// How a configuration is found: that of a row of the module or of another one of its program, and one
// given by layouts.
struct Finder {
  std::function<Place(const Dataset& data, std::int64_t row)> row;
  std::function<Place(const LayoutSpace& space, const LayoutConfig& config)> layouts;
};

std::uint64_t hash_of(std::span<const float> features) {
  return hash64(std::as_bytes(features));
}

// A hash of the features of a configuration, alike in several modules.
std::uint64_t hash_of(const Dataset& data, std::int64_t row) {
  const Slate slate = data.slate(0, std::span(&row, 1));
  if (!data.coded(0)) return hash_of(slate.local_states);
  const auto width = static_cast<std::ptrdiff_t>(data.options().collection.schema.config_features);
  std::vector<float> features;
  for (const std::int32_t state : slate.states) {
    const auto own = data.states(0).features.begin() + state * width;
    features.insert(features.end(), own, own + width);
  }
  return hash_of(features);
}
std::uint64_t hash_of(const LayoutSpace& space, const LayoutConfig& config) {
  std::vector<float> features;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const LayoutState& state = space.nodes[i].states[config[i]];
    features.insert(features.end(), state.begin(), state.end());
  }
  return hash_of(features);
}

void add_measurement(double time, const Place& place, MeasuredFile& measured) {
  if (!(time > 0) || std::isinf(time))
    ++measured.without_time;
  else if (!place)
    ++measured.not_listed;
  else
    measured.measurements.push_back({*place, time});
}

// The entries of the file's lists, which a JSON file begins with; nothing of another file.
std::optional<nlohmann::json> json_list(const std::filesystem::path& path, const Module& module) {
  std::string begin(1024, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  const std::string_view start = trim(begin);
  if (!start.starts_with('[') && !start.starts_with('{')) return std::nullopt;
  const std::string text = read_text_file(path), where = path.string();
  nlohmann::json json;
  try {
    if (json_depth(text) <= kDeepestJson) json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: is no JSON: {}", where, json_fault(error.what())));
  }
  nlohmann::json list = json;
  if (json.is_object()) {
    const std::string& name = module.dataset.graph(0).name;
    if (json.contains("graph") && json["graph"] != name)
      throw DataError(fmt::format("{}: its times are of the graph {}, not of {}", where,
                                  json["graph"].dump(), name));
    list = json.value("ranking", nlohmann::json());
    const auto measured = json.find("measured");
    if (list.is_array() && measured != json.end() && measured->is_object() &&
        measured->contains("next") && (*measured)["next"].is_array())
      list.insert(list.end(), (*measured)["next"].begin(), (*measured)["next"].end());
  }
  if (!list.is_array())
    throw DataError(where + ": has no list of measured configurations, as `rank --json` prints it");
  for (const auto& entry : list) {
    if (!entry.is_object())
      throw DataError(where + ": an entry of its list is no object with config or layouts");
  }
  return list;
}

// `space` null: the list has no layouts.
void read_json_list(const nlohmann::json& list, const std::string& where, const Module& module,
                    const LayoutSpace* space, const Finder& find, MeasuredFile& measured) {
  std::unordered_map<std::int64_t, std::int64_t> rows;  // by number
  for (std::int64_t row = 0; row < module.dataset.rows(0); ++row)
    rows.emplace(module.number_of(row), row);
  nlohmann::json layouts = nlohmann::json::array();
  std::vector<double> times;  // of `layouts`
  for (const auto& entry : list) {
    const auto found = entry.contains("runtime_ns") ? entry.find("runtime_ns") : entry.find("time");
    if (found == entry.end() || found->is_null()) continue;
    const double time = found->is_number() ? found->get<double>() : kNone;
    if (space && entry.contains("layouts")) {
      layouts.push_back(entry["layouts"]);
      times.push_back(time);
    } else if (entry.contains("config") && entry["config"].is_number_integer()) {
      const auto row = rows.find(entry["config"].get<std::int64_t>());
      add_measurement(time, row == rows.end() ? Place() : find.row(module.dataset, row->second),
                      measured);
    } else {
      throw DataError(where + (entry.contains("layouts")
                                   ? ": `rank` reads times of layouts with --configs alone; "
                                     "`tpudist search --measured` reads these"
                                   : ": an entry has a time, but neither config nor layouts"));
    }
  }
  if (layouts.empty()) return;
  LayoutSpace known = *space;
  const std::vector<LayoutConfig> configs = json_configs(known, layouts.dump(), where);
  for (std::size_t i = 0; i < configs.size(); ++i)
    add_measurement(times[i], find.layouts(known, configs[i]), measured);
}

// Another file of the module's program, with run times.
Module read_measured_module(const std::filesystem::path& path, const Module& module,
                            const std::string& name) {
  const DatasetOptions& options = module.dataset.options();
  Module other = read_module(path, options.collection, options.reduction, name);
  const GraphEntry &own = module.dataset.entry(0), &entry = other.dataset.entry(0);
  if (!other.has_times) throw DataError(path.string() + ": has no run times");
  if (own.nodes != entry.nodes || own.config_nodes != entry.config_nodes)
    throw DataError(
        fmt::format("{}: is of another program: {} nodes, {} of them configurable, not {} and {}",
                    path.string(), entry.nodes, entry.config_nodes, own.nodes, own.config_nodes));
  return other;
}

MeasuredFile read_file(const std::filesystem::path& path, const Module& module,
                       const std::string& name, const LayoutSpace* space, const Finder& find) {
  MeasuredFile measured;
  if (const auto list = json_list(path, module)) {
    read_json_list(*list, path.string(), module, space, find, measured);
    return measured;
  }
  const Module other = read_measured_module(path, module, name);
  for (std::int64_t row = 0; row < other.dataset.rows(0); ++row)
    add_measurement(other.dataset.target(0, row), find.row(other.dataset, row), measured);
  return measured;
}

}  // namespace

MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const std::string& name) {
  std::unordered_map<std::uint64_t, std::size_t> rows;
  for (std::int64_t row = 0; row < module.dataset.rows(0); ++row)
    rows.emplace(hash_of(module.dataset, row), row);
  const auto place = [&](std::uint64_t hash) {
    const auto found = rows.find(hash);
    return found == rows.end() ? Place() : found->second;
  };
  return read_file(
      path, module, name, module.made ? &module.made->space : nullptr,
      {[&](const Dataset& data, std::int64_t row) { return place(hash_of(data, row)); },
       [&](const LayoutSpace& space, const LayoutConfig& config) {
         return place(hash_of(space, config));
       }});
}

MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const SearchedModule& searched,
                           std::vector<ConfigSpace::Point>& points) {
  const ConfigSpace& space = searched.space();
  const auto place = [&](const std::optional<ConfigSpace::Point>& point) {
    if (point) points.push_back(*point);
    return point ? Place(points.size() - 1) : Place();
  };
  return read_file(
      path, module, {}, &searched.layouts(),
      {[&](const Dataset& data, std::int64_t row) { return place(space.point_of(data, row)); },
       [&](const LayoutSpace&, const LayoutConfig& config) {
         return place(space.point_of(config));
       }});
}

std::vector<std::int32_t> ranked_states(const Module& module,
                                        const std::vector<ModuleRanking::Config>& ranking) {
  const Dataset& data = module.dataset;
  const Collection& collection = data.options().collection;
  const std::size_t piece =
      collection.is_tile() ? 1 : static_cast<std::size_t>(collection.schema.config_features);
  std::vector<std::int32_t> numbers;
  std::unordered_map<std::uint64_t, std::int32_t> known;  // by hash of the features
  for (const auto& config : ranking) {
    const Slate slate = data.slate(0, std::span(config.configs).first(1));
    if (data.coded(0)) numbers.insert(numbers.end(), slate.states.begin(), slate.states.end());
    for (std::size_t at = 0; at < slate.local_states.size(); at += piece) {
      const auto next = static_cast<std::int32_t>(known.size());
      const auto features = std::span(slate.local_states).subspan(at, piece);
      numbers.push_back(known.emplace(hash_of(features), next).first->second);
    }
  }
  return numbers;
}

}  // namespace tpudist
