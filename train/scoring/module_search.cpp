#include "train/scoring/module_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "results/records/run_folder.hpp"
#include "results/scores/joined_predictions.hpp"

namespace tpudist {
namespace {

// Configurations of the pool by whose scores members are judged and scaled.
constexpr std::int64_t kPool = 512;
// Most configurations of the file that starts are drawn from.
constexpr std::int64_t kMostKnown = 4096;

// The configurations of the file as starts: the fastest measured one, and those to draw from.
void add_known(const Module& module, const ConfigSpace& space, SearchOptions& options) {
  if (module.made) return;
  const Dataset& data = module.dataset;
  const std::int64_t rows = data.rows(0), step = (rows + kMostKnown - 1) / kMostKnown;
  for (std::int64_t row = 0; row < rows; row += step)
    options.known.push_back(space.point_of(data, row));
  if (!module.has_times) return;
  std::int64_t fastest = 0;
  for (std::int64_t row = 1; row < rows; ++row) {
    if (data.target(0, row) < data.target(0, fastest)) fastest = row;
  }
  options.first = {space.standard_point, space.point_of(data, fastest)};
}

ConfigSpace with_choices(ConfigSpace space, const Module& module) {
  if (!space.groups.empty()) return space;
  throw DataError(fmt::format(
      "{}: its nodes have one layout each, so there is one configuration and nothing to "
      "search",
      module.dataset.graph(0).name));
}

LayoutSpace layouts_of(const Module& module) {
  if (module.dataset.options().collection.is_tile())
    throw ConfigError(
        "tile sizes need no search: the file lists all of a kernel's; use `tpudist rank`");
  return module.made ? module.made->space : listed_layouts(module);
}

}  // namespace

Pessimism pessimism_of(const std::vector<TrainedRun>& runs) {
  Pessimism chosen;
  std::vector<std::shared_ptr<const PredictionsFile>> files;
  try {
    for (const TrainedRun& run : runs) {
      const std::filesystem::path path = RunFolder(run.path).predictions();
      if (std::filesystem::exists(path))
        files.push_back(std::make_shared<const PredictionsFile>(path));
    }
    if (!files.empty()) chosen = chosen_pessimism(JoinedPredictions(std::move(files)));
  } catch (const Error& error) {
    spdlog::warn("{}; no predictions choose the pessimism", error.what());
  }
  return chosen;
}

SearchedModule::SearchedModule(const Module& module, const std::vector<TrainedRun>& runs,
                               const JudgementOptions& judgement, bool free, std::uint64_t seed,
                               JobContext& context)
    : module_(module),
      layouts_(layouts_of(module)),
      grouped_(with_choices(config_space(layouts_), module)),
      space_(free ? grouped_.without_groups() : grouped_),
      pool_(with_configs(reference_points(space_, kPool, seed))),
      session_(pool_.dataset, context) {
  const std::vector<const TrainedRun*> all = runs_to_rank(pool_, runs, context);
  weights_ = add_runs(session_, all);
  session_.require_scores_of_configs();
  context.enter("searching");
  context.progress.start("reference", session_.scores(0), "scores");
  session_.score(weights_, 0, [&](std::vector<ScoresByMember> graphs) {
    prediction_ = std::move(graphs.front());
  });
  context.progress.finish();
  for (const auto& member : judged_members(session_, all, prediction_, judgement, context.pool))
    used_.push_back(member.why_left_out.empty());
}

Module SearchedModule::with_configs(std::span<const ConfigSpace::Point> points) const {
  MadeConfigs made{layouts_, {}};
  for (const ConfigSpace::Point& point : points) made.configs.push_back(space_.config(point));
  return {module_.dataset.with_configs(0, space_.slate(points)),
          false,
          {},
          0,
          std::make_shared<const MadeConfigs>(std::move(made))};
}

EnsembleScorer SearchedModule::scorer(double pessimism) const {
  return {session_, weights_, space_, prediction_, used_, pessimism};
}

ModuleSearch search_module(const Module& module, const std::vector<TrainedRun>& runs,
                           const JudgementOptions& judgement, SearchOptions options, bool free,
                           JobContext& context) {
  // By rank 0 alone, since ranks may see other files.
  Pessimism pessimism;
  run_on_first_rank(context.world, [&] { pessimism = pessimism_of(runs); });
  context.world.broadcast(std::span(&pessimism, 1), 0);
  const SearchedModule searched(module, runs, judgement, free, options.seed, context);
  const ConfigSpace& space = searched.space();
  add_known(module, space, options);
  const SearchResult found =
      find_configs(space, searched.scorer(pessimism.share), options, context);
  std::vector<ConfigSpace::Point> points = {space.standard_point};
  points.insert(points.end(), found.proposals.begin(), found.proposals.end());
  Module listed = searched.with_configs(points);
  ModuleRanking ranking = rank_module(listed, runs, judgement, context);
  ModuleSearch search{found, std::move(listed), std::move(ranking), space.size()};
  search.pessimism = pessimism;
  for (const ConfigSpace::Point& proposal : found.proposals) {
    search.changed.push_back(distance(proposal, space.standard_point));
    if (free) search.broken.push_back(searched.grouped().broken_share(proposal));
  }
  return search;
}

}  // namespace tpudist
