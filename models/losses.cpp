#include "models/losses.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "models/list_mle.hpp"

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

  bool is_translation_invariant() const override {
    for (const auto& [weight, loss] : terms_) {
      if (!loss->is_translation_invariant()) return false;
    }
    return true;
  }

 private:
  std::vector<std::pair<double, std::unique_ptr<SlateLoss>>> terms_;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPositive = std::numeric_limits<double>::min();

std::unique_ptr<SlateLoss> read_list_mle(ConfigNode term) {
  const double clip_norm = term.number("clip_norm", kInfinity, {kPositive, kInfinity});
  return std::make_unique<ListMle>(clip_norm, term.number("temperature", 1, {1e-6, 1e6}));
}

}  // namespace

std::unique_ptr<SlateLoss> read_loss(ConfigNode loss) {
  // A further loss is one more line here.
  static constexpr std::pair<const char*, std::unique_ptr<SlateLoss> (*)(ConfigNode)> kinds[] = {
      {"list_mle", read_list_mle},
  };
  auto sum = std::make_unique<LossSum>();
  bool any = false;
  for (const auto& [name, read] : kinds) {
    if (!loss.has(name)) continue;
    ConfigNode term = loss.child(name);
    const double weight = term.number("weight", 1, {0, std::numeric_limits<double>::max()});
    sum->add(weight, read(term));
    any = true;
  }
  if (!any) loss.mistake("list_mle", "give at least one loss, e.g. list_mle: {weight: 1}");
  return sum;
}

}  // namespace tpudist
