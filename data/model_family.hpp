#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// The model family of a graph name: what is left without sizes, batch sizes, dtypes, topologies and optimizer or run suffixes, so that kin never
// sit on both sides of a fold: `resnet50.4x4.fp16` and `resnet50.8x8.bf16` are "resnet"; `mlperf_bert_batch_24_2x2` and
// `bert_pretraining.4x4.fp16` are "bert".
std::string model_family(std::string_view graph_name);

// Assigns graphs to `folds` folds, 0 .. folds-1, a family always as a whole: families from the largest on, each to the fold that has least
// weight so far; ties by a permutation keyed with `seed`. Throws ConfigError when there are fewer families than folds (names
// them). weights: one per graph (e.g. 1, or its configurations).
std::vector<int> assign_folds(const std::vector<std::string>& graph_names, const std::vector<double>& weights, int folds,
                              std::uint64_t seed);

}  // namespace tpudist
