#include "train/units/batch_plan.hpp"

#include <algorithm>
#include <numeric>

#include "train/units/step_work.hpp"

namespace tpudist {
namespace {

// Number of merged slates planned together to estimate the cost of a further one.
constexpr int kMergedSamples = 4;

// The number of equally likely segments of a graph; 1 if graphs are not cut.
int segments_of(const Experiment& experiment, const Dataset& data, int graph) {
  if (!experiment.data.cuts_segments()) return 1;
  return static_cast<int>(configurable_segments(data.graph(graph)).size());
}

// Nodes x configurations of a slate, to which the cost of a dense plan is proportional.
std::vector<double> slate_sizes(const Experiment& experiment, const Dataset& data) {
  std::vector<double> sizes;
  for (int g = 0; g < data.size(); ++g) {
    sizes.push_back(
        static_cast<double>(data.seen_nodes(g)) / segments_of(experiment, data, g) *
        static_cast<double>(std::min<std::int64_t>(experiment.batch.configs, data.rows(g))));
  }
  return sizes;
}

// The graphs by size; those of equal size in their order.
std::vector<int> by_size(const std::vector<double>& sizes) {
  std::vector<int> graphs(sizes.size());
  std::iota(graphs.begin(), graphs.end(), 0);
  std::ranges::stable_sort(graphs, {}, [&](int graph) { return sizes[graph]; });
  return graphs;
}

// Every position, or `most` positions spread evenly from the first to the last.
std::vector<std::size_t> sampled_places(std::size_t count, int most) {
  const auto samples = std::min(count, static_cast<std::size_t>(most));
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < samples; ++i)
    places.push_back(samples > 1 ? i * (count - 1) / (samples - 1) : 0);
  return places;
}

class Sampler {
 public:
  Sampler(const Experiment& experiment, const Dataset& data, const UnitBuilder& units,
          const SlateOrder& order)
      : experiment_(experiment), data_(data), units_(units), order_(order) {}

  SlateCost sample(int graph) const {
    if (experiment_.data.cuts_segments()) return mean_of_segments(graph);
    const double first = work({slate(graph, 0)});
    const int merged = merged_slates(graph);
    if (merged < 2) return {first, first};
    std::vector<Slate> slates;
    for (int number = 0; number < merged; ++number) slates.push_back(slate(graph, number));
    return {first, std::max(work(slates) - first, 0.0) / (merged - 1)};
  }

 private:
  // Slates that see their own segments share no rows.
  SlateCost mean_of_segments(int graph) const {
    const int segments = segments_of(experiment_, data_, graph);
    double sum = 0;
    for (int i = 0; i < segments; ++i) sum += work({slate(graph, 0)}, i);
    return {sum / segments, sum / segments};
  }

  int merged_slates(int graph) const {
    if (experiment_.batch.unit != UnitKind::graph) return 1;
    return static_cast<int>(std::min<std::int64_t>(
        std::min(experiment_.batch.unit_slates, kMergedSamples), order_.slates_of(graph)));
  }

  Slate slate(int graph, int number) const {
    return data_.slate(graph,
                       order_.rows({.graph = graph, .number = number}, drawn_by(experiment_, 0)));
  }

  // A slate in n chunks costs n times its first chunk: each chunk contains the first configuration.
  // This needs only the memory of one chunk.
  double work(std::vector<Slate> slates, int segment = -1) const {
    const auto chunk = static_cast<std::size_t>(experiment_.batch.config_chunk);
    Slate& slate = slates.front();
    const std::size_t configs = slate.configs.size();
    double chunks = 1;
    if (chunk > 0 && slates.size() == 1 && configs > chunk) {
      chunks = static_cast<double>(configs - 1) / static_cast<double>(chunk - 1);
      const std::size_t width = slate.states.size() / configs;
      slate.configs.resize(chunk);
      slate.targets.resize(chunk);
      slate.states.resize(chunk * width);
    }
    GraphDraw draw = graph_draw(experiment_, 0);
    draw.segment = segment;
    return chunks * units_.estimate(slates, draw).step_work();
  }

  const Experiment& experiment_;
  const Dataset& data_;
  const UnitBuilder& units_;
  const SlateOrder& order_;
};

}  // namespace

std::vector<SlateCost> estimate_slate_costs(const Experiment& experiment, const Dataset& data,
                                            const UnitBuilder& units, const SlateOrder& order,
                                            ThreadPool& pool, Communicator& world,
                                            int most_samples) {
  const std::vector<double> sizes = slate_sizes(experiment, data);
  const std::vector<int> graphs = by_size(sizes);
  const std::vector<std::size_t> places = sampled_places(graphs.size(), most_samples);
  // Every rank fills in its own samples and zeros elsewhere, so that the sums over ranks are exact.
  std::vector<double> numbers(2 * places.size(), 0.0);
  const auto samples = static_cast<std::int64_t>(places.size());
  run_on_all_ranks(world, [&] {
    const Sampler sampler(experiment, data, units, order);
    const std::int64_t mine = (samples - world.rank() + world.size() - 1) / world.size();
    pool.parallel_for(mine, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(world.rank() + i * world.size());
      const SlateCost cost = sampler.sample(graphs[places[at]]);
      numbers[2 * at] = cost.first;
      numbers[2 * at + 1] = cost.further;
    });
  });
  world.all_reduce(std::span(numbers), ReduceOp::sum);

  std::vector<SlateCost> costs;
  for (const double size : sizes) costs.push_back({size, size});
  if (places.empty()) return costs;
  std::size_t sample = 0;  // the last sample not after this graph
  for (std::size_t place = 0; place < graphs.size(); ++place) {
    while (sample + 1 < places.size() && places[sample + 1] <= place) ++sample;
    const auto graph = static_cast<std::size_t>(graphs[place]);
    const double sampled = sizes[graphs[places[sample]]];
    const double scale = places[sample] == place || sampled <= 0 ? 1.0 : sizes[graph] / sampled;
    costs[graph] = {scale * numbers[2 * sample], scale * numbers[2 * sample + 1]};
  }
  return costs;
}

}  // namespace tpudist
