#include "launch/commands/measured_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
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

using Rows = std::vector<std::int64_t>;

// Numbers the states of configurations by content, alike in several modules.
class StateNumbers {
 public:
  // [rows][n]
  std::vector<std::int32_t> of(const Dataset& data, const Rows& rows) {
    constexpr std::size_t kBlock = 1024;
    std::vector<std::int32_t> numbers;
    for (std::size_t begin = 0; begin < rows.size(); begin += kBlock) {
      const auto some = std::span(rows).subspan(begin, std::min(kBlock, rows.size() - begin));
      add(data, data.slate(0, some), numbers);
    }
    return numbers;
  }

 private:
  void add(const Dataset& data, const Slate& slate, std::vector<std::int32_t>& numbers) {
    const Collection& collection = data.options().collection;
    const auto features = static_cast<std::size_t>(collection.schema.config_features);
    const auto number = [&](std::span<const float> values) {
      const auto next = static_cast<std::int32_t>(known_.size());
      numbers.push_back(known_.emplace(hash64(std::as_bytes(values)), next).first->second);
    };
    if (data.coded(0)) {
      const std::span<const float> table(data.states(0).features);
      for (const std::int32_t state : slate.states)
        number(table.subspan(static_cast<std::size_t>(state) * features, features));
      return;
    }
    const std::size_t piece = collection.is_tile() ? 1 : features;
    for (std::size_t at = 0; at < slate.local_states.size(); at += piece)
      number(std::span(slate.local_states).subspan(at, piece));
  }

  std::unordered_map<std::uint64_t, std::int32_t> known_;  // by hash of the features
};

Rows rows_of(const std::vector<ModuleRanking::Config>& ranking) {
  Rows rows;
  for (const auto& config : ranking) rows.push_back(config.configs.front());
  return rows;
}

// Adds measurements of the configurations that a ranking has.
template <typename Key>
class Finder {
 public:
  explicit Finder(MeasuredFile& measured) : measured_(measured) {}
  void list(Key key, std::size_t index) { known_.emplace(std::move(key), index); }
  void add(const Key& key, double time) {
    const auto found = known_.find(key);
    if (!(time > 0) || std::isinf(time))
      ++measured_.without_time;
    else if (found == known_.end())
      ++measured_.not_listed;
    else
      measured_.measurements.push_back({found->second, time});
  }

 private:
  std::map<Key, std::size_t> known_;
  MeasuredFile& measured_;
};

std::vector<LayoutState> states_of(const LayoutSpace& space, const LayoutConfig& config) {
  std::vector<LayoutState> states;
  for (std::size_t i = 0; i < config.size(); ++i)
    states.push_back(space.nodes[i].states[config[i]]);
  return states;
}

// The file's list, which a JSON file begins with; nothing of another file.
std::optional<nlohmann::json> json_list(const std::filesystem::path& path) {
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
  if (json.is_object() && json.contains("ranking")) json = nlohmann::json(json["ranking"]);
  if (!json.is_array())
    throw DataError(where + ": has no list of measured configurations, as `rank --json` prints it");
  for (const auto& entry : json) {
    if (!entry.is_object())
      throw DataError(where + ": an entry of its list is no object with config or layouts");
  }
  return json;
}

void read_json_list(const nlohmann::json& json, const std::string& where, const Module& module,
                    const std::vector<ModuleRanking::Config>& ranking, MeasuredFile& measured) {
  nlohmann::json layouts = nlohmann::json::array();
  std::vector<double> times;  // of `layouts`
  Finder<std::int64_t> by_number(measured);
  for (std::size_t k = 0; k < ranking.size(); ++k) {
    for (const std::int64_t row : ranking[k].configs) by_number.list(module.number_of(row), k);
  }
  for (const auto& entry : json) {
    const auto time = entry.contains("runtime_ns") ? entry.find("runtime_ns") : entry.find("time");
    if (time == entry.end() || !time->is_number()) continue;
    if (module.made && entry.contains("layouts")) {
      layouts.push_back(entry["layouts"]);
      times.push_back(time->get<double>());
    } else if (entry.contains("config") && entry["config"].is_number_integer()) {
      by_number.add(entry["config"].get<std::int64_t>(), time->get<double>());
    } else {
      throw DataError(where + ": an entry has a time, but neither config nor layouts");
    }
  }
  if (layouts.empty()) return;
  Finder<std::vector<LayoutState>> by_layouts(measured);
  for (std::size_t k = 0; k < ranking.size(); ++k)
    by_layouts.list(states_of(module.made->space, module.made->configs[ranking[k].configs.front()]),
                    k);
  LayoutSpace space = module.made->space;
  const std::vector<LayoutConfig> configs = json_configs(space, layouts.dump(), where);
  for (std::size_t i = 0; i < configs.size(); ++i)
    by_layouts.add(states_of(space, configs[i]), times[i]);
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

void read_module_times(const Module& other, const Module& module,
                       const std::vector<ModuleRanking::Config>& ranking, MeasuredFile& measured) {
  StateNumbers numbers;
  Rows rows(static_cast<std::size_t>(other.dataset.rows(0)));
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<std::int32_t> listed = numbers.of(module.dataset, rows_of(ranking)),
                                  states = numbers.of(other.dataset, rows);
  const std::size_t width = states.size() / rows.size();
  const auto key = [&](const std::vector<std::int32_t>& all, std::size_t row) {
    return std::vector(all.begin() + static_cast<std::ptrdiff_t>(row * width),
                       all.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  };
  Finder<std::vector<std::int32_t>> finder(measured);
  for (std::size_t k = 0; k < ranking.size(); ++k) finder.list(key(listed, k), k);
  for (std::size_t row = 0; row < rows.size(); ++row)
    finder.add(key(states, row), other.dataset.target(0, static_cast<std::int64_t>(row)));
}

}  // namespace

MeasuredFile read_measured(const std::filesystem::path& path, const Module& module,
                           const std::vector<ModuleRanking::Config>& ranking,
                           const std::string& name) {
  MeasuredFile measured;
  if (const auto json = json_list(path))
    read_json_list(*json, path.string(), module, ranking, measured);
  else
    read_module_times(read_measured_module(path, module, name), module, ranking, measured);
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
  if (const auto json = json_list(path)) {
    LayoutSpace layouts = searched.layouts();
    nlohmann::json made = nlohmann::json::array();
    for (const auto& entry : *json) {
      if (entry.contains("layouts")) made.push_back(entry["layouts"]);
    }
    if (made.size() < json->size() && !module.made) add_rows(module);
    for (const LayoutConfig& config : made.empty()
                                          ? std::vector<LayoutConfig>()
                                          : json_configs(layouts, made.dump(), path.string()))
      points.push_back(space.point_of(config));
    numbers.resize(points.size(), -1);
  } else {
    add_rows(read_measured_module(path, module, {}));
  }
  Module listed = searched.with_configs(points);
  listed.config_numbers = std::move(numbers);
  std::vector<ModuleRanking::Config> ranking;
  for (std::int64_t k = 0; k < std::ssize(points); ++k) ranking.push_back({{k}, 0, {}});
  return read_measured(path, listed, ranking, {});
}

std::vector<std::int32_t> ranked_states(const Module& module,
                                        const std::vector<ModuleRanking::Config>& ranking) {
  return StateNumbers().of(module.dataset, rows_of(ranking));
}

}  // namespace tpudist
