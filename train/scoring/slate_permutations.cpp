#include "train/scoring/slate_permutations.hpp"

#include "core/hash.hpp"
#include "core/random.hpp"
#include "data/schema/merged_collection.hpp"

namespace tpudist {
namespace {

// Distinguishes the permutations of slates from all other keyed permutations.
constexpr std::uint64_t kSlatesKey = 0x736c6174655f3031;

DistinctRows shuffled(const DistinctRows& graph, std::uint64_t key) {
  const KeyedPermutation permutation(graph.rows.size(), key);
  DistinctRows result;
  result.graph = graph.graph;
  for (std::size_t i = 0; i < graph.rows.size(); ++i) {
    const std::uint64_t position = permutation(i);
    result.rows.push_back(graph.rows[position]);
    result.index.push_back(static_cast<std::int64_t>(position));
  }
  return result;
}

}  // namespace

SlatePermutations::SlatePermutations(const Dataset& dataset,
                                     const std::vector<DistinctRows>& graphs,
                                     const ScoringSlates& slates)
    : permuted_(slates.wanted()), count_(permuted_ ? slates.permutations : 1) {
  if (!permuted_) {
    rows_ = graphs;
    return;
  }
  for (const DistinctRows& graph : graphs) {
    const std::uint64_t name = hash64(graph_of_id(dataset.graph(graph.graph).name));
    for (int number = 0; number < count_; ++number) {
      rows_.push_back(shuffled(
          graph, mix_key({kSlatesKey, slates.seed, static_cast<std::uint64_t>(number), name})));
    }
  }
}

std::vector<BlockEstimate> SlatePermutations::repeat(
    const std::vector<BlockEstimate>& graphs) const {
  std::vector<BlockEstimate> places;
  for (const BlockEstimate& graph : graphs)
    places.insert(places.end(), static_cast<std::size_t>(count_), graph);
  return places;
}

}  // namespace tpudist
