#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// The model family of a graph name, so that kin never sit on both sides of a fold:
// - A known model: its name without sizes, versions, batch sizes, dtypes, topologies and run
// suffixes.
//   `resnet50.4x4.fp16` and `resnet_v2_152_batch_128` are "resnet"; `mlperf_bert_batch_24_2x2` and
//   `bert_pretraining.4x4.fp16` are "bert"; a detector counts by itself and not by its backbone, so
//   `mask_rcnn_resnet50.4x4.bf16` is "mask_rcnn".
// - A BERT that states its depth belongs to that depth:
// `small_bert_bert_en_uncased_L-12_H-768_A-12_...` and
//   `bert_en_cased_L-12_H-768_A-12_...` are one network and both "bert_l12". Nearly all of the nlp
//   collections are BERTs of seven depths; as one family they could not be split at all.
// - A tile kernel that is named by its HLO instruction (`fusion.206_10`), or a graph that is named
// by a hash, is
//   kin to nobody that its name could tell: it is a family by itself, the whole name.
// - Any other name: its words without the parts above (`lstm_text_batch_size_16_train` is
// "lstm_text"). Lower case; never empty unless the name is.
std::string model_family(std::string_view graph_name);

// Assigns graphs to `folds` folds, 0 .. folds-1, a family always as a whole, so that every fold gets
// its part of large and of small families. Families go by classes of their weight, the heaviest
// class first: a class are those whose weights lie between the same powers of two. Within a class
// they go in the order of a permutation keyed with `seed`. Each is given to the fold that has least
// weight so far (of equals to the one with fewest families, then to the first). So the heaviest fold
// exceeds the lightest by one family at most. A function of the set of graphs: their order does not
// matter. weights: one per graph, finite and not negative (e.g. its nodes). Throws ConfigError when
// there are fewer families than folds (names them), folds < 1, or weights cannot be weights.
std::vector<int> assign_folds(const std::vector<std::string>& graph_names,
                              const std::vector<double>& weights, int folds, std::uint64_t seed);

}  // namespace tpudist
