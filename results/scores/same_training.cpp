#include "results/scores/same_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "results/records/settings.hpp"
#include "results/scores/member_columns.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

bool same_value(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool same_values(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, same_value);
}

// The real path of the run's folder, also for the predictions in it.
fs::path real_path(const RunRecord& run) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(run.path, error);
  if (error) path = run.path;
  return path.filename() == "predictions.h5" ? path.parent_path() : path;
}

std::uint64_t parameters_of(const RunRecord& run) {
  return run.hashes ? run.hashes->parameter_hash : run.scores ? run.scores->parameter_hash : 0;
}

bool other_scores(const RunRecord& a, const RunRecord& b) {
  if (!a.scores || !b.scores || a.scores->most_rows != b.scores->most_rows) return false;
  return !std::ranges::equal(a.scores->graphs, b.scores->graphs,
                             [](const GraphResult& x, const GraphResult& y) {
                               return x.name == y.name && same_values(x.members, y.members);
                             });
}

// The number of common logged steps with equal losses of all members; 0 if a step differs.
std::size_t equal_losses(const LearningCurves& a, const LearningCurves& b) {
  std::size_t equal = 0;
  auto other = a.steps.begin();
  for (const LearningCurves::Step& step : b.steps) {
    while (other != a.steps.end() && other->step < step.step) ++other;
    if (other == a.steps.end()) break;
    if (other->step != step.step) continue;
    if (!same_values(step.loss, other->loss) || !same_values(step.norm, other->norm)) return 0;
    if (std::ranges::any_of(step.loss, [](double loss) { return std::isfinite(loss); })) ++equal;
  }
  return equal;
}

// Why records at two paths are one training; empty if they are two, or if nothing tells.
std::string sameness(const RunRecord& a, const RunRecord& b) {
  if (a.collection != b.collection || a.first_member != b.first_member) return {};
  const std::uint64_t x = parameters_of(a), y = parameters_of(b);
  if (x != 0 && y != 0) return x == y ? "equal parameters" : "";
  if (a.init_seed != b.init_seed || a.order_seed != b.order_seed) return {};
  const std::size_t steps = equal_losses(a.curves, b.curves);
  if (steps == 0 || other_scores(a, b)) return {};
  // With other settings, one may be a longer training that began alike.
  if (a.curves.last_step() != b.curves.last_step() && !different_settings(a, b).empty()) return {};
  return fmt::format("equal losses at {}",
                     counted(static_cast<std::int64_t>(steps), "logged step"));
}

}  // namespace

std::vector<SameTraining> same_trainings(std::span<const RunRecord> runs) {
  std::vector<fs::path> paths;
  for (const RunRecord& run : runs) paths.push_back(real_path(run));
  std::vector<SameTraining> pairs;
  for (std::size_t second = 1; second < runs.size(); ++second) {
    for (std::size_t first = 0; first < second; ++first) {
      std::string why =
          paths[first] == paths[second] ? "the same folder" : sameness(runs[first], runs[second]);
      if (why.empty()) continue;
      pairs.push_back({first, second, std::move(why)});
      break;
    }
  }
  return pairs;
}

std::vector<std::string> different_settings(const RunRecord& a, const RunRecord& b) {
  if (a.config.empty() || b.config.empty()) return {};
  std::vector<std::string> changes =
      changed_settings(variant_entries(a.config), variant_entries(b.config));
  const auto init_hash = [](const RunRecord& run) {
    return from_hex(run.setting(kInitWeights)).value_or(0);
  };
  if (!other_first_weights(init_hash(a), init_hash(b)))
    std::erase_if(changes, [](const auto& change) { return change.starts_with(kInitWeights); });
  return changes;
}

}  // namespace tpudist
