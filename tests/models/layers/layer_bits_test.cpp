// Every layer in the network that trains, in float32: the bits do not depend on the other members
// of a call nor on the number of threads, and the numbers are those of double but for rounding.

#include <cstring>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/cpu_process.hpp"
#include "tests/models/layers/property_network.hpp"
#include "tests/models/score_vectors.hpp"

namespace tpudist {
namespace {

using namespace test;

constexpr std::uint64_t kBitsKey = 0x7654321ull;

struct BitsCall {
  UnitScores scores;
  std::vector<std::vector<float>> gradients;  // [members][P]
};

// How the loss of a call takes a shift of the scores.
enum class Shift { matters, is_ignored_here, is_always_ignored };

// Members first .. first + count - 1 of `flat`, with dropout, under the loss of DoubleCall.
BitsCall call(const Network& network, std::span<const float> flat, int first, int count,
              const UnitInput& input, const std::vector<std::uint64_t>& keys,
              Shift shift = Shift::matters) {
  BitsCall result;
  result.gradients.assign(count, std::vector<float>(network.parameters().length(), 7.0f));
  const std::vector<std::span<float>> spans(result.gradients.begin(), result.gradients.end());
  const auto loss = [&](const UnitScores& scores) {
    result.scores = scores;
    ScoreGradient gradient;
    const auto numbers = loss_numbers(input.plan->readout, shift != Shift::matters);
    for (int m = 0; m < scores.members; ++m)
      gradient.values.insert(gradient.values.end(), numbers.begin(), numbers.end());
    gradient.translation_invariant.assign(scores.members, shift != Shift::matters);
    return gradient;
  };
  network.gradient(flat, first, count, input, loss, spans, shift != Shift::is_always_ignored, keys);
  return result;
}

// Bits, so that -0.0 is not 0.0; a NaN equals itself.
template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// A unit whose dense plan has so many rows that they are cut into several chunks of two blocks, and
// whose refined plan has several blocks.
RepeatedUnit large_unit(Configurable configurable) {
  const bool tile = configurable == Configurable::tile;
  CounterRng random(5, tile);
  RepeatedUnit unit;
  unit.graphs.push_back(random_graph(random, 60, 7, configurable,
                                     tile ? kTileConfigFeatures : kLayoutConfigFeatures));
  unit.slates.push_back(random_configs(random, unit.graphs, 0, 21));
  return unit;
}

std::vector<double> doubles_of(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// A unit whose plan calls every row needed, so that none is left out.
UnitInput with_all_rows_needed(const UnitInput& input) {
  Plan plan = *input.plan;
  plan.needed_first_rows = plan.first_rows();
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const PlanLayer& layer = *plan.layers[i];
    NeededCounts& counts = plan.needed_counts[i];
    counts.rows = layer.rows_out;
    counts.self_rows = layer.rows_in;
    for (std::size_t set = 0; set < layer.edges.size(); ++set) {
      const SparseMatrix& matrix = layer.edges[set].aggregate;
      counts.neighbourhoods[set] = matrix.forward.rows() * matrix.replicas;
    }
  }
  UnitInput all = input;
  all.plan = std::make_shared<const Plan>(std::move(plan));
  return all;
}

class LayerBits : public EveryLayer {};

TEST_P(LayerBits, AreThoseOfAMemberAlone) {
  ThreadPool pool(1);
  const std::vector<std::uint64_t> keys = {kBitsKey, kBitsKey + 5, kBitsKey + 17};
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    CounterRng random(17, variant);
    const bool tile = variant == 2;
    const PropertyNetwork network(GetParam().yaml, variant, tile, pool);
    const RepeatedUnit unit =
        small_unit(random, 2, 3, tile ? Configurable::tile : Configurable::few);
    const AlignedFloats flat = network.parameters(3, kBitsKey);
    const UnitInput input = compact_unit(network.network(), unit);
    const BitsCall together = call(network.network(), flat, 0, 3, input, keys);
    for (int m = 0; m < 3; ++m) {
      const BitsCall alone = call(network.network(), flat, m, 1, input, keys);
      EXPECT_TRUE(same_bits<float>(together.gradients[m], alone.gradients[0]));
      const std::int64_t configs = input.plan->configs;
      EXPECT_TRUE(same_bits<double>(std::span(together.scores.delta).subspan(m * configs, configs),
                                    alone.scores.delta));
    }
  }
}

TEST_P(LayerBits, AreTheSameForAnyNumberOfThreads) {
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    const bool tile = variant == 2;
    const RepeatedUnit unit = large_unit(tile           ? Configurable::tile
                                         : variant == 1 ? Configurable::all
                                                        : Configurable::few);
    std::vector<BitsCall> calls;
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads, use_one_thread_per_worker);
      const PropertyNetwork network(GetParam().yaml, variant, tile, pool);
      const UnitInput input = variant == 1 ? compact_unit(network.network(), unit)
                                           : dense_unit(network.network(), unit);
      if (variant == 1) {
        EXPECT_GT(input.plan->rows(1), kBlockRows);
      } else {
        EXPECT_GT(chunk_rows(input.plan->rows(0)), kBlockRows);
      }
      calls.push_back(
          call(network.network(), network.parameters(1, kBitsKey), 0, 1, input, {kBitsKey}));
      EXPECT_TRUE(same_bits<float>(calls.back().gradients[0], calls[0].gradients[0])) << threads;
      EXPECT_TRUE(same_bits<double>(calls.back().scores.delta, calls[0].scores.delta)) << threads;
    }
  }
}

TEST_P(LayerBits, AreTheSameWhereLayersRunAgain) {
  ThreadPool pool(2, use_one_thread_per_worker);
  const std::vector<std::uint64_t> keys = {kBitsKey, kBitsKey + 5};
  for (int variant = 0; variant < 4; ++variant) {
    const bool tile = variant == 2;
    const RepeatedUnit unit = large_unit(tile           ? Configurable::tile
                                         : variant == 1 ? Configurable::all
                                                        : Configurable::few);
    const PropertyNetwork keeps(GetParam().yaml, variant, tile, pool),
        recomputes(GetParam().yaml, variant, tile, pool, "", true);
    const AlignedFloats flat = keeps.parameters(2, kBitsKey);
    const UnitInput input =
        variant % 2 ? compact_unit(keeps.network(), unit) : dense_unit(keeps.network(), unit);
    for (const Shift shift : {Shift::matters, Shift::is_ignored_here, Shift::is_always_ignored}) {
      SCOPED_TRACE(fmt::format("variant {}, shift {}", variant, static_cast<int>(shift)));
      const BitsCall kept = call(keeps.network(), flat, 0, 2, input, keys, shift),
                     again = call(recomputes.network(), flat, 0, 2, input, keys, shift);
      EXPECT_TRUE(same_bits<double>(kept.scores.delta, again.scores.delta));
      for (int m = 0; m < 2; ++m)
        EXPECT_TRUE(same_bits<float>(kept.gradients[m], again.gradients[m]));
    }
  }
}

// The losses that ignore a shift leave out the rows that are not needed. Where dropout of nodes is
// the only layer, hardly anything of a gradient remains but rounding: of what its terms are without
// the loss's centring.
TEST_P(LayerBits, DoNotNeedWhatOnlyShiftsScores) {
  use_one_thread_per_worker();
  ThreadPool pool(1);
  for (int variant = 0; variant < 4; ++variant) {
    CounterRng random(29, variant);
    const bool tile = variant == 2;
    const PropertyNetwork network(GetParam().yaml, variant, tile, pool,
                                  variant % 2 ? "pool: mean" : "pool: sum");
    const RepeatedUnit unit =
        small_unit(random, 1, 2, tile ? Configurable::tile : Configurable::few);
    const AlignedFloats flat = network.parameters(1, kBitsKey);
    for (const bool refine : {false, true}) {
      const UnitInput input =
          refine ? compact_unit(network.network(), unit) : dense_unit(network.network(), unit);
      const auto all_rows = [&](Shift shift) {
        return doubles_of(
            call(network.network(), flat, 0, 1, with_all_rows_needed(input), {kBitsKey}, shift)
                .gradients[0]);
      };
      const std::vector<double> golden = all_rows(Shift::is_ignored_here);
      const double terms = norm(all_rows(Shift::matters));
      EXPECT_GT(terms, 0);
      for (const Shift shift : {Shift::is_ignored_here, Shift::is_always_ignored}) {
        SCOPED_TRACE(fmt::format("variant {}, shift {}", variant, static_cast<int>(shift)));
        const auto own =
            doubles_of(call(network.network(), flat, 0, 1, input, {kBitsKey}, shift).gradients[0]);
        EXPECT_LE(distance(own, golden), 1e-4 * norm(golden) + 1e-6 * terms);
      }
    }
  }
}

TEST_P(LayerBits, AreThoseOfDoubleButForRounding) {
  use_one_thread_per_worker();
  ThreadPool pool(1);
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    CounterRng random(23, variant);
    const bool tile = variant == 2;
    const PropertyNetwork network(GetParam().yaml, variant, tile, pool);
    const RepeatedUnit unit =
        small_unit(random, 1, 2, tile ? Configurable::tile : Configurable::few);
    const AlignedFloats flat = network.parameters(1, kBitsKey);
    for (const bool refine : {false, true}) {
      const UnitInput input =
          refine ? compact_unit(network.network(), unit) : dense_unit(network.network(), unit);
      const DoubleCall exact(network, input, flat, {kBitsKey});
      const BitsCall actual = call(network.network(), flat, 0, 1, input, {kBitsKey});
      const std::vector<double> scores = values(exact.scores());
      EXPECT_LE(distance(actual.scores.delta, scores), 1e-4 * norm(scores));
      const auto gradients = exact.gradients();
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < exact.parameters(); ++i) {
        const ParameterEntry& entry = network.network().parameters().find(exact.names()[i]);
        const auto own = std::span(actual.gradients[0]).subspan(entry.offset, entry.size());
        const std::vector<double> expected = values(gradients[i]);
        difference += std::pow(distance(std::vector<double>(own.begin(), own.end()), expected), 2);
        size += std::pow(norm(expected), 2);
      }
      EXPECT_GT(size, 0);
      EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(size));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, LayerBits, ::testing::ValuesIn(layer_spellings()), name_of);

}  // namespace
}  // namespace tpudist
