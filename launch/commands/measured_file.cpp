#include "launch/commands/measured_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
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

using RowOf = std::unordered_map<std::uint64_t, std::size_t>;  // of a configuration, by a key

// Calls visit(slate) for all of these rows, a few at a time.
template <typename Visit>
void each_slate(const Dataset& data, std::span<const std::int64_t> rows, const Visit& visit) {
  constexpr std::size_t kBlock = 1024;
  for (std::size_t begin = 0; begin < rows.size(); begin += kBlock)
    visit(data.slate(0, rows.subspan(begin, std::min(kBlock, rows.size() - begin))));
}

// [rows] A hash of the features of each configuration, alike in several modules.
std::vector<std::uint64_t> config_hashes(const Dataset& data) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(data.rows(0)));
  std::iota(rows.begin(), rows.end(), 0);
  const auto width = static_cast<std::size_t>(data.options().collection.schema.config_features);
  std::vector<std::uint64_t> hashes;
  each_slate(data, rows, [&](const Slate& slate) {
    const std::span<const float> table = slate.local_states.empty()
                                             ? std::span<const float>(data.states(0).features)
                                             : slate.local_states;
    const std::size_t states = slate.states.size() / slate.configs.size();
    std::vector<float> features;
    for (std::size_t at = 0; at < slate.states.size(); ++at) {
      const auto own = table.subspan(static_cast<std::size_t>(slate.states[at]) * width, width);
      features.insert(features.end(), own.begin(), own.end());
      if ((at + 1) % states > 0) continue;
      hashes.push_back(hash64(std::as_bytes(std::span(features))));
      features.clear();
    }
  });
  return hashes;
}

std::uint64_t hash_of(const LayoutSpace& space, const LayoutConfig& config) {
  std::vector<LayoutState> states;
  for (std::size_t i = 0; i < config.size(); ++i)
    states.push_back(space.nodes[i].states[config[i]]);
  return hash64(std::as_bytes(std::span(states)));
}

void add_measurement(double time, const RowOf& rows, std::uint64_t key, MeasuredFile& measured) {
  const auto found = rows.find(key);
  if (!(time > 0) || std::isinf(time))
    ++measured.without_time;
  else if (found == rows.end())
    ++measured.not_listed;
  else
    measured.measurements.push_back({found->second, time});
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

void read_json_list(const nlohmann::json& list, const std::string& where, const Module& module,
                    MeasuredFile& measured) {
  RowOf by_number, by_layouts;
  for (std::int64_t row = 0; row < module.dataset.rows(0); ++row)
    by_number.emplace(static_cast<std::uint64_t>(module.number_of(row)), row);
  nlohmann::json layouts = nlohmann::json::array();
  std::vector<double> times;  // of `layouts`
  for (const auto& entry : list) {
    const auto found = entry.contains("runtime_ns") ? entry.find("runtime_ns") : entry.find("time");
    if (found == entry.end() || found->is_null()) continue;
    const double time = found->is_number() ? found->get<double>() : kNone;
    if (module.made && entry.contains("layouts")) {
      layouts.push_back(entry["layouts"]);
      times.push_back(time);
    } else if (entry.contains("config") && entry["config"].is_number_integer()) {
      add_measurement(time, by_number,
                      static_cast<std::uint64_t>(entry["config"].get<std::int64_t>()), measured);
    } else {
      throw DataError(where + (entry.contains("layouts")
                                   ? ": `rank` reads times of layouts with --configs alone; "
                                     "`tpudist search --measured` reads these"
                                   : ": an entry has a time, but neither config nor layouts"));
    }
  }
  if (layouts.empty()) return;
  LayoutSpace space = module.made->space;
  for (std::size_t row = 0; row < module.made->configs.size(); ++row)
    by_layouts.emplace(hash_of(space, module.made->configs[row]), row);
  const std::vector<LayoutConfig> configs = json_configs(space, layouts.dump(), where);
  for (std::size_t i = 0; i < configs.size(); ++i)
    add_measurement(times[i], by_layouts, hash_of(space, configs[i]), measured);
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

void read_module_times(const Module& other, const Module& module, MeasuredFile& measured) {
  const std::vector<std::uint64_t> listed = config_hashes(module.dataset),
                                   hashes = config_hashes(other.dataset);
  RowOf rows;
  for (std::size_t row = 0; row < listed.size(); ++row) rows.emplace(listed[row], row);
  for (std::size_t row = 0; row < hashes.size(); ++row)
    add_measurement(other.dataset.target(0, static_cast<std::int64_t>(row)), rows, hashes[row],
                    measured);
}

}  // namespace

MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const std::string& name) {
  MeasuredFile measured;
  if (const auto list = json_list(path, module))
    read_json_list(*list, path.string(), module, measured);
  else
    read_module_times(read_measured_module(path, module, name), module, measured);
  return measured;
}

MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const SearchedModule& searched,
                           std::vector<ConfigSpace::Point>& points) {
  const ConfigSpace& space = searched.space();
  points = {space.standard_point};
  std::vector<std::int64_t> numbers = {-1};  // in the module's file; -1: unknown
  const auto add_rows = [&](const Module& of) {
    for (std::int64_t row = 0; row < of.dataset.rows(0); ++row) {
      points.push_back(space.point_of(of.dataset, row));
      numbers.push_back(&of == &module ? of.number_of(row) : -1);
    }
  };
  if (const auto json = json_list(path, module)) {
    LayoutSpace layouts = searched.layouts();
    nlohmann::json made = nlohmann::json::array();
    for (const auto& entry : *json) {
      if (entry.contains("layouts")) made.push_back(entry["layouts"]);
    }
    if (made.size() < json->size() && !module.made) add_rows(module);
    if (!made.empty()) {
      for (const LayoutConfig& config : json_configs(layouts, made.dump(), path.string()))
        points.push_back(space.point_of(config));
    }
    numbers.resize(points.size(), -1);
  } else {
    add_rows(read_measured_module(path, module, {}));
  }
  Module listed = searched.with_configs(points);
  listed.config_numbers = std::move(numbers);
  return read_measured(path, listed, {});
}

std::vector<std::int32_t> ranked_states(const Module& module,
                                        const std::vector<ModuleRanking::Config>& ranking) {
  const Dataset& data = module.dataset;
  const Collection& collection = data.options().collection;
  const std::size_t piece =
      collection.is_tile() ? 1 : static_cast<std::size_t>(collection.schema.config_features);
  std::vector<std::int64_t> rows;
  for (const auto& config : ranking) rows.push_back(config.configs.front());
  std::vector<std::int32_t> numbers;
  std::unordered_map<std::uint64_t, std::int32_t> known;  // by hash of the features
  each_slate(data, rows, [&](const Slate& slate) {
    if (data.coded(0)) numbers.insert(numbers.end(), slate.states.begin(), slate.states.end());
    for (std::size_t at = 0; at < slate.local_states.size(); at += piece) {
      const auto features = std::as_bytes(std::span(slate.local_states).subspan(at, piece));
      const auto next = static_cast<std::int32_t>(known.size());
      numbers.push_back(known.emplace(hash64(features), next).first->second);
    }
  });
  return numbers;
}

}  // namespace tpudist
