#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// The model family of a graph name. Related graphs must not be on both sides of a fold.
// - A known model: its name without sizes, versions, batch sizes, dtypes, topologies and run
//   suffixes. `resnet50.4x4.fp16` and `resnet_v2_152_batch_128` are "resnet";
//   `mlperf_bert_batch_24_2x2` and `bert_pretraining.4x4.fp16` are "bert". A detector has its own
//   name, not its backbone's: `mask_rcnn_resnet50.4x4.bf16` is "mask_rcnn".
// - A BERT that states its depth belongs to that depth:
//   `small_bert_bert_en_uncased_L-12_H-768_A-12_...` and `bert_en_cased_L-12_H-768_A-12_...` are
//   one network and both "bert_l12". Nearly all graphs of the nlp collections are BERTs of seven
//   depths, which as one family could not be split.
// - A tile kernel named by its HLO instruction (`fusion.206_10`), or a graph named by a hash: the
//   name shows no relation, so the graph is its own family, with the whole name.
// - Any other name: its words without the parts above (`lstm_text_batch_size_16_train` is
//   "lstm_text").
//
// Lower case; empty only if the name is.
std::string model_family(std::string_view graph_name);

// Assigns graphs to folds 0 .. folds-1, always whole families, so that every fold gets its share of
// large and of small families. Families are grouped into weight classes, one for each interval
// between powers of two, and assigned heaviest class first. Within a class, a permutation keyed
// with `seed` gives the order. Each family goes to the fold with the least weight so far; among
// equals, to the fold with the fewest families, then to the first. So the heaviest fold exceeds the
// lightest by at most one family.
//
// A function of the set of graphs: their order does not matter. `weights`: one per graph, finite
// and not negative (e.g. its nodes). Throws ConfigError if there are fewer families than folds (it
// names them), folds < 1, or weights are invalid.
std::vector<int> assign_folds(const std::vector<std::string>& graph_names,
                              const std::vector<double>& weights, int folds, std::uint64_t seed);

}  // namespace tpudist
