#include "models/losses/losses.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace tpudist {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPositive = std::numeric_limits<double>::min();
constexpr double kLargest = 1e30;

SlateLoss read_list_mle(ConfigNode term, TargetKind) {
  const double clip_norm = term.number("clip_norm", kInfinity, {kPositive, kInfinity});
  return list_mle(clip_norm, term.number("temperature", 1, {1e-6, 1e6}));
}

SlateLoss read_diff_mat(ConfigNode term, TargetKind) {
  const double margin = term.number("margin", 0.01, {0, kLargest});
  const bool inverse = term.choice("scale", "none", {"none", "inverse_margin"}) != "none";
  if (!inverse) return diff_mat(margin, 1);
  if (margin > 0) return diff_mat(margin, 1 / margin);
  term.mistake("scale", "inverse_margin divides by the margin, which is 0: give a larger one");
  return diff_mat(margin, 1);
}

PairOptions read_pairs(ConfigNode& term) {
  PairOptions options;
  options.sum = term.choice("reduction", "mean", {"mean", "sum"}) == "sum";
  options.permutations = static_cast<int>(term.integer("permutations", 0, {0, 1000}));
  options.hardest = term.number("hardest", 1, {1e-6, 1});
  options.top = static_cast<int>(term.integer("top", 0, {0, 1'000'000}));
  options.top_weight = term.number("top_weight", 1, {0, 1e6});
  if (options.top == 0 && options.top_weight != 1)
    term.mistake("top_weight", "weighs the `top` fastest configurations: give their number");
  return options;
}

SlateLoss read_pairwise_hinge(ConfigNode term, TargetKind) {
  const double margin = term.number("margin", 1, {0, kLargest});
  return pairwise_hinge(margin, read_pairs(term));
}

SlateLoss read_pairwise_logistic(ConfigNode term, TargetKind) {
  const double sigma = term.number("sigma", 1, {1e-6, 1e6});
  return pairwise_logistic(sigma, read_pairs(term));
}

// The factor of the targets before they are compared with scores.
double read_unit(ConfigNode& term, TargetKind targets) {
  if (targets == TargetKind::normalised) {
    if (term.choice("unit", "normalised", {"normalised", "nanoseconds", "seconds"}) !=
        "normalised") {
      term.mistake("unit",
                   "run times of tile collections are divided by their normalizers and have no "
                   "unit: leave it out");
    }
    return 1;
  }
  const std::string unit =
      term.choice("unit", "nanoseconds", {"nanoseconds", "milliseconds", "seconds"});
  return unit == "seconds" ? 1e-9 : unit == "milliseconds" ? 1e-6 : 1;
}

SlateLoss read_mape(ConfigNode term, TargetKind targets) {
  return mape(read_unit(term, targets));
}

SlateLoss read_mse(ConfigNode term, TargetKind targets) {
  return mse(read_unit(term, targets));
}

}  // namespace

std::unique_ptr<SlateLoss> read_loss(ConfigNode loss, TargetKind targets) {
  // To add a loss, add a line here.
  static constexpr std::pair<const char*, SlateLoss (*)(ConfigNode, TargetKind)> kinds[] = {
      {"list_mle", read_list_mle},
      {"diff_mat", read_diff_mat},
      {"pairwise_hinge", read_pairwise_hinge},
      {"pairwise_logistic", read_pairwise_logistic},
      {"mape", read_mape},
      {"mse", read_mse},
  };
  auto sum = std::make_unique<SlateLoss>();
  std::vector<std::pair<double, SlateLoss>> terms;
  bool any = false;
  const auto read_weight = [&](ConfigNode& term) {
    const double weight = term.number("weight", 1, {0, std::numeric_limits<double>::max()});
    any = any || weight > 0;
    return weight;
  };
  for (const auto& [name, read] : kinds) {
    if (!loss.has(name)) continue;
    ConfigNode term = loss.child(name);
    const double weight = read_weight(term);
    terms.emplace_back(weight, read(term, targets));
    sum->is_translation_invariant &= terms.back().second.is_translation_invariant;
  }
  if (loss.has("batch_hinge")) {
    ConfigNode term = loss.child("batch_hinge");
    const double weight = read_weight(term);
    const bool relative = term.boolean("relative", false);
    sum->batch = std::make_shared<BatchLoss>(read_pairwise_hinge(term, targets), weight, relative);
    sum->is_translation_invariant = false;  // a slate's scores may not move by themselves
  }
  if (!any) {
    loss.mistake(
        "list_mle",
        "give at least one loss with a weight above 0, e.g. list_mle: {weight: 1}; there are "
        "list_mle, diff_mat, pairwise_hinge, pairwise_logistic, mape, mse and batch_hinge");
  }
  sum->evaluate = [terms = std::move(terms)](auto scores, auto targets, std::uint64_t tie_key,
                                             auto gradient) {
    std::vector<double> part(gradient.size());
    std::ranges::fill(gradient, 0.0);
    SlateLoss::Value sum;
    for (const auto& [weight, loss] : terms) {
      const SlateLoss::Value term = loss.evaluate(scores, targets, tie_key, part);
      sum.loss += weight * term.loss;
      sum.translation_invariant = sum.translation_invariant && term.translation_invariant;
      for (std::size_t i = 0; i < part.size(); ++i) gradient[i] += weight * part[i];
    }
    return sum;
  };
  return sum;
}

}  // namespace tpudist
