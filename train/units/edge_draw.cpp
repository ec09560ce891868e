#include "train/units/edge_draw.hpp"

#include "core/hash.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

// Distinguishes draws of edges from other draws with the same seed and step.
constexpr std::uint64_t kEdgesKey = 0x65646765735f3031;

}  // namespace

EdgeDraw edge_draw(const Experiment& experiment, std::int64_t step,
                   std::span<const SlateId> slates) {
  EdgeDraw draw{experiment.batch.edge_dropout,
                mix_key({kEdgesKey, experiment.order_seed, static_cast<std::uint64_t>(step)}),
                {}};
  for (const SlateId& slate : slates)
    draw.slates.push_back(mix_key(
        {static_cast<std::uint64_t>(slate.epoch), static_cast<std::uint64_t>(slate.number)}));
  return draw;
}

std::vector<std::int32_t> kept_edges(const Graph& graph, const EdgeDraw& draw, std::size_t slate) {
  if (draw.dropout <= 0) return {graph.edge_index.begin(), graph.edge_index.end()};
  const std::uint64_t own = draw.slates.empty() ? slate : draw.slates.at(slate);
  CounterRng random(mix_key({draw.key, hash64(graph.name), own}));
  std::vector<std::int32_t> kept;
  for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
    if (random.uniform() < draw.dropout) continue;
    kept.push_back(graph.edge_index[e]);
    kept.push_back(graph.edge_index[e + 1]);
  }
  return kept;
}

}  // namespace tpudist
