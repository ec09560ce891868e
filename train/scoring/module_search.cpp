#include "train/scoring/module_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace tpudist {
namespace {

// Configurations of the pool by whose scores members are judged and scaled.
constexpr std::int64_t kPool = 512;
// Most configurations of the file that starts are drawn from.
constexpr std::int64_t kMostKnown = 4096;

// The score of a search corrected by measurements.
PointScorer corrected(PointScorer score, const MeasuredPoints& file, const ConfigSpace& space,
                      SearchOptions& options, MeasuredCorrection& correction) {
  std::vector<ConfigSpace::Point> points;  // the measured ones, each once
  std::map<ConfigSpace::Point, std::size_t> places;
  std::vector<Measurement> measurements;
  std::vector<std::int32_t> choices;
  for (const auto& [config, time] : file.measurements) {
    const ConfigSpace::Point& point = file.points[config];
    const auto [place, fresh] = places.try_emplace(point, points.size());
    measurements.push_back({place->second, time});
    if (!fresh) continue;
    points.push_back(point);
    choices.insert(choices.end(), point.begin(), point.end());
    options.measured.insert(point);
  }
  std::vector<double> scores;
  for (std::size_t at = 0; at < points.size(); at += kPool) {
    const auto some = std::span(points).subspan(at);
    for (const PointScore& own : score(some.first(std::min<std::size_t>(kPool, some.size()))))
      scores.push_back(own.estimate);
  }
  correction = correct_by_measurements(scores, choices, measurements);
  const auto fastest = std::ranges::min_element(correction.times) - correction.times.begin();
  if (!points.empty())
    options.first = {space.standard_point, points[static_cast<std::size_t>(fastest)]};
  return [score = std::move(score),
          predict = correction.predict](std::span<const ConfigSpace::Point> some) {
    std::vector<PointScore> all = score(some);
    for (std::size_t k = 0; k < some.size(); ++k)
      all[k].estimate =
          predict(all[k].estimate, std::vector<std::int32_t>(some[k].begin(), some[k].end()));
    return all;
  };
}

// The configurations of the file as starts: the fastest measured one, and those to draw from.
void add_known(const Module& module, const ConfigSpace& space, SearchOptions& options) {
  if (module.made) return;
  const Dataset& data = module.dataset;
  const std::int64_t rows = data.rows(0), step = (rows + kMostKnown - 1) / kMostKnown;
  for (std::int64_t row = 0; row < rows; row += step)
    options.known.push_back(space.point_of(data, row).value());
  if (!module.has_times) return;
  std::int64_t fastest = 0;
  for (std::int64_t row = 1; row < rows; ++row) {
    if (data.target(0, row) < data.target(0, fastest)) fastest = row;
  }
  options.first = {space.standard_point, space.point_of(data, fastest).value()};
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

Pessimism pessimism_of(std::span<const RankingRun> runs) {
  try {
    const RankingPredictions predictions = ranking_predictions(runs);
    if (predictions.source) return chosen_pessimism(*predictions.source, predictions.takes_part);
  } catch (const Error& error) {
    spdlog::warn("{}; no predictions choose the pessimism", error.what());
  }
  return {};
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
  members_ = judged_members(session_, all, prediction_, judgement, context.pool);
  for (const auto& member : members_) used_.push_back(member.why_left_out.empty());
}

Module SearchedModule::with_configs(std::span<const ConfigSpace::Point> points) const {
  MadeConfigs made{layouts_, {}};
  for (const ConfigSpace::Point& point : points) made.configs.push_back(space_.config(point));
  const Dataset& data = module_.dataset;
  return {Dataset::of_slate(data.options(), data.entry(0), data.graph(0), space_.slate(points)),
          false,
          {},
          0,
          std::make_shared<const MadeConfigs>(std::move(made))};
}

EnsembleScorer SearchedModule::scorer(double pessimism, const std::vector<bool>& used) const {
  return {session_, weights_, space_, prediction_, used.empty() ? used_ : used, pessimism};
}

KnownGain SearchedModule::known_gain(SearchOptions options, double pessimism,
                                     JobContext& context) const {
  options.evaluations = std::max<std::int64_t>(options.starts, options.evaluations / 4);
  options.propose = 1;
  std::vector<bool> halves[2] = {std::vector<bool>(used_.size()), std::vector<bool>(used_.size())};
  std::size_t members = 0;
  for (std::size_t m = 0; m < used_.size(); ++m) {
    if (used_[m]) halves[members++ % 2][m] = true;
  }
  std::vector<double> gains;
  for (const int half : {0, 1}) {
    if (members < 2) break;
    std::vector<ConfigSpace::Point> points =
        find_configs(space_, scorer(pessimism, halves[half]), options, context).proposals;
    points.insert(points.begin(), space_.standard_point);
    for (const auto& z : scorer(0, halves[1 - half]).z_scores(points))
      gains.push_back(z.front() - z.back());
  }
  return tpudist::known_gain(gains);
}

ModuleSearch search_module(const Module& module, const std::vector<TrainedRun>& runs,
                           const JudgementOptions& judgement, SearchOptions options, bool free,
                           JobContext& context,
                           const std::function<MeasuredPoints(const SearchedModule&)>& measured) {
  const SearchedModule searched(module, runs, judgement, free, options.seed, context);
  // By rank 0 alone, since ranks may see other files.
  Pessimism pessimism;
  run_on_first_rank(context.world,
                    [&] { pessimism = pessimism_of(ranking_runs(runs, searched.members())); });
  context.world.broadcast(std::span(&pessimism, 1), 0);
  const ConfigSpace& space = searched.space();
  options.any_slate = searched.session().scores_any_slate();
  add_known(module, space, options);
  PointScorer scorer = searched.scorer(pessimism.share);
  MeasuredCorrection correction;
  if (measured)
    scorer = corrected(std::move(scorer), measured(searched), space, options, correction);
  const SearchResult found = find_configs(space, scorer, options, context);
  std::vector<ConfigSpace::Point> points = {space.standard_point};
  points.insert(points.end(), found.proposals.begin(), found.proposals.end());
  ModuleSearch search{found, searched.with_configs(points), searched.members(), space.size()};
  search.pessimism = pessimism;
  search.correction = std::move(correction);
  if (!measured) search.known = searched.known_gain(options, pessimism.share, context);
  for (const ConfigSpace::Point& proposal : found.proposals) {
    search.changed.push_back(distance(proposal, space.standard_point));
    if (free) search.broken.push_back(searched.grouped().broken_share(proposal));
  }
  return search;
}

}  // namespace tpudist
