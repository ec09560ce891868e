#include "data/loading/slate_order.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

// The purpose of a key, so that no two permutations share a key.
enum Purpose : std::uint64_t { kSlates = 1, kRows = 2, kPart = 3 };

std::uint64_t word(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// K of the places 0 .. total - 1, without replacement in proportion to exp(-bias * place).
std::vector<std::int64_t> fast_places(std::int64_t total, std::int64_t count, double bias,
                                      std::uint64_t key) {
  CounterRng rng(key);
  std::vector<std::pair<double, std::int64_t>> draws;
  const double step = total > 1 ? bias / static_cast<double>(total - 1) : 0;
  for (std::int64_t place = 0; place < total; ++place) {
    const double gumbel = -std::log(-std::log(1 - rng.uniform()));  // of (0, 1]; 1 gives infinity
    draws.emplace_back(step * static_cast<double>(place) - gumbel, place);
  }
  std::ranges::nth_element(draws, draws.begin() + count - 1);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(draws[i].second);
  std::ranges::sort(places);
  return places;
}

}  // namespace

SlateOrder::SlateOrder(const OrderOptions& options, std::vector<std::int64_t> rows_per_graph,
                       std::uint64_t selection_hash,
                       std::vector<std::vector<std::int32_t>> fastest_first)
    : options_(options),
      rows_per_graph_(std::move(rows_per_graph)),
      fastest_first_(std::move(fastest_first)),
      key_(mix_key({options.seed, selection_hash, word(options.configs_per_slate)})) {
  if (options_.slates_per_batch < 1 || options_.configs_per_slate < 1) {
    throw ConfigError("a batch needs at least one slate of at least one configuration, not " +
                      std::to_string(options_.slates_per_batch) + " of " +
                      std::to_string(options_.configs_per_slate));
  }
  std::int64_t slates = 0, graphs = 0;
  for (const std::int64_t rows : rows_per_graph_) {
    slates += slates_of_pass(rows);
    graphs += rows > 0;
  }
  if (slates == 0) throw ConfigError("there is nothing to train on: no graph has a configuration");

  const std::int64_t mean = (slates + graphs / 2) / graphs;  // rounded, at least 1
  double roots = 0;
  for (const std::int64_t rows : rows_per_graph_)
    roots += std::sqrt(static_cast<double>(slates_of_pass(rows)));
  first_slate_.assign(1, 0);
  for (const std::int64_t rows : rows_per_graph_) {
    std::int64_t drawn = slates_of_pass(rows);
    if (drawn > 0 && options_.draw == DrawMode::graphs) drawn = mean;
    if (drawn > 0 && options_.draw == DrawMode::root) {
      const double share = std::sqrt(static_cast<double>(drawn)) / roots;
      drawn = std::max<std::int64_t>(std::llround(share * static_cast<double>(slates)), 1);
    }
    first_slate_.push_back(first_slate_.back() + drawn);
  }
}

std::int64_t SlateOrder::slates_of_pass(std::int64_t rows) const {
  if (rows <= 0) return 0;
  return std::max<std::int64_t>(rows / options_.configs_per_slate, 1);  // 1: a short slate
}

std::int64_t SlateOrder::steps_per_epoch() const {
  return (slates_per_epoch() + options_.slates_per_batch - 1) / options_.slates_per_batch;
}

std::int64_t SlateOrder::slates_of(int graph) const {
  const auto i = static_cast<std::size_t>(graph);
  return first_slate_.at(i + 1) - first_slate_.at(i);
}

SlateId SlateOrder::item(std::int64_t step, int index) const {
  if (step < 0 || index < 0 || index >= options_.slates_per_batch) {
    throw std::out_of_range("no item " + std::to_string(index) + " of step " +
                            std::to_string(step));
  }
  SlateId slate;
  slate.epoch = step / steps_per_epoch();
  const std::int64_t position = step % steps_per_epoch() * options_.slates_per_batch + index;
  slate.weight = position < slates_per_epoch() ? 1 : 0;

  const KeyedPermutation shuffled(word(slates_per_epoch()),
                                  mix_key({key_, kSlates, word(slate.epoch)}));
  const auto drawn = static_cast<std::int64_t>(shuffled(word(position % slates_per_epoch())));
  // The last graph whose first slate is not beyond `drawn`; skips graphs without slates.
  const auto after = std::ranges::upper_bound(first_slate_, drawn);
  slate.graph = static_cast<int>(after - first_slate_.begin()) - 1;
  slate.number = drawn - *(after - 1);
  return slate;
}

std::vector<std::int64_t> SlateOrder::mixed_places(std::int64_t total, std::int64_t slate,
                                                   std::uint64_t key) const {
  const std::int64_t configs = options_.configs_per_slate, slates = slates_of_pass(total);
  if (options_.mix == SlateMix::fast)
    return fast_places(total, configs, options_.bias, mix_key({key, word(slate)}));
  std::vector<std::int64_t> places;
  if (options_.mix == SlateMix::balanced) {
    for (std::int64_t part = 0; part < configs; ++part) {
      const std::int64_t begin = part * total / configs, end = (part + 1) * total / configs;
      const KeyedPermutation shuffled(word(end - begin), mix_key({key, kPart, word(part)}));
      places.push_back(begin + static_cast<std::int64_t>(shuffled(word(slate))));
    }
    return places;
  }
  // If only some slates of a pass are drawn, they must not always be the fastest.
  slate = static_cast<std::int64_t>(
      KeyedPermutation(word(slates), mix_key({key, kSlates}))(word(slate)));
  const std::int64_t used = slates * configs, window = kCloseSlates * configs;
  // A pass leaves out surplus rows, chosen at random, so that no row is used less often.
  const KeyedPermutation leaving(word(total), mix_key({key, kRows}));
  std::vector<std::int64_t> left_out;
  for (std::int64_t i = used; i < total; ++i)
    left_out.push_back(static_cast<std::int64_t>(leaving(word(i))));
  std::ranges::sort(left_out);
  for (std::size_t i = 0; i < left_out.size(); ++i) left_out[i] -= static_cast<std::int64_t>(i);
  // Windows begin at another place in each pass, so that their borders move.
  const auto shift =
      static_cast<std::int64_t>(CounterRng(mix_key({key, kPart})).below(word(window)));
  for (std::int64_t i = slate * configs; i < (slate + 1) * configs; ++i) {
    const std::int64_t number = (i + shift) / window,
                       begin = std::max<std::int64_t>(number * window - shift, 0),
                       end = std::min((number + 1) * window - shift, used);
    const KeyedPermutation shuffled(word(end - begin), mix_key({key, kPart, word(number)}));
    const std::int64_t place = begin + static_cast<std::int64_t>(shuffled(word(i - begin)));
    places.push_back(place + (std::ranges::upper_bound(left_out, place) - left_out.begin()));
  }
  return places;
}

std::vector<std::int64_t> SlateOrder::rows(const SlateId& slate, int member) const {
  const std::int64_t total = rows_per_graph_.at(slate.graph);
  if (slate.number < 0 || slate.number >= slates_of(slate.graph) || member < -1) {
    throw std::out_of_range("no slate " + std::to_string(slate.number) + " of graph " +
                            std::to_string(slate.graph) + " for member " + std::to_string(member));
  }
  const std::int64_t pass = slate.number / slates_of_pass(total);
  const std::int64_t in_pass = slate.number % slates_of_pass(total);
  const std::int64_t first = in_pass * options_.configs_per_slate;
  const std::uint64_t key =
      mix_key({key_, kRows, word(slate.graph), word(slate.epoch), word(pass), word(member + 1)});
  if (options_.mix != SlateMix::uniform && total > options_.configs_per_slate) {
    std::vector<std::int64_t> rows = mixed_places(total, in_pass, key);
    for (std::int64_t& row : rows) row = fastest_first_.at(slate.graph).at(row);
    return rows;
  }
  const KeyedPermutation shuffled(word(total), key);
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(std::min<std::int64_t>(options_.configs_per_slate, total - first)));
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<std::int64_t>(shuffled(word(first) + i));
  return rows;
}

}  // namespace tpudist
