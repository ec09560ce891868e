#include "train/experiment/refusals.hpp"

namespace tpudist {
namespace {

// What a network of layers cannot do, and what one that mixes the configurations of a slate needs.
void refuse_what_layers_lack(ConfigNode root, const Experiment& experiment) {
  if (!experiment.network.is_composed()) return;
  ConfigNode batch = root.child("batch");
  if (experiment.network.draws_per_element() && experiment.plan == PlanMode::refined) {
    root.mistake("plan",
                 "refined computes equal states once, and dropout with scope: element draws for "
                 "every node and configuration: set it to auto or dense, or scope to row");
  }
  if (!experiment.network.mixes_configs()) return;
  if (experiment.batch.config_chunk > 0) {
    batch.mistake(
        "config_chunk",
        "cuts slates, and config_attention takes them whole: set it to auto, or leave the "
        "layer out");
  }
  if (!experiment.evaluate_block.slates.wanted()) {
    root.child("evaluate")
        .mistake("slate",
                 "config_attention makes scores depend on the slate: give evaluate.slate, e.g. "
                 "{configs: 128}");
  }
}

// Early stopping would choose the last step by graphs on which others train.
void require_unseen_graphs_to_stop_early(ConfigNode root, const Experiment& experiment) {
  if (!experiment.ensemble.trains_on_valid() || experiment.train.early_stop.patience == 0) return;
  root.mistake("train",
               "early_stop goes by a validation split that no member trains on; leave it out, or "
               "give ensemble.fold_over=train");
}

}  // namespace

void refuse_contradictions(ConfigNode root, const Experiment& experiment) {
  require_unseen_graphs_to_stop_early(root, experiment);
  refuse_what_layers_lack(root, experiment);
}

}  // namespace tpudist
