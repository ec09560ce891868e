#include "launch/sweep/sweep_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/config/config_schema.hpp"
#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/process.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "results/records/settings.hpp"
#include "train/experiment/read_blocks.hpp"

namespace tpudist {
namespace {

constexpr int kMostSeeds = 1000;

// A key of an experiment that a sweep sets itself, and the key of the sweep that sets it.
struct OwnKey {
  std::string_view key, own;
};
constexpr std::array<OwnKey, 5> kOwnKeys{{{"seed.init", "sweep.seeds"},
                                          {"seed.order", "sweep.seeds"},
                                          {"ensemble.folds", "sweep.folds"},
                                          {"ensemble.first_member", "placement"},
                                          {"ensemble.placement", "placement"}}};

// `key`: the key in this map; `name`: the dotted name in an experiment.
void refuse_own_keys(ConfigNode& map, const std::string& key, const std::string& name) {
  const auto own = std::ranges::find(kOwnKeys, std::string_view(name), &OwnKey::key);
  if (own != kOwnKeys.end()) map.mistake(key, fmt::format("is set by `{}`", own->own));
}

std::string read_name(ConfigNode& root) {
  root.require("name");
  std::string name = root.text("name", "sweep");
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    root.mistake("name", "must be a name without slashes: it becomes a folder");
  return name;
}

std::vector<std::filesystem::path> read_experiments(ConfigNode& root,
                                                    const std::filesystem::path& base) {
  root.require("experiments");
  const bool one = root.kind("experiments") == "scalar";
  const std::vector<std::string> names =
      one ? std::vector{root.text("experiments", "")} : root.texts("experiments", {});
  if (root.has("experiments") && names.empty()) root.mistake("experiments", "names no file");
  std::vector<std::filesystem::path> paths;
  for (const std::string& name : names) {
    paths.push_back(std::filesystem::absolute(base / name).lexically_normal());
    if (std::filesystem::is_regular_file(paths.back())) continue;
    root.mistake("experiments", fmt::format("names {}, which is no file", paths.back().string()));
  }
  return paths;
}

void record_mistakes(ConfigNode& map, const std::string& key, const std::string& name,
                     const SetMistakes& mistakes) {
  for (const auto& [set, message] : mistakes)
    if (set == name) map.mistake(key, message);
}

// The leaves of a map of keys, dotted or nested, as key=YAML.
void read_overrides(ConfigNode map, const std::string& prefix, std::vector<std::string>& overrides,
                    const SetMistakes& mistakes) {
  for (const std::string& key : map.keys()) {
    const std::string name = prefix + key;
    if (map.kind(key) == "map" && !map.child(key).keys().empty()) {
      read_overrides(map.child(key), name + ".", overrides, mistakes);
      continue;
    }
    refuse_own_keys(map, key, name);
    record_mistakes(map, key, name, mistakes);
    overrides.push_back(fmt::format("{}={}", name, map.yaml(key)));
  }
}

std::vector<std::string> read_overrides(ConfigNode map, const SetMistakes& mistakes) {
  std::vector<std::string> overrides;
  read_overrides(map, "", overrides, mistakes);
  return overrides;
}

// Reads a map from names of experiments, without folder and ending, to their settings.
void read_each(ConfigNode each, SweepFile& file, const SetMistakes& mistakes) {
  file.each.resize(file.experiments.size());
  for (const std::string& name : each.keys()) {
    const std::vector<std::string> overrides = read_overrides(each.child(name), mistakes);
    int files = 0;
    for (std::size_t i = 0; i < file.experiments.size(); ++i) {
      if (file.experiments[i].stem() != name) continue;
      file.each[i] = overrides;
      ++files;
    }
    if (files == 0) each.mistake(name, "is the name of no file in `experiments`");
    if (files > 1)
      each.mistake(name, "is the name of several files in `experiments`: rename all but one");
  }
}

std::vector<std::uint64_t> read_seeds(ConfigNode& sweep) {
  if (!sweep.has("seeds")) return {};
  std::vector<std::int64_t> seeds;
  if (sweep.kind("seeds") == "list") {
    seeds = sweep.integers("seeds", {}, {0, kMany});
    if (seeds.empty()) sweep.mistake("seeds", "names no seed");
  } else {
    const std::int64_t count = sweep.integer("seeds", 1, {1, kMostSeeds});
    for (std::int64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  }
  if (std::set(seeds.begin(), seeds.end()).size() != seeds.size())
    sweep.mistake("seeds", "names a seed twice");
  return {seeds.begin(), seeds.end()};
}

void read_sweep(ConfigNode sweep, SweepFile& file, const SetMistakes& mistakes) {
  file.seeds = read_seeds(sweep);
  const std::string folds = sweep.text("folds", "");
  file.no_folds = folds == "none";
  if (!file.no_folds && !folds.empty()) {
    const auto number = parse_integer(folds);
    if (number.error || number.value < 2 || number.value > 1024)
      sweep.mistake("folds", "must be `none` or a number of folds from 2 to 1024");
    else
      file.folds = static_cast<int>(number.value);
  }
  if (sweep.has("draws")) {
    ConfigNode draws = sweep.child("draws");
    draws.require("count");
    file.draws = static_cast<int>(draws.integer("count", 1, {1, 10'000}));
    file.draw_seed = static_cast<std::uint64_t>(draws.integer("seed", 1, {0, kMany}));
  }
  ConfigNode over = sweep.child("over");
  file.over = read_swept_keys(over);
  if (file.draws && file.over.empty()) sweep.mistake("draws", "draws nothing: `over` has no keys");
  for (const SweptKey& swept : file.over) {
    refuse_own_keys(over, swept.key, swept.key);
    record_mistakes(over, swept.key, swept.key, mistakes);
    if (!decides_numbers(swept.key))
      over.mistake(swept.key, "changes no trained number, so that runs would be equal");
    const auto same = [&](const std::string& text) { return text.starts_with(swept.key + "="); };
    for (int i = 0; i < static_cast<int>(file.experiments.size()); ++i) {
      if (!std::ranges::any_of(file.overrides_of(i), same)) continue;
      over.mistake(swept.key, "is given in `set` or `each` as well");
      break;
    }
  }
}

void read_choice(ConfigNode choose, SweepFile& file, const SetMistakes& mistakes) {
  const std::string by = choose.choice("by", "none", {"none", "valid", "out_of_fold"});
  file.choice = by == "valid"         ? ChoiceScore::valid
                : by == "out_of_fold" ? ChoiceScore::out_of_fold
                                      : ChoiceScore::none;
  file.choice_halves = choose.choice("graphs", "halves", {"halves", "all"}) == "halves";
  file.fresh_seeds = static_cast<int>(choose.integer("seeds", 3, {3, kMostSeeds}));
  file.confirm_overrides = read_overrides(choose.child("set"), mistakes);
  record_mistakes(choose, "set", "choose.set", mistakes);
  for (const std::string& text : file.confirm_overrides) {
    const std::string key = text.substr(0, text.find('='));
    const bool decides_graphs = key == "data.include.valid" || key == "data.exclude.valid";
    if (decides_graphs && file.choice == ChoiceScore::valid && file.choice_halves) {
      choose.mistake("set", fmt::format("names {}, but the validation graphs are halved; give "
                                        "`graphs: all` as well",
                                        key));
    }
  }
  file.baseline =
      choose.choice("baseline", file.draws ? "none" : "first", {"first", "none"}) == "first";
}

SweepFile read_document(ConfigDocument& document, const std::filesystem::path& base,
                        const SetMistakes& mistakes) {
  ConfigNode root = document.root();
  SweepFile file;
  file.name = read_name(root);
  file.experiments = read_experiments(root, base);
  file.overrides = read_overrides(root.child("set"), mistakes);
  read_each(root.child("each"), file, mistakes);
  read_sweep(root.child("sweep"), file, mistakes);
  file.split = root.choice("placement", "fused", {"fused", "split"}) == "split";
  ConfigNode halving = root.child("halving");
  file.rungs = static_cast<int>(halving.integer("rungs", 1, {1, 20}));
  file.keep = static_cast<int>(halving.integer("keep", 3, {2, 100}));
  read_choice(root.child("choose"), file, mistakes);
  if (file.rungs > 1 && file.choice == ChoiceScore::none)
    root.mistake("halving", "needs a score to go by: give `choose: {by: valid}` or out_of_fold");
  if (file.choice == ChoiceScore::out_of_fold && file.folds == 0)
    root.mistake("choose", "goes by graphs that members held out: give a number of `sweep.folds`");
  document.finish();
  file.resolved_yaml = document.resolved_yaml();
  return file;
}

SweepFile read_file(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                    const std::filesystem::path& base, const SetMistakes& mistakes) {
  ConfigDocument document = ConfigDocument::load(path, overrides);
  if (!document.root().has("experiments") && document.root().has("data")) {
    throw ConfigError(
        fmt::format("{} is an experiment file, not a sweep file: `tpudist train {}` trains it, and "
                    "a sweep file names it in `experiments:`",
                    path.string(), shell_word(path.string())));
  }
  return read_document(document, base, mistakes);
}

constexpr std::size_t kMostVariants = 100'000;

using Settings = std::vector<std::string>;

std::vector<Settings> grid(const std::vector<SweptKey>& keys) {
  std::vector<Settings> points{{}};
  for (const SweptKey& key : keys) {
    if (points.size() * key.values.size() > kMostVariants) {
      throw ConfigError(
          "the sweep has more than 100,000 variants; draw some of them (sweep.draws)");
    }
    std::vector<Settings> longer;
    for (const Settings& point : points) {
      for (const std::string& value : key.values) {
        longer.push_back(point);
        longer.back().push_back(key.key + "=" + value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<Settings> draws(const SweepFile& sweep) {
  std::vector<Settings> points;
  for (int number = 0; number < *sweep.draws; ++number) {
    Settings point;
    for (const SweptKey& key : sweep.over) {
      point.push_back(key.key + "=" +
                      drawn_value(key, sweep.draw_seed, static_cast<std::uint64_t>(number)));
    }
    if (std::ranges::find(points, point) == points.end()) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

std::vector<SweptKey> read_swept_keys(ConfigNode over) {
  std::vector<SweptKey> keys;
  for (const std::string& key : over.keys()) {
    keys.push_back({key, over.yaml_items(key)});
    if (keys.back().values.empty()) over.mistake(key, "has no values; give a list, e.g. [1, 2]");
  }
  return keys;
}

std::string drawn_value(const SweptKey& key, std::uint64_t seed, std::uint64_t variant) {
  CounterRng random(mix_key({seed, hash64(key.key), variant}));
  return key.values[random.below(key.values.size())];
}

SweepFile SweepFile::load(const std::filesystem::path& path,
                          const std::vector<std::string>& overrides,
                          const std::filesystem::path& base) {
  const auto folder = base.empty() ? std::filesystem::absolute(path).parent_path() : base;
  SweepFile file = read_file(path, overrides, folder, {});
  file.path_ = path;
  file.base_ = folder;
  file.own_overrides_ = overrides;
  return file;
}

void SweepFile::refuse(const SetMistakes& mistakes) const {
  read_file(path_, own_overrides_, base_, mistakes);
  std::vector<std::string> lines;  // mistakes at keys that the file does not give by themselves
  for (const auto& [key, message] : mistakes)
    lines.push_back(fmt::format("{}: \"{}\" {}", path_.string(), key, message));
  throw ConfigError(join(lines, "\n"));
}

std::vector<std::string> SweepFile::overrides_of(int experiment) const {
  std::vector<std::string> all = overrides;
  const auto& own = each[experiment];
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::string sweep_schema() {
  return config_schema("tpudist sweep", {},
                       [](ConfigDocument& document) { read_document(document, "", {}); });
}

bool is_sweep_file(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return ConfigDocument::load(path, overrides).root().has("experiments");
}

std::vector<Variant> variants_of(const SweepFile& sweep) {
  const std::vector<Settings> points = sweep.draws ? draws(sweep) : grid(sweep.over);
  std::vector<Variant> variants;
  for (std::size_t experiment = 0; experiment < sweep.experiments.size(); ++experiment)
    for (const Settings& point : points) variants.push_back({static_cast<int>(experiment), point});
  return variants;
}

std::string label_of(const Variant& variant, const SweepFile& sweep) {
  std::vector<std::string> pieces = variant.settings;
  if (sweep.experiments.size() > 1 || pieces.empty()) {
    const auto& path = sweep.experiments[variant.experiment];
    pieces.insert(pieces.begin(), path.stem().string() + (pieces.empty() ? "" : ":"));
  }
  return join(pieces, " ");
}

}  // namespace tpudist
