#include "train/experiment/read_scoring.hpp"

#include "core/config/yaml_scalar.hpp"
#include "train/experiment/limits.hpp"

namespace tpudist {
namespace {

ScoringSlates read_slates(ConfigNode node) {
  ScoringSlates slates;
  slates.configs = node.integer("configs", 0, {0, 1 << 20});
  if (slates.configs == 1)
    node.mistake("configs", "a slate needs at least 2 configurations; 0 scores without slates");
  if (!slates.wanted()) {
    // Declared as known, so that `configs: 0` can turn off keys that a file gives.
    for (const char* key : {"permutations", "seed"}) {
      if (node.has(key) && !node.has("configs"))
        node.mistake(key, "is of slates, and there are none: give evaluate.slate.configs");
    }
    return slates;
  }
  slates.permutations = positive(node, "permutations", slates.permutations, 10'000);
  slates.seed = static_cast<std::uint64_t>(
      node.integer("seed", static_cast<std::int64_t>(slates.seed), {0, kMany}));
  return slates;
}

}  // namespace

ScoringBlock read_evaluate(ConfigNode evaluate) {
  ScoringBlock block;
  block.configs = evaluate.integer_or_auto("block", 0, {1, 1 << 20});
  block.rows = evaluate.integer("block_rows", block.rows, {1, kMany});
  block.plan_floats = evaluate.integer("plan_floats", block.plan_floats, {1, kMany});
  block.slates = read_slates(evaluate.child("slate"));
  if (block.slates.wanted() && block.configs > 0)
    evaluate.mistake("block", "slates are computed whole: leave out block, or slate");
  return block;
}

PredictionsConfig read_predictions(ConfigNode predictions) {
  PredictionsConfig config;
  const std::string rows = predictions.text("rows", "none");
  if (rows == "none" || rows == "all") {
    config.wanted = rows == "all";
    return config;
  }
  const auto number = parse_integer(rows);
  if (number.error || number.value < 2) {
    predictions.mistake("rows", "must be `none`, `all` or a number of rows of a graph, at least 2");
    return config;
  }
  config.wanted = true;
  config.most_rows = number.value;
  return config;
}

}  // namespace tpudist
