#include "models/losses/losses.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace tpudist {
namespace {

// Weighted sum of losses.
class LossSum : public SlateLoss {
 public:
  void add(double weight, std::unique_ptr<SlateLoss> loss) {
    terms_.emplace_back(weight, std::move(loss));
  }

  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override {
    std::vector<double> part(gradient.size());
    std::fill(gradient.begin(), gradient.end(), 0.0);
    Value sum;
    for (const auto& [weight, loss] : terms_) {
      const Value term = loss->evaluate(scores, targets, tie_key, part);
      sum.loss += weight * term.loss;
      sum.translation_invariant = sum.translation_invariant && term.translation_invariant;
      for (std::size_t i = 0; i < part.size(); ++i) gradient[i] += weight * part[i];
    }
    return sum;
  }

  void set_batch(BatchLoss loss) { batch_ = std::move(loss); }
  const BatchLoss* of_batch() const override { return batch_.loss ? &batch_ : nullptr; }

  bool is_translation_invariant() const override {
    if (batch_.loss) return false;  // a slate's scores may not move by themselves
    for (const auto& [weight, loss] : terms_) {
      if (!loss->is_translation_invariant()) return false;
    }
    return true;
  }

 private:
  std::vector<std::pair<double, std::unique_ptr<SlateLoss>>> terms_;
  BatchLoss batch_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPositive = std::numeric_limits<double>::min();
constexpr double kLargest = 1e30;

std::unique_ptr<SlateLoss> read_list_mle(ConfigNode term, TargetKind) {
  const double clip_norm = term.number("clip_norm", kInfinity, {kPositive, kInfinity});
  return std::make_unique<ListMle>(clip_norm, term.number("temperature", 1, {1e-6, 1e6}));
}

std::unique_ptr<SlateLoss> read_diff_mat(ConfigNode term, TargetKind) {
  const double margin = term.number("margin", 0.01, {0, kLargest});
  const bool inverse = term.choice("scale", "none", {"none", "inverse_margin"}) != "none";
  if (!inverse) return std::make_unique<DiffMat>(margin, 1);
  if (margin > 0) return std::make_unique<DiffMat>(margin, 1 / margin);
  term.mistake("scale", "inverse_margin divides by the margin, which is 0: give a larger one");
  return std::make_unique<DiffMat>(margin, 1);
}

PairOptions read_pairs(ConfigNode& term) {
  PairOptions options;
  if (term.choice("reduction", "mean", {"mean", "sum"}) == "sum")
    options.reduction = PairReduction::sum;
  options.permutations = static_cast<int>(term.integer("permutations", 0, {0, 1000}));
  options.hardest = term.number("hardest", 1, {1e-6, 1});
  options.top = static_cast<int>(term.integer("top", 0, {0, 1'000'000}));
  options.top_weight = term.number("top_weight", 1, {0, 1e6});
  if (options.top == 0 && options.top_weight != 1)
    term.mistake("top_weight", "weighs the `top` fastest configurations: give their number");
  return options;
}

std::unique_ptr<SlateLoss> read_pairwise_hinge(ConfigNode term, TargetKind) {
  const double margin = term.number("margin", 1, {0, kLargest});
  return std::make_unique<PairwiseHinge>(margin, read_pairs(term));
}

std::unique_ptr<SlateLoss> read_pairwise_logistic(ConfigNode term, TargetKind) {
  const double sigma = term.number("sigma", 1, {1e-6, 1e6});
  return std::make_unique<PairwiseLogistic>(sigma, read_pairs(term));
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

std::unique_ptr<SlateLoss> read_mape(ConfigNode term, TargetKind targets) {
  return std::make_unique<Mape>(read_unit(term, targets));
}

std::unique_ptr<SlateLoss> read_mse(ConfigNode term, TargetKind targets) {
  return std::make_unique<Mse>(read_unit(term, targets));
}

std::unique_ptr<SlateLoss> read_log_huber(ConfigNode term, TargetKind targets) {
  const double delta = term.number("delta", 1, {1e-9, kLargest});
  return std::make_unique<LogHuber>(delta, read_unit(term, targets));
}

}  // namespace

std::unique_ptr<SlateLoss> read_loss(ConfigNode loss, TargetKind targets) {
  // To add a loss, add a line here.
  static constexpr std::pair<const char*, std::unique_ptr<SlateLoss> (*)(ConfigNode, TargetKind)>
      kinds[] = {
          {"list_mle", read_list_mle},
          {"diff_mat", read_diff_mat},
          {"pairwise_hinge", read_pairwise_hinge},
          {"pairwise_logistic", read_pairwise_logistic},
          {"mape", read_mape},
          {"mse", read_mse},
          {"log_huber", read_log_huber},
      };
  auto sum = std::make_unique<LossSum>();
  bool any = false;
  for (const auto& [name, read] : kinds) {
    if (!loss.has(name)) continue;
    ConfigNode term = loss.child(name);
    const double weight = term.number("weight", 1, {0, std::numeric_limits<double>::max()});
    sum->add(weight, read(term, targets));
    any = any || weight > 0;
  }
  if (loss.has("batch_hinge")) {
    ConfigNode term = loss.child("batch_hinge");
    BatchLoss batch;
    batch.weight = term.number("weight", 1, {0, std::numeric_limits<double>::max()});
    batch.relative = term.boolean("relative", false);
    batch.loss = read_pairwise_hinge(term, targets);
    any = any || batch.weight > 0;
    sum->set_batch(std::move(batch));
  }
  if (!any) {
    loss.mistake(
        "list_mle",
        "give at least one loss with a weight above 0, e.g. list_mle: {weight: 1}; there are "
        "list_mle, diff_mat, pairwise_hinge, pairwise_logistic, mape, mse, log_huber and "
        "batch_hinge");
  }
  return sum;
}

}  // namespace tpudist
