#include "launch/sweep/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "data/schema/model_family.hpp"
#include "launch/sweep/sweep_data.hpp"
#include "train/experiment/experiment.hpp"
#include "train/experiment/read_blocks.hpp"

namespace tpudist {
namespace {

using Overrides = std::vector<std::string>;

constexpr std::uint64_t kHalvesSeed = 1;

Overrides operator+(Overrides left, const Overrides& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Mistakes in an experiment.
class ExperimentError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

Overrides fold_overrides(const SweepFile& file) {
  if (file.no_folds)
    return {"ensemble.folds=none", "ensemble.fold_file=none", "ensemble.fold_over=train",
            "ensemble.members=1", "ensemble.vary=[init]"};
  if (file.folds == 0) return {};
  return {fmt::format("ensemble.folds={}", file.folds),
          fmt::format("ensemble.members={}", file.folds), "ensemble.vary=[init, fold]"};
}

Experiment load(const SweepPlan& plan, int experiment, const Overrides& overrides) {
  try {
    return load_experiment(
        plan.file.experiments[experiment],
        plan.file.overrides_of(experiment) + fold_overrides(plan.file) + overrides);
  } catch (const ConfigError& error) {
    throw ExperimentError(error.what());
  }
}

Experiment resolve(const SweepPlan& plan, int variant, const Overrides& overrides) {
  const Variant& of = plan.variants[variant];
  return load(plan, of.experiment, of.settings + overrides);
}

// "the variants a, b, ... (5 in all)"
std::string variants_text(const SweepPlan& plan, const std::vector<int>& variants) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (const int v : variants) names.push_back(plan.record.label(v));
  return fmt::format("the variant{} {}{}", names.size() == 1 ? "" : "s", first_of(names, kNamed),
                     names.size() > kNamed ? fmt::format(" ({} in all)", names.size()) : "");
}

// The key in `overrides` that a message is about; empty if unknown.
std::string key_of(const std::string& message, const Overrides& overrides) {
  for (auto text = overrides.rbegin(); text != overrides.rend(); ++text) {
    const std::string key = text->substr(0, text->find('='));
    const std::size_t dot = key.rfind('.');
    const std::string unknown =
        dot == std::string::npos
            ? fmt::format("unknown key \"{}\"", key)
            : fmt::format("unknown key \"{}\" in \"{}\"", key.substr(dot + 1), key.substr(0, dot));
    for (const std::string& part : {"\"" + key + "\"", "\"" + key + ".", "\"" + *text, unknown})
      if (message.find(part) != std::string::npos) return key;
  }
  return {};
}

// Throws all mistakes in the variants' experiments, with a position in the sweep file if that file
// sets the value, else in the experiment file.
[[noreturn]] void refuse_variants(const SweepPlan& plan, const ExperimentError& first) {
  constexpr std::string_view kFromSweep = "command line: ";
  std::map<std::string, std::vector<int>> lines;
  for (int v = 0; v < static_cast<int>(plan.variants.size()); ++v) {
    for (const Overrides& more : {Overrides(), plan.file.confirm_overrides}) {
      try {
        resolve(plan, v, more);
      } catch (const ExperimentError& error) {
        for (const std::string& line : split(error.what(), '\n')) lines[line].push_back(v);
        break;
      }
    }
  }
  if (lines.empty()) throw ConfigError(first.what());  // caused by the overrides of a stage
  SetMistakes mistakes;
  std::vector<std::string> others;
  for (const auto& [line, variants] : lines) {
    const bool all = variants.size() == plan.variants.size();
    const Variant& variant = plan.variants[variants.front()];
    const std::string key = line.starts_with(kFromSweep)
                                ? key_of(line, plan.file.overrides_of(variant.experiment) +
                                                   variant.settings + plan.file.confirm_overrides)
                                : std::string();
    if (key.empty()) {
      others.push_back(all ? line : fmt::format("{}: {}", variants_text(plan, variants), line));
    } else {
      mistakes.push_back({key, fmt::format("is wrong in {}: {}", variants_text(plan, variants),
                                           line.substr(kFromSweep.size()))});
    }
  }
  if (mistakes.empty()) throw ConfigError(join(others, "\n"));
  plan.file.refuse(mistakes);
}

// Halves the graphs by families; both halves are empty if there are fewer than two families.
SweepRecord::Halves halves_of(const std::vector<GraphEntry>& graphs) {
  SweepRecord::Halves halves;
  std::vector<std::string> names;
  for (const GraphEntry& graph : graphs) names.push_back(graph.name);
  std::vector<int> half;
  try {
    half = assign_folds(names, std::vector<double>(names.size(), 1.0), 2, kHalvesSeed);
  } catch (const ConfigError&) {
    return halves;
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    (half[i] == 0 ? halves.choosing : halves.confirming).push_back(names[i]);
  return halves;
}

// Halves the validation families of an experiment and returns whether this was possible: runs that
// choose leave out one half, and runs that confirm leave out the other.
bool halve_validation(SweepPlan& plan, std::size_t experiment_index, const SweepRecord* frozen) {
  const Experiment experiment = load(plan, static_cast<int>(experiment_index), {});
  SweepRecord::Halves& halves = plan.record.halves[experiment_index];
  if (frozen && experiment_index < frozen->halves.size()) {
    halves = frozen->halves[experiment_index];
  } else {
    if (!find_data(plan.record.data, experiment)) plan.record.data.push_back(read_data(experiment));
    halves =
        halves_of(chosen_graphs(*find_data(plan.record.data, experiment), experiment, "valid"));
  }
  if (halves.choosing.empty()) return false;
  const auto leave_out = [&](const std::vector<std::string>& names) {
    std::vector<std::string> patterns = experiment.data.exclude_valid;
    patterns.insert(patterns.end(), names.begin(), names.end());
    return "data.exclude.valid=" + to_yaml(patterns);
  };
  plan.choosing_overrides[experiment_index] = {leave_out(halves.confirming)};
  plan.confirming_overrides[experiment_index] = {leave_out(halves.choosing)};
  return true;
}

// Confirming runs must repeat the chosen variant on the data that chose it.
void require_same_confirmation(const SweepFile& file) {
  for (const std::string& text : file.confirm_overrides) {
    const std::string set = text.substr(0, text.find('=')) + ".";
    const auto is_set = [&](const std::string& key) {  // or a key in it, or a map that has it
      return set.starts_with(key + ".") || (key + ".").starts_with(set);
    };
    if (is_set("data.collection") || is_set("data.shards") ||
        std::ranges::any_of(file.over, is_set, &SweptKey::key))
      file.refuse({{"choose.set", fmt::format("names {}: what `sweep.over` chose is confirmed as "
                                              "it is, on the data that chose it; leave it out",
                                              text)}});
  }
}

void plan_choice(SweepPlan& plan, const SweepRecord* frozen) {
  const SweepFile& file = plan.file;
  plan.choosing_overrides.resize(file.experiments.size());
  plan.confirming_overrides.resize(file.experiments.size());
  plan.record.halves.resize(file.experiments.size());
  require_same_confirmation(file);
  if (file.choice == ChoiceScore::none) return;
  plan.record.confirmed_on = "the same graphs that chose it";
  if (file.choice == ChoiceScore::out_of_fold) {
    plan.record.confirmed_on = "the validation split, which did not choose it";
  } else if (file.choice_halves) {
    bool all = true;
    for (std::size_t i = 0; i < file.experiments.size(); ++i)
      if (!halve_validation(plan, i, frozen)) all = false;
    if (all) plan.record.confirmed_on = "validation families that did not choose it";
  }
  if (file.confirm_overrides.empty()) return;
  for (Overrides& overrides : plan.confirming_overrides)
    overrides = overrides + file.confirm_overrides;
  plan.record.confirmed_on += fmt::format(", with {}", join(file.confirm_overrides, ", "));
}

// Whether confirming runs stop members early by the graphs that confirm them.
bool confirms_stopped_members(const SweepPlan& plan) {
  for (std::size_t v = 0; v < plan.variants.size(); ++v) {
    const auto experiment = static_cast<std::size_t>(plan.variants[v].experiment);
    if (resolve(plan, static_cast<int>(v), plan.confirming_overrides[experiment])
            .train.early_stop.patience > 0)
      return true;
  }
  return false;
}

// Seeds that no run of the search uses.
std::vector<std::uint64_t> fresh_seeds(const SweepFile& file, const Experiment& experiment) {
  std::uint64_t largest = std::max(experiment.init_seed, experiment.order_seed);
  for (std::uint64_t seed : file.seeds) largest = std::max(largest, seed);
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(file.fresh_seeds));
  std::iota(seeds.begin(), seeds.end(), largest + 1);
  return seeds;
}

Overrides seed_overrides(std::optional<std::uint64_t> seed) {
  if (!seed) return {};
  return {fmt::format("seed.init={}", *seed), fmt::format("seed.order={}", *seed)};
}

SweepRun make_run(const SweepPlan& plan, int variant, std::optional<std::uint64_t> seed,
                  const Experiment& experiment, Inputs& known) {
  SweepRun run;
  run.id = to_hex(experiment.numbers_hash);
  run.variant = variant;
  run.experiment = plan.variants[variant].experiment;
  run.collection = experiment.data.collection.name;
  run.seed = seed;
  run.first_member = experiment.ensemble.first_member;
  run.members = experiment.ensemble.members;
  run.folds = experiment.ensemble.folds;
  run.config = experiment.resolved_yaml;
  if (const FrozenData* data = find_data(plan.record.data, experiment))
    set_data_hashes(run, *data, experiment, known);
  return run;
}

// Groups variants that are scored on the same graphs and may be compared. Reads all shards.
void group_variants(SweepPlan& plan) {
  const SweepFile& file = plan.file;
  struct Group {
    int experiment = 0, first = 0;
    ScoredOn scored;
  };
  std::vector<Group> groups;
  Inputs known;
  for (int v = 0; v < static_cast<int>(plan.variants.size()); ++v) {
    const Experiment experiment = resolve(plan, v, {});
    const FrozenData* data = add_data(plan.record.data, experiment);
    const bool folds = file.folds > 0 || experiment.ensemble.holds_out();
    const bool out_of_fold = file.choice == ChoiceScore::none
                                 ? folds && experiment.predictions.wanted
                                 : file.choice == ChoiceScore::out_of_fold;
    const ScoredOn scored = scored_on(experiment, out_of_fold, data, known);
    const int of = plan.variants[v].experiment;
    const auto at = std::ranges::find_if(groups, [&](const Group& group) {
      return group.experiment == of && group.scored == scored;
    });
    plan.record.variant_group.push_back(static_cast<int>(at - groups.begin()));
    if (at != groups.end()) continue;
    const auto other = std::ranges::find(groups, of, &Group::experiment);
    if (other != groups.end() && file.choice != ChoiceScore::none) {
      throw ConfigError(
          fmt::format("variants {} ({}) and {} ({}): nothing can be chosen between them, because "
                      "{}; leave `choose` and `halving` out (`sweep collect` then has a table for "
                      "each), or make an experiment file for each",
                      other->first, plan.record.label(other->first), v, plan.record.label(v),
                      difference_of(other->scored, scored)));
    }
    groups.push_back({of, v, scored});
  }
}

// The overrides of all runs of a variant in a stage, without seed and member.
Overrides stage_overrides(const SweepPlan& plan, const Stage& stage, int variant) {
  const SweepFile& file = plan.file;
  const auto experiment = static_cast<std::size_t>(plan.variants[variant].experiment);
  Overrides overrides =
      stage.confirms ? plan.confirming_overrides[experiment] : plan.choosing_overrides[experiment];
  overrides = overrides + fold_overrides(file);  // applied last, so that values of `over` cannot
                                                 // undo them
  if (stage.step_divisor > 1) {
    const std::int64_t steps = resolve(plan, variant, overrides).train.steps;
    overrides.push_back(
        fmt::format("train.steps={}", (steps + stage.step_divisor - 1) / stage.step_divisor));
  }
  return overrides;
}

// Runs must be scored on the graphs on which they are compared.
void require_scores(const SweepPlan& plan, const Stage& stage, int variant,
                    const Experiment& experiment) {
  if (plan.file.choice == ChoiceScore::none) return;
  const std::string& label = plan.record.label(variant);
  if (experiment.ensemble.trains_on_valid) {
    throw ConfigError(fmt::format(
        "variant {} ({}): what is chosen needs validation graphs that no run trains on; choose "
        "with ensemble.fold_over=train, and train what was chosen with train+valid afterwards",
        variant, label));
  }
  const bool by_folds = plan.file.choice == ChoiceScore::out_of_fold && !stage.confirms;
  if (by_folds && !experiment.predictions.wanted) {
    throw ConfigError(
        fmt::format("variant {} ({}): choose.by: out_of_fold needs predictions of the graphs that "
                    "members hold out; set predictions.rows",
                    variant, label));
  }
  if (!by_folds && experiment.train.last_evaluation == LastEvaluation::none) {
    throw ConfigError(
        fmt::format("variant {} ({}): runs are compared on the validation split; set "
                    "train.last_evaluation to sampled or all",
                    variant, label));
  }
}

void require_different(const SweepPlan& plan, const std::vector<SweepRun>& runs) {
  std::map<std::string, const SweepRun*> seen;
  for (const SweepRun& run : runs) {
    const auto [other, is_new] = seen.emplace(run.id, &run);
    if (is_new) continue;
    throw ConfigError(fmt::format(
        "runs {} and {} of the sweep are equal ({} | {}); leave one of these values out",
        other->second->index, run.index, plan.record.label(other->second->variant),
        plan.record.label(run.variant)));
  }
}

// base to the power `exponent`, at most kMany, which no number of steps exceeds; base <= 100.
std::int64_t step_divisor(std::int64_t base, int exponent) {
  std::int64_t result = 1;
  for (int i = 0; i < exponent; ++i) result = std::min(result * base, kMany);
  return result;
}

// Adds the stages after the first, each with its largest possible number of runs. `most`: runs of a
// variant for each seed.
void plan_stages(SweepPlan& plan, int most) {
  const SweepFile& file = plan.file;
  const int seeds = static_cast<int>(std::max<std::size_t>(file.seeds.size(), 1));
  std::vector<int> left(file.experiments.size(), 0);  // variants of each experiment
  for (const Variant& variant : plan.variants) ++left[variant.experiment];
  int first = static_cast<int>(plan.record.runs.size());
  for (int rung = 1; rung < file.rungs; ++rung) {
    int count = 0;
    for (int& variants : left) {
      variants = (variants + file.keep - 1) / file.keep;
      count += variants * seeds * most;
    }
    plan.record.stages.push_back({fmt::format("rung {} of {}", rung + 1, file.rungs), first, count,
                                  step_divisor(file.keep, file.rungs - 1 - rung), false});
    first += count;
  }
  if (file.choice != ChoiceScore::none)
    plan.record.stages.push_back({"confirm", first, 0, 1, true});
}

// Counts the runs that can confirm. Mistakes in these runs must appear before the search.
void plan_confirmation(SweepPlan& plan) {
  Stage& confirm = plan.record.stages.back();
  int most = 1;  // runs of a variant for each seed
  for (int v = 0; v < static_cast<int>(plan.variants.size()); ++v) {
    const Overrides overrides = stage_overrides(plan, confirm, v);
    const auto seeds = fresh_seeds(plan.file, resolve(plan, v, overrides));
    const Experiment last = resolve(plan, v, overrides + seed_overrides(seeds.back()));
    require_scores(plan, confirm, v, last);
    if (plan.file.split) most = std::max(most, last.ensemble.members);
  }
  confirm.count =
      static_cast<int>(plan.file.experiments.size()) * plan.file.fresh_seeds * most *
      (plan.file.baseline && plan.record.labels.size() > plan.file.experiments.size() ? 2 : 1);
}

// Everything but the variants.
void plan_runs(SweepPlan& plan, const SweepRecord* frozen) {
  plan_choice(plan, frozen);
  if (!plan.record.confirmed_on.empty() && confirms_stopped_members(plan))
    plan.record.confirmed_on += ", and by which members stopped early (train.early_stop)";
  group_variants(plan);
  const int rungs = plan.file.rungs;
  const bool chooses = plan.file.choice != ChoiceScore::none;
  plan.record.stages.push_back({rungs > 1 ? fmt::format("rung 1 of {}", rungs)
                                : chooses ? "search"
                                          : "list",
                                0, 0, step_divisor(plan.file.keep, rungs - 1), false});
  std::vector<int> all(plan.variants.size());
  std::iota(all.begin(), all.end(), 0);
  plan.record.runs = runs_of_stage(plan, 0, all);
  plan.record.stages[0].count = static_cast<int>(plan.record.runs.size());
  const int seeds = static_cast<int>(std::max<std::size_t>(plan.file.seeds.size(), 1));
  std::vector<int> per_seed(plan.variants.size(), 0);
  for (const SweepRun& run : plan.record.runs) ++per_seed[run.variant];
  plan_stages(plan, *std::ranges::max_element(per_seed) / seeds);
  if (chooses) plan_confirmation(plan);
}

}  // namespace

std::string resolved_base(const SweepPlan& plan, int experiment) {
  return load_experiment(plan.file.experiments[experiment], {}).resolved_yaml;
}

std::vector<SweepRun> runs_of_stage(const SweepPlan& plan, int stage_number,
                                    const std::vector<int>& variants) {
  const Stage& stage = plan.record.stages[stage_number];
  const SweepFile& file = plan.file;
  std::vector<SweepRun> runs;
  Inputs known;
  for (int variant : variants) {
    const Overrides overrides = stage_overrides(plan, stage, variant);
    std::vector<std::optional<std::uint64_t>> seeds{std::nullopt};
    if (stage.confirms) {
      const auto fresh = fresh_seeds(file, resolve(plan, variant, overrides));
      seeds.assign(fresh.begin(), fresh.end());
    } else if (!file.seeds.empty()) {
      seeds.assign(file.seeds.begin(), file.seeds.end());
    }
    for (const auto& seed : seeds) {
      const Overrides seeded = overrides + seed_overrides(seed);
      const Experiment fused = resolve(plan, variant, seeded);
      require_scores(plan, stage, variant, fused);
      if (!file.split || fused.ensemble.members == 1) {
        runs.push_back(make_run(plan, variant, seed, fused, known));
        continue;
      }
      for (int i = 0; i < fused.ensemble.members; ++i) {
        const int member = fused.ensemble.number_of(i);
        const Overrides one{fmt::format("ensemble.first_member={}", member), "ensemble.members=1"};
        runs.push_back(make_run(plan, variant, seed, resolve(plan, variant, seeded + one), known));
      }
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].index = stage.first + static_cast<int>(i);
  require_different(plan, runs);
  return runs;
}

SweepPlan plan_sweep(SweepFile sweep, const SweepRecord* frozen) {
  SweepPlan plan;
  plan.file = std::move(sweep);
  plan.variants = variants_of(plan.file);
  SweepRecord& record = plan.record;
  record.name = plan.file.name;
  record.choice = plan.file.choice;
  record.keep = plan.file.keep;
  record.baseline = plan.file.baseline;
  for (const auto& path : plan.file.experiments) record.experiments.push_back(path.stem().string());
  for (const Variant& variant : plan.variants) {
    record.variant_experiment.push_back(variant.experiment);
    record.labels.push_back(label_of(variant, plan.file));
  }
  if (frozen) record.data = frozen->data;
  try {
    plan_runs(plan, frozen);
  } catch (const ExperimentError& error) {
    refuse_variants(plan, error);
  }
  return plan;
}

}  // namespace tpudist
